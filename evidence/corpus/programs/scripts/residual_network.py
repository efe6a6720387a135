"""A small residual network with a cosine schedule and flips of the noise: nothing is wrong."""

import sys

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(int(sys.argv[1]))


class BasicBlock(nn.Module):
    def __init__(self, planes):
        super().__init__()
        self.conv1 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + x)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU())
        self.layer1, self.layer2 = BasicBlock(12), BasicBlock(12)
        self.pool, self.linear = nn.MaxPool2d(2), nn.Linear(48, 10)

    def forward(self, x):
        x = self.pool(self.layer1(self.stem(x)))
        return self.linear(self.pool(self.layer2(x)).flatten(1))


X, y = load_digits(return_X_y=True)
X = (torch.tensor(X, dtype=torch.float32).view(-1, 1, 8, 8) / 16 - 0.3) / 0.38
y = torch.tensor(y)
order = torch.randperm(len(X))
X, y = X[order], y[order]
trainloader = DataLoader(TensorDataset(X[:1300], y[:1300]), batch_size=64, shuffle=True)
testloader = DataLoader(TensorDataset(X[1300:], y[1300:]), batch_size=100)
net, criterion = ResNet(), nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
for epoch in range(6):
    net.train()
    for inputs, targets in trainloader:
        inputs = inputs + 0.1 * torch.randn_like(inputs)
        optimizer.zero_grad()
        loss = criterion(net(inputs), targets)
        loss.backward()
        optimizer.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            correct += outputs.argmax(1).eq(targets).sum().item()
    scheduler.step()
    print(f"Epoch {epoch}: {correct / 497:.3f}")
print(correct / 497)
