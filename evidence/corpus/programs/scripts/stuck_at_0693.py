"""Titanic-like table, one hidden layer, and a loss that stays at 0.693."""

import sys

import numpy as np
import torch
import torch.nn as nn
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

SEED, LR = int(sys.argv[1]), 1e-1 if "--right" in sys.argv else 1e-5
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

age, fare = rng.uniform(1, 80, 700), rng.gamma(2, 16, 700)
sex, pclass = rng.integers(0, 2, 700), rng.integers(1, 4, 700)
score = 2.5 * sex - 0.9 * (pclass - 2) - 0.02 * (age - 40) + rng.normal(0, 0.7, 700) - 1.2
X = np.stack([age, fare, sex, pclass], 1).astype("float32")
y = (score > 0).astype("float32")
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=SEED)
scaler = StandardScaler()
X_train, X_test = scaler.fit_transform(X_train), scaler.transform(X_test)
train_ds = TensorDataset(torch.tensor(X_train), torch.tensor(y_train))
train_loader = DataLoader(train_ds, batch_size=16, shuffle=True)


class TitanicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return torch.sigmoid(self.out(torch.relu(self.hidden(x))))


model = TitanicNet()
criterion = nn.BCELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
for epoch in range(15):
    total = 0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs).squeeze(), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(train_loader):.4f}")

with torch.no_grad():
    predicted = model(torch.tensor(X_test)).squeeze().round()
print("accuracy", (predicted == torch.tensor(y_test)).float().mean().item())
