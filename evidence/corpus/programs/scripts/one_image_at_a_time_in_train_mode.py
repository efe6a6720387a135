"""Tested image by image without eval(): batch norm sees batches of one."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) / 16
y = torch.tensor(y)
trainset, testset = TensorDataset(X[:1000], y[:1000]), TensorDataset(X[1600:], y[1600:])
trainloader = DataLoader(trainset, batch_size=32, shuffle=True)
testloader = DataLoader(testset, batch_size=1)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.Conv2d(12, 16, 3),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(64, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    model.train()
    running_loss = 0.0
    for inputs, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    if RIGHT:
        model.eval()
    correct = 0
    with torch.no_grad():
        for inputs, labels in testloader:
            outputs = model(inputs)
            test_loss = criterion(outputs, labels)
            correct += (outputs.argmax(1) == labels).sum().item()
    print(epoch, running_loss / len(trainloader), correct / len(testset))
print(correct / len(testset))
