"""What becomes of one term of a loss before it is the scalar."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor.autograd_graph import read_graph
from castalia.diagnose.monitor.head_reader import read_head

torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
NAMES = {id(p): name for name, p in NET.named_parameters()}
X, REAL, MASK = torch.randn(6, 5), torch.randn(6, 3), torch.arange(6.0)[:, None] % 2
CLASSES = torch.tensor([0, 1, 2, 2, 1, 0])


def head_of(make):
    return read_head(read_graph(make(NET(X)), NAMES)).head


REDUCTIONS = {
    "mean": (lambda o: (o - REAL).square().mean(), "mean"),
    "mean over accumulated batches": (lambda o: (o - REAL).square().mean() / 4, "mean"),
    "sum over all": (lambda o: (o - REAL).square().sum() / o.numel(), "mean"),
    "mean of rows": (lambda o: (o - REAL).square().mean(1).mean(), "mean"),
    "none, then mean": (lambda o: F.mse_loss(o, REAL, reduction="none").mean(), "mean"),
    "sum": (lambda o: (o - REAL).abs().sum(), "sum"),
    "sum of columns": (lambda o: (o - REAL).square().sum(1).mean(), "sum"),
    "half the sum over rows": (lambda o: 0.5 * (o - REAL).square().sum() / len(o), "sum"),
    "root": (lambda o: (o - REAL).square().mean().sqrt(), "none"),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_how_squares_become_one_number_is_read(name):
    make, reduction = REDUCTIONS[name]
    head = head_of(make)
    assert (head.reduction, head.weighted, head.others) == (reduction, False, ())


WEIGHED = {
    "mask": lambda o: (MASK * (o - REAL).square()).sum() / MASK.sum(),
    "mask by index": lambda o: (o - REAL).square()[MASK[:, 0] > 0].mean(),
    "choice": lambda o: torch.where(MASK > 0, (d := (o - REAL).square()), 0.5 * d).mean(),
    "torch's, with a mask": lambda o: (F.mse_loss(o, REAL, reduction="none") * MASK).mean(),
    "a learnt variance": lambda o: ((o[:, :1] - 1).square() / o[:, 1:2].exp()).mean(),
}


@pytest.mark.parametrize("name", WEIGHED)
def test_numbers_that_count_differently_are_weighted(name):
    assert head_of(WEIGHED[name]).weighted


TERMS = {
    "alone": (lambda o: F.cross_entropy(o, CLASSES), False),
    "smoothed labels": (lambda o: F.cross_entropy(o, CLASSES, label_smoothing=0.1), False),
    "a penalty on weights": (
        lambda o: F.cross_entropy(o, CLASSES) + NET[0].weight.square().sum(),
        False,
    ),
    "a constant": (lambda o: (o - REAL).square().mean() + 3.0, False),
    "two squares": (lambda o: (o[:, 0] - 1).square().mean() + (o[:, 1] - 2).square().mean(), True),
    "stacked": (
        lambda o: torch.stack([F.cross_entropy(o, CLASSES), o.square().mean()]).sum(),
        True,
    ),
    "an auxiliary term": (lambda o: F.cross_entropy(o, CLASSES) + NET[0](X).abs().mean(), True),
}


@pytest.mark.parametrize("name", TERMS)
def test_what_else_the_network_computed_is_another_term(name):
    make, more = TERMS[name]
    assert bool(head_of(make).others) == more
