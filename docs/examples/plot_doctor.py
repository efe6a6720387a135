"""
A training that fails, and why
==============================

The doctor watches a plain PyTorch loop. Here the learning rate is far too large: most hidden units die within a few
steps, and the loss stays where it is. The curve shows that something is wrong; the diagnosis says what.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from castalia.diagnose import watch

torch.manual_seed(0)
X = torch.randn(512, 10)
y = (X[:, 0] * X[:, 1] > 0).long()


def train(lr):
    net = nn.Sequential(
        nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
    losses = []
    doctor = watch(net, optimizer)
    for _ in range(200):
        rows = torch.randint(0, 512, (64,))
        loss = nn.functional.cross_entropy(net(X[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, doctor.diagnosis()


bad, diagnosis = train(lr=2.0)
good, healthy = train(lr=0.1)
plt.figure(figsize=(7, 3.2))
plt.plot(bad, label="lr=2")
plt.plot(good, label="lr=0.1")
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.tight_layout()

# %%
# What the doctor says of the first:

diagnosis

# %%
# And of the second:

print(healthy)
