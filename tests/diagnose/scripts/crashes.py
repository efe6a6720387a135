"""A training at far too high a rate, which then stumbles over its own report."""

import argparse

import torch
from sklearn.datasets import load_wine
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=5.0)
    args = parser.parse_args()

    torch.manual_seed(0)
    table, grower = load_wine(return_X_y=True)
    X = torch.tensor((table - table.mean(0)) / table.std(0), dtype=torch.float32)
    y = torch.tensor(grower)
    order = torch.randperm(len(X))
    train, test = order[:130], order[130:]

    model = nn.Sequential(
        nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    history = {"loss": [], "accuracy": []}
    for epoch in range(args.epochs):
        for rows in train[torch.randperm(len(train))].split(16):
            optimizer.zero_grad()
            loss = criterion(model(X[rows]), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (model(X[test]).argmax(1) == y[test]).float().mean().item()
        history["loss"].append(loss.item())
        history["accuracy"].append(accuracy)
        print(f"Epoch {epoch + 1}/{args.epochs} - loss: {loss.item():.4g} - acc: {accuracy:.3f}")

    best = max(history["val_accuracy"])  # the key is another one
    print(f"Best accuracy: {best:.3f}")


if __name__ == "__main__":
    main()
