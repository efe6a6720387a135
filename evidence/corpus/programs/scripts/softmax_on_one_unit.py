"""Binary classification whose network always says 1.0."""

import sys

import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

torch.manual_seed(int(sys.argv[1]))
RIGHT = "--right" in sys.argv
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=int(sys.argv[1]))
sc = StandardScaler().fit(X_train)
X_train = torch.tensor(sc.transform(X_train), dtype=torch.float32)
X_test = torch.tensor(sc.transform(X_test), dtype=torch.float32)
y_train = torch.tensor(y_train, dtype=torch.float32).reshape(-1, 1)
y_test = torch.tensor(y_test, dtype=torch.float32).reshape(-1, 1)

model = nn.Sequential(
    nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid() if RIGHT else nn.Softmax(dim=1)
)
loss_fn = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
batch_size = 20
for epoch in range(12):
    for i in range(0, len(X_train), batch_size):
        y_pred = model(X_train[i : i + batch_size])
        loss = loss_fn(y_pred, y_train[i : i + batch_size])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Finished epoch {epoch}, latest loss {loss.item():.4f}")
with torch.no_grad():
    print("Accuracy", (model(X_test).round() == y_test).float().mean().item())
