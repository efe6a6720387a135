"""Two faults at once, planted in one small training: are both named?

Every pair of fifteen faults that can be together, on digits. A fault counts as named if one of its
codes stands anywhere in the diagnosis, among causes or symptoms, and as a cause if it is no symptom
of another. Some pairs hide one another in truth (nothing is learnt at all): they count as missed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from castalia.diagnose import Diagnosis, watch
from evidence.rows import print_table

# Codes that name each fault, and what it changes: faults of one kind are never together.
FAULTS: dict[str, tuple[str, str]] = {
    "rate × 300": ("CST101 CST104 CST105 CST106", "rate"),
    "rate / 300": ("CST102", "rate"),
    "no zero_grad": ("CST112", "reset"),
    "softmax twice": ("CST301", "loss"),
    "squared error of class numbers": ("CST302 CST304 CST306", "loss"),
    "inputs × 255": ("CST201", "inputs"),
    "first layer frozen": ("CST110", "weights"),
    "weights zero": ("CST108 CST109", "weights"),
    "weights × 30": ("CST109 CST107", "weights"),
    "no activations": ("CST303", "network"),
    "dropout of 0.95": ("CST404", "dropout"),
    "validation in training mode": ("CST116", "modes"),
    "validation on training rows": ("CST206", "split"),
    "rows in order": ("CST209", "order"),
    "a third of the labels wrong": ("CST205 CST403", "labels"),
}
# Two that cannot both show: one takes away what the other is seen by.
APART = ({"squared error of class numbers", "softmax twice"}, {"rows in order", "rate / 300"})
EPOCHS, BATCH, ROWS = 12, 32, 1024


def pairs() -> list[tuple[str, str]]:
    """Return the pairs that can be together."""
    fit = [p for p in combinations(FAULTS, 2) if FAULTS[p[0]][1] != FAULTS[p[1]][1]]
    return [p for p in fit if set(p) not in APART]


def train(faults: tuple[str, ...], seed: int = 0, epochs: int = EPOCHS) -> Diagnosis:
    """Train with these faults, watched, and return what is said."""
    torch.manual_seed(seed)
    x, y, held, labels = _rows(faults)
    net = _network(faults)
    lr = 1e-3 * (300 if "rate × 300" in faults else 1) / (300 if "rate / 300" in faults else 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    with watch(net, optimizer) as doctor:
        for _ in range(epochs):
            net.train()
            for rows in _batches(y, faults):
                if "no zero_grad" not in faults:
                    optimizer.zero_grad()
                _loss(net(x[rows]), y[rows], faults).backward()
                optimizer.step()
            net.train("validation in training mode" in faults)
            with torch.no_grad():
                outputs = net(held)
                loss = _loss(outputs, labels, faults)
            right = float((outputs.argmax(1) == labels).float().mean())
            doctor.log(outputs=outputs, targets=labels, inputs=held)
            doctor.validated(validation_loss=float(loss), validation_score=right)
        return doctor.diagnosis()


def _rows(faults: tuple[str, ...]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    data = load_digits()
    x = torch.as_tensor(data.data, dtype=torch.float32) / 16
    y = torch.as_tensor(data.target)
    shuffled = torch.randperm(len(x))
    x, y = x[shuffled], y[shuffled]
    if "inputs × 255" in faults:
        x = 255 * x
    held, labels = (part[:300].clone() for part in (x, y))
    if "validation on training rows" not in faults:
        held, labels = x[ROWS : ROWS + 300], y[ROWS : ROWS + 300]
    x, y = x[:ROWS], y[:ROWS].clone()
    if "a third of the labels wrong" in faults:
        wrong = torch.rand(ROWS) < 1 / 3
        y[wrong] = torch.randint(10, (int(wrong.sum()),))
    return x, y, held, labels


def _network(faults: tuple[str, ...]) -> nn.Module:
    act: type[nn.Module] = nn.Identity if "no activations" in faults else nn.ReLU
    p = 0.95 if "dropout of 0.95" in faults else 0.1
    layers = [nn.Linear(64, 48), act(), nn.Dropout(p), nn.Linear(48, 48), act(), nn.Linear(48, 10)]
    net = nn.Sequential(*layers)
    with torch.no_grad():
        for layer in (one for one in net if isinstance(one, nn.Linear)):
            factor = 0.0 if "weights zero" in faults else 30.0 if "weights × 30" in faults else 1.0
            layer.weight.mul_(factor)
    if "first layer frozen" in faults:
        net[0].requires_grad_(False)
    return net


def _batches(y: Tensor, faults: tuple[str, ...]) -> Iterator[Tensor]:
    order = y.argsort() if "rows in order" in faults else torch.randperm(len(y))
    yield from order.split(BATCH)


def _loss(outputs: Tensor, y: Tensor, faults: tuple[str, ...]) -> Tensor:
    if "squared error of class numbers" in faults:
        return F.mse_loss(outputs, y.float()[:, None].expand_as(outputs))
    return F.cross_entropy(outputs.softmax(1) if "softmax twice" in faults else outputs, y)


def named(fault: str, said: Any) -> bool:
    """Whether one of a fault's codes is among those that were said."""
    return bool(set(FAULTS[fault][0].split()) & set(said))


def run(quick: bool = False) -> None:
    """Train every pair, or one in four, and print how often both are named."""
    rows, both, first = [], 0, 0
    chosen = pairs()[:: 4 if quick else 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for pair in chosen:
            found = train(pair)
            missed = [fault for fault in pair if not named(fault, found.codes)]
            leads = any(named(fault, found.codes[:1]) for fault in pair)
            both, first = both + (not missed), first + leads
            if missed or not leads:
                rows.append([" + ".join(pair), ", ".join(missed), " ".join(found.codes[:6])])
    n = len(chosen)
    title = f"two faults at once: both named in {both} of {n} ({both / n:.0%})"
    title += f", one of them first in {first} ({first / n:.0%})"
    print_table(title, ["pair", "not named", "said"], rows)
