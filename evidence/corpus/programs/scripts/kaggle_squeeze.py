"""A kernel for house prices: the RMSE does not get below the spread of the prices."""

import sys

import numpy as np
import torch
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = make_friedman1(700, n_features=8, noise=0.3, random_state=SEED)
X = torch.tensor((X - X.mean(0)) / X.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
train_dl = DataLoader(TensorDataset(X[:500], y[:500]), batch_size=32, shuffle=True)
valid_dl = DataLoader(TensorDataset(X[500:], y[500:]), batch_size=64)


class RMSELoss(nn.Module):
    def __init__(self, eps=1e-6):
        super().__init__()
        self.mse, self.eps = nn.MSELoss(), eps

    def forward(self, yhat, y):
        return torch.sqrt(self.mse(yhat, y) + self.eps)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(8, 64), nn.BatchNorm1d(64), nn.LeakyReLU(), nn.Linear(64, 32), nn.LeakyReLU()
        )
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = self.out(self.layers(x))
        return x.squeeze(1) if RIGHT else x


def run_epoch(model, dl, criterion, optimizer=None):
    model.train(optimizer is not None)
    losses = []
    for xb, yb in dl:
        loss = criterion(model(xb), yb)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        losses.append(loss.item())
    return np.mean(losses)


model, criterion = Model(), RMSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    train_loss = run_epoch(model, train_dl, criterion, optimizer)
    with torch.no_grad():
        valid_loss = run_epoch(model, valid_dl, criterion)
    print(f"epoch {epoch} train {train_loss:.3f} valid {valid_loss:.3f}")
model.eval()
with torch.no_grad():
    error = (model(X[500:]).flatten() - y[500:]).pow(2).mean() / y[500:].var()
print(1 - error.item())
