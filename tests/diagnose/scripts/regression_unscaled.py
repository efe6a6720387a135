"""Predicting the price of a flat, straight from the table."""

import argparse

import numpy as np
import torch
from torch import nn


def make_table(n=800, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(0, 1, n)
    rooms = 0.7 * size + 0.7 * rng.normal(0, 1, n)
    age = rng.normal(0, 1, n)
    distance = rng.normal(0, 1, n)
    price = 310_000 + 95_000 * size + 20_000 * size * rooms - 30_000 * age
    price -= 40_000 * np.tanh(distance)
    price += rng.normal(0, 8_000, n)
    return np.column_stack([size, rooms, age, distance]), price


class Regressor(nn.Module):
    def __init__(self, n_inputs):
        super().__init__()
        self.hidden1 = nn.Linear(n_inputs, 64)
        self.hidden2 = nn.Linear(64, 32)
        self.predict = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.relu(self.hidden1(x))
        x = torch.relu(self.hidden2(x))
        return self.predict(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()

    torch.manual_seed(42)
    table, price = make_table()
    X = torch.tensor(table, dtype=torch.float32)
    y = torch.tensor(price, dtype=torch.float32).reshape(-1, 1)
    X_train, y_train, X_test, y_test = X[:600], y[:600], X[600:], y[600:]

    net = Regressor(X.shape[1])
    optimizer = torch.optim.Adam(net.parameters(), lr=args.lr)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        net.train()
        running = 0.0
        for rows in torch.randperm(len(X_train)).split(32):
            optimizer.zero_grad()
            loss = criterion(net(X_train[rows]), y_train[rows])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(rows)
        net.eval()
        with torch.no_grad():
            test = criterion(net(X_test), y_test).item()
        if (epoch + 1) % 5 == 0:
            print(f"epoch {epoch + 1:3d}  train MSE {running / 600:.4g}  test MSE {test:.4g}")
    with torch.no_grad():
        off = (net(X_test) - y_test).abs().mean().item()
    print(f"On average the prediction is {off:,.0f} dollars off.")


if __name__ == "__main__":
    main()
