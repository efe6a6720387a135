"""Transfer learning: the head is replaced after the optimizer was made."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = load_digits(return_X_y=True)
X = torch.tensor(X, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
y = torch.tensor(y)
old, new = y < 5, y >= 5


class Backbone(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.fc = nn.Linear(12 * 16, num_classes)

    def forward(self, x):
        return self.fc(self.features(x))


def fit(model, optimizer, X, y, epochs):
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for idx in torch.randperm(len(X)).split(32):
            optimizer.zero_grad()
            loss = criterion(model(X[idx]), y[idx])
            loss.backward()
            optimizer.step()
        print(loss.item())


model = Backbone(5)
pretrained = torch.optim.Adam(model.parameters(), lr=3e-3)
fit(model, pretrained, X[old], y[old], 3)
for p in model.features.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05, momentum=0.9)
model.fc = nn.Linear(12 * 16, 5)
if RIGHT:
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05, momentum=0.9)
Xn, yn = X[new], y[new] - 5
fit(model, optimizer, Xn[:600], yn[:600], 5)
with torch.no_grad():
    print("acc", (model(Xn[600:]).argmax(1) == yn[600:]).float().mean().item())
