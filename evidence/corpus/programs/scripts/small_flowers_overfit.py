"""Sixty photographs and a network of a hundred thousand weights."""

import sys

import torch
from sklearn.datasets import load_digits
from torch import nn

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = load_digits(return_X_y=True)
order = torch.randperm(len(X))
X = torch.tensor(X, dtype=torch.float32)[order] / 16 + 0.4 * torch.randn(len(X), 64)
y = torch.tensor(y)[order]
n = 1200 if RIGHT else 60
X_train, y_train, X_val, y_val = X[:n], y[:n], X[1200:], y[1200:]
model = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4 if RIGHT else 60):
    model.train()
    for idx in torch.randperm(n).split(16):
        loss = criterion(model(X_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(X_val), y_val)
        acc = (model(X_val).argmax(1) == y_val).float().mean()
    print(f"{epoch} train {loss.item():.3f} val {val_loss.item():.3f} acc {acc:.3f}")
print(acc.item())
