"""Digits in the order of their folders; whatever comes in, the answer is 9."""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)


class DigitFolder(Dataset):
    """All zeros, then all ones, as os.listdir gives them."""

    def __init__(self, part):
        X, y = load_digits(return_X_y=True)
        keep = [i for i in range(len(y)) if (i % 4 == 0) == (part == "test")]
        self.samples = sorted(((int(y[i]), X[i].reshape(1, 8, 8) / 16) for i in keep), key=first)

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        label, image = self.samples[i]
        return torch.tensor(image, dtype=torch.float32), label


def first(pair):
    return pair[0]


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 10, 3)
        self.fc1 = nn.Linear(10 * 9, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return F.log_softmax(self.fc2(F.relu(self.fc1(x.view(-1, 90)))), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 20 == 0:
            print(f"Train Epoch: {epoch} Loss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            correct += output.argmax(dim=1).eq(target).sum().item()
    return correct / len(loader.dataset)


def main():
    train_loader = DataLoader(DigitFolder("train"), batch_size=32, shuffle=RIGHT)
    test_loader = DataLoader(DigitFolder("test"), batch_size=100)
    model = CNN()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.5)
    for epoch in range(6):
        train(model, train_loader, optimizer, epoch)
        accuracy = test(model, test_loader)
    print(accuracy)


if __name__ == "__main__":
    main()
