"""The loss of pairs in a batch, written out."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.objectives import InBatchContrast
from castalia.protocols import Batch

SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(5, 2, 3, generator=SOURCE)


def by_hand(x, t, both):
    a, b = x[:, 0], x[:, 1]
    losses = []
    for i in range(len(x)):
        one = -torch.log(torch.exp(a[i] @ b[i] / t) / sum(torch.exp(a[i] @ v / t) for v in b))
        other = -torch.log(torch.exp(a[i] @ b[i] / t) / sum(torch.exp(b[i] @ v / t) for v in a))
        losses.append((one + other) / 2 if both else one)
    return torch.stack(losses)


@pytest.mark.parametrize("both", [True, False])
def test_it_is_what_the_formula_says(both):
    objective = InBatchContrast(0.7, both_ways=both)
    loss = objective.terms(nn.Identity(), Batch(X), "train")["loss"]
    assert_close(loss, by_hand(X, 0.7, both).mean())
    weight = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5])
    loss = objective.terms(nn.Identity(), Batch(X, weight=weight), "train")["loss"]
    assert_close(loss, (by_hand(X, 0.7, both) * weight).sum() / weight.sum())


def test_a_text_that_equals_the_right_answer_is_no_wrong_one():
    same = X.clone()
    same[1, 1] = same[0, 1]  # the first two pairs have one answer
    found = InBatchContrast(1.0, both_ways=False)._losses(same[:, 0] @ same[:, 1].T, same[:, 1])
    rest = [0, 2, 3, 4]
    assert_close(found[0], by_hand(same[rest], 1.0, False)[0])


def test_what_is_no_pair_is_refused():
    with pytest.raises(ShapeMismatch, match=r"must be \(B, 2, …\).*got \(5, 3, 3\)"):
        InBatchContrast().terms(nn.Identity(), Batch(torch.zeros(5, 3, 3)), "train")
    with pytest.raises(InvalidParameter, match="`temperature` must be above 0"):
        InBatchContrast(0)
