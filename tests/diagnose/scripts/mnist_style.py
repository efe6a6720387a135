"""Handwritten digits with a small convolutional network, in the style of a first tutorial."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.dropout = nn.Dropout(0.2)
        self.fc1 = nn.Linear(16 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout(x)
        return F.log_softmax(self.fc2(x), dim=1)


def load(args):
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
    parts = train_test_split(images, torch.tensor(labels), test_size=0.25, random_state=args.seed)
    train_images, test_images, train_labels, test_labels = parts
    train_set = TensorDataset(train_images, train_labels)
    test_set = TensorDataset(test_images, test_labels)
    return (
        DataLoader(train_set, batch_size=args.batch_size, shuffle=True),
        DataLoader(test_set, batch_size=args.test_batch_size),
    )


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done = batch_idx * len(data)
            total = len(train_loader.dataset)
            print(f"Train Epoch: {epoch} [{done}/{total}]\tLoss: {loss.item():.6f}")


def test(model, device, test_loader):
    model.eval()
    test_loss, correct = 0.0, 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += (output.argmax(dim=1) == target).sum().item()
    total = len(test_loader.dataset)
    print(
        f"\nTest set: Average loss: {test_loss / total:.4f}, "
        f"Accuracy: {correct}/{total} ({100.0 * correct / total:.0f}%)\n"
    )


def main():
    parser = argparse.ArgumentParser(description="Digits example")
    parser.add_argument("--batch-size", type=int, default=64, help="training batch (default: 64)")
    parser.add_argument("--test-batch-size", type=int, default=500, help="test batch")
    parser.add_argument("--epochs", type=int, default=7, help="epochs to train (default: 7)")
    parser.add_argument("--lr", type=float, default=4e-3, help="learning rate (default: 0.004)")
    parser.add_argument("--gamma", type=float, default=0.8, help="step of the rate (default: 0.8)")
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument("--log-interval", type=int, default=10, help="batches between two lines")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cpu")
    train_loader, test_loader = load(args)
    model = Net().to(device)
    optimizer = optim.Adam(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch)
        test(model, device, test_loader)
        scheduler.step()


if __name__ == "__main__":
    main()
