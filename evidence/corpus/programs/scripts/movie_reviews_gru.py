"""Reviews of differing lengths, packed, read by a GRU: nothing is wrong."""

import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

torch.manual_seed(int(sys.argv[1]))
good, bad = list(range(2, 22)), list(range(22, 42))
neutral = list(range(42, 100))


def review(label):
    length = int(torch.randint(6, 15, ()))
    moods = good if label else bad
    words = [moods[int(torch.randint(20, ()))] for _ in range(2)]
    words += [neutral[int(torch.randint(58, ()))] for _ in range(length - 2)]
    return torch.tensor(words)[torch.randperm(length)]


labels = torch.randint(0, 2, (900,))
texts = [review(int(label)) for label in labels]


class Sentiment(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 24, padding_idx=0)
        self.gru = nn.GRU(24, 32, batch_first=True, bidirectional=True)
        self.dropout, self.fc = nn.Dropout(0.3), nn.Linear(64, 1)

    def forward(self, text, lengths):
        embedded = self.dropout(self.embedding(text))
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.gru(packed)
        return self.fc(self.dropout(torch.cat([hidden[0], hidden[1]], 1))).squeeze(1)


def batches(start, stop, shuffle):
    order = start + (torch.randperm(stop - start) if shuffle else torch.arange(stop - start))
    for idx in order.split(32):
        chosen = [texts[i] for i in idx]
        yield (
            pad_sequence(chosen, True),
            torch.tensor([len(t) for t in chosen]),
            labels[idx].float(),
        )


model, criterion = Sentiment(), nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(6):
    model.train()
    for text, lengths, y in batches(0, 700, True):
        optimizer.zero_grad()
        loss = criterion(model(text, lengths), y)
        loss.backward()
        optimizer.step()
    model.eval()
    right = 0.0
    with torch.no_grad():
        for text, lengths, y in batches(700, 900, False):
            out = model(text, lengths)
            criterion(out, y)
            right += ((out > 0) == (y > 0.5)).sum().item() / 200
    print(f"Epoch {epoch + 1:02} | Val. Acc: {100 * right:.2f}%")
print(right)
