"""Two frauds in a hundred; 98 % accuracy from the first epoch."""

import sys

import torch
from sklearn.datasets import make_classification
from torch import nn

SEED, RIGHT = int(sys.argv[1]), "--right" in sys.argv
torch.manual_seed(SEED)
X, y = make_classification(
    2000, 12, n_informative=6, weights=[0.975], class_sep=0.8, random_state=SEED
)
X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
X_train, y_train, X_val, y_val = X[:1500], y[:1500], X[1500:], y[1500:]
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
weight = torch.tensor([(y_train == 0).sum() / (y_train == 1).sum()]) if RIGHT else None
criterion = nn.BCEWithLogitsLoss(pos_weight=weight)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def binary_acc(logits, y):
    return ((logits > 0).float() == y).float().mean()


for epoch in range(8):
    model.train()
    epoch_acc = 0
    for idx in torch.randperm(1500).split(32):
        optimizer.zero_grad()
        out = model(X_train[idx]).squeeze()
        loss = criterion(out, y_train[idx])
        loss.backward()
        optimizer.step()
        epoch_acc += binary_acc(out, y_train[idx]).item()
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(X_val).squeeze(), y_val)
    print(f"Epoch {epoch}: acc {epoch_acc / 47:.3f} val {val_loss.item():.3f}")
found = model(X_val).squeeze() > 0
print("recall", (found & (y_val == 1)).sum().item() / (y_val == 1).sum().item())
