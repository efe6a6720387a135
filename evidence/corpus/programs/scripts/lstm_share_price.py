"""Tomorrow's price of a share by an LSTM; the prediction is a flat line."""

import sys

import numpy as np
import torch
from torch import nn

seed, right = int(sys.argv[1]), "--right" in sys.argv
np.random.seed(seed)
torch.manual_seed(seed)
t = np.arange(600)
price = 240 + 60 * np.sin(t / 15) + 25 * np.sin(t / 6) + np.random.normal(0, 4, 600)
low, high = price[:450].min(), price[:450].max()
inputs = (price - low) / (high - low)
targets = inputs if right else price
look_back = 12
X = np.stack([inputs[i : i + look_back] for i in range(600 - look_back)])[:, :, None]
Y = targets[look_back:, None]
X, Y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32)
X_train, X_test, Y_train, Y_test = X[:450], X[450:], Y[:450], Y[450:]


class LSTM(nn.Module):
    def __init__(self, input_dim=1, hidden_dim=24, num_layers=1, output_dim=1):
        super().__init__()
        self.hidden_dim, self.num_layers = hidden_dim, num_layers
        self.lstm = nn.LSTM(input_dim, hidden_dim, num_layers, batch_first=True)
        self.fc = nn.Linear(hidden_dim, output_dim)

    def forward(self, x):
        h0 = torch.zeros(self.num_layers, x.size(0), self.hidden_dim).requires_grad_()
        c0 = torch.zeros(self.num_layers, x.size(0), self.hidden_dim).requires_grad_()
        out, _ = self.lstm(x, (h0.detach(), c0.detach()))
        return self.fc(out[:, -1, :])


model = LSTM()
loss_fn = torch.nn.MSELoss()
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
hist = np.zeros(80)
for epoch in range(80):
    y_train_pred = model(X_train)
    loss = loss_fn(y_train_pred, Y_train)
    if epoch % 10 == 0:
        print("Epoch", epoch, "MSE:", loss.item())
    hist[epoch] = loss.item()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
model.eval()
with torch.no_grad():
    error = ((model(X_test) - Y_test) ** 2).mean() / Y_test.var()
print("R2", 1 - error.item())
