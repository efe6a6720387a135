"""A classifier that returns probabilities, trained with a loss that wants logits."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 2 * 2, 60)
        self.fc2 = nn.Linear(60, 42)
        self.fc3 = nn.Linear(42, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, 16 * 2 * 2)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softmax(self.fc3(x), dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(3)
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(images))
    images, labels = images[order], labels[order]
    trainset = TensorDataset(images[:1300], labels[:1300])
    testset = TensorDataset(images[1300:], labels[1300:])
    trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
    testloader = DataLoader(testset, batch_size=100, shuffle=False)

    net = LeNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(args.epochs):
        running_loss = 0.0
        for i, (inputs, targets) in enumerate(trainloader, 0):
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
            if i % 20 == 19:
                print(f"[{epoch + 1}, {i + 1:5d}] loss: {running_loss / 20:.3f}")
                running_loss = 0.0
    print("Finished Training")

    correct = total = 0
    net.eval()
    with torch.no_grad():
        for inputs, targets in testloader:
            predicted = net(inputs).argmax(1)
            total += targets.size(0)
            correct += (predicted == targets).sum().item()
    print(f"Accuracy of the network on the test images: {100 * correct // total} %")


if __name__ == "__main__":
    main()
