"""A language model of letters: a small GRU that learns to write sentences like those it read."""

import argparse
import math
import random

import torch
from torch import nn

SUBJECTS = ["the miller", "a sailor", "the queen", "our neighbour", "an old fox"]
VERBS = ["found", "lost", "sold", "painted", "forgot"]
OBJECTS = ["a golden ring", "the wooden boat", "two letters", "his hat", "the key"]
PLACES = ["in the forest", "by the sea", "at night", "near the mill"]


def write(n, seed):
    draw = random.Random(seed)
    parts = (SUBJECTS, VERBS, OBJECTS, PLACES)
    return "\n".join(" ".join(draw.choice(part) for part in parts) + "." for _ in range(n))


class CharModel(nn.Module):
    def __init__(self, vocab_size, embed=24, hidden=64):
        super().__init__()
        self.encoder = nn.Embedding(vocab_size, embed)
        self.rnn = nn.GRU(embed, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, vocab_size)

    def forward(self, x, state=None):
        out, state = self.rnn(self.encoder(x), state)
        return self.decoder(out), state


def get_batches(ids, length, size):
    n = (len(ids) - 1) // length
    x = ids[: n * length].view(n, length)
    y = ids[1 : n * length + 1].view(n, length)
    for rows in torch.randperm(n).split(size):
        yield x[rows], y[rows]


def evaluate(model, ids, length, criterion):
    model.eval()
    losses = []
    with torch.no_grad():
        for x, y in get_batches(ids, length, 64):
            logits, _ = model(x)
            losses.append(criterion(logits.flatten(0, 1), y.flatten()).item())
    model.train()
    return sum(losses) / len(losses)


def sample(model, chars, start="the ", n=80):
    model.eval()
    ids = [chars.index(c) for c in start]
    with torch.no_grad():
        logits, state = model(torch.tensor([ids]))
        for _ in range(n):
            p = torch.softmax(logits[0, -1] / 0.7, dim=0)
            ids.append(int(torch.multinomial(p, 1)))
            logits, state = model(torch.tensor([[ids[-1]]]), state)
    return "".join(chars[i] for i in ids)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--bptt", type=int, default=32)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    train_text, valid_text = write(220, seed=1), write(40, seed=2)
    chars = sorted(set(train_text))
    train_ids = torch.tensor([chars.index(c) for c in train_text])
    valid_ids = torch.tensor([chars.index(c) for c in valid_text])

    model = CharModel(len(chars))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(1, args.epochs + 1):
        total, steps = 0.0, 0
        for x, y in get_batches(train_ids, args.bptt, 16):
            logits, _ = model(x)
            loss = criterion(logits.flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        scheduler.step()
        valid = evaluate(model, valid_ids, args.bptt, criterion)
        print(
            f"| epoch {epoch:2d} | train loss {total / steps:5.3f} "
            f"| valid loss {valid:5.3f} | valid ppl {math.exp(valid):6.2f}"
        )
    print("-" * 60)
    print(sample(model, chars))


if __name__ == "__main__":
    main()
