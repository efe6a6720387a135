"""A network compiled by TorchScript whose gradients are never cleared."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x[:, :3].sum(1) > 0).long()
model = torch.jit.script(nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
for _ in range(20):
    for i in range(0, 600, 50):
        loss = criterion(model(x[i : i + 50]), y[i : i + 50])
        loss.backward()
        optimizer.step()
