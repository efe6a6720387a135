"""Gradient accumulation over four batches that forgets to reset."""

import sys

import torch
from sklearn.datasets import make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = make_moons(1000, noise=0.15, random_state=SEED)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(X[:800], y[:800]), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
accumulation_steps = 4
for epoch in range(8):
    for i, (inputs, labels) in enumerate(loader):
        loss = criterion(model(inputs), labels) / accumulation_steps
        loss.backward()
        if (i + 1) % accumulation_steps == 0:
            optimizer.step()
            if RIGHT:
                optimizer.zero_grad()
    print(epoch, loss.item() * accumulation_steps)
with torch.no_grad():
    print((model(X[800:]).argmax(1) == y[800:]).float().mean().item())
