"""A letter at a time, the state carried from piece to piece and detached: nothing is wrong."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]))
LINES = "to be or not to be that is the question. whether it is nobler to suffer. " * 60
chars = sorted(set(LINES))
ids = torch.tensor([chars.index(c) for c in LINES])
batch, bptt = 8, 20
data = ids[: len(ids) // batch * batch].view(batch, -1)


class RNN(nn.Module):
    def __init__(self, vocab, hidden=48):
        super().__init__()
        self.drop = nn.Dropout(0.1)
        self.encoder, self.decoder = nn.Embedding(vocab, hidden), nn.Linear(hidden, vocab)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.decoder.weight = self.encoder.weight  # tied

    def forward(self, x, state):
        out, state = self.rnn(self.drop(self.encoder(x)), state)
        return self.decoder(self.drop(out)), state


model = RNN(len(chars))
nn.init.uniform_(model.encoder.weight, -0.1, 0.1)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
cut = int(data.shape[1] * 0.85)
for epoch in range(7):
    model.train()
    state = None
    for i in range(0, cut - bptt - 1, bptt):
        x, y = data[:, i : i + bptt], data[:, i + 1 : i + bptt + 1]
        out, state = model(x, state)
        state = state.detach()
        loss = criterion(out.reshape(-1, len(chars)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out, _ = model(data[:, cut:-1], None)
        valid = criterion(out.reshape(-1, len(chars)), data[:, cut + 1 :].reshape(-1))
    print(f"| epoch {epoch} | loss {loss.item():.3f} | valid {valid.item():.3f}")
print((out.argmax(-1) == data[:, cut + 1 :]).float().mean().item())
