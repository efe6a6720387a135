"""Linear regression on raw columns by SGD: nan after three steps."""

import sys

import numpy as np
import torch
from torch import nn

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)
n = 500
area, rooms, year = rng.uniform(400, 4000, n), rng.integers(1, 7, n), rng.integers(1900, 2020, n)
tax = 0.012 * area * 90 + rng.normal(0, 100, n)
price = 0.09 * area + 12 * rooms + 0.4 * (year - 1950) + rng.normal(0, 10, n)  # thousands
X = torch.tensor(np.stack([area, rooms, year, tax], 1), dtype=torch.float32)
y = torch.tensor(price / 100, dtype=torch.float32).unsqueeze(1)
if RIGHT:
    X = (X - X.mean(0)) / X.std(0)
X_train, y_train, X_test, y_test = X[:400], y[:400], X[400:], y[400:]

model = nn.Sequential(nn.Linear(4, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(100):
    model.train()
    output = model(X_train)
    loss = criterion(output, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 0:
        print(epoch, loss.item())
with torch.no_grad():
    r2 = 1 - (criterion(model(X_test), y_test) / y_test.var()).item()
print(r2 if np.isfinite(r2) else -9.0)
