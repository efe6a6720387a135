"""The first choice of optimizer."""

import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from castalia.errors import InvalidParameter
from castalia.optim import build_schedule, recommend


@pytest.mark.parametrize(
    "rows, parameters, will_tune, optimizer",
    [
        (150, 500, False, "lbfgs"),
        (50_000, 500, False, "adam"),
        (150, 10**6, False, "adam"),
        (50_000, 10**6, True, "momentum"),
    ],
)
def test_the_choice_depends_on_rows_and_parameters(rows, parameters, will_tune, optimizer):
    choice = recommend(rows, parameters, will_tune=will_tune)
    assert choice.optimizer == optimizer
    assert choice.reason


@pytest.mark.parametrize(
    "copies, will_tune, epochs", [(1, False, 5), (3, False, 12), (3, True, 12)]
)
def test_what_is_recommended_learns_the_digits(copies, will_tune, epochs):
    X, y = load_digits(return_X_y=True)
    X, y = torch.tensor(X / 16, dtype=torch.float32), torch.tensor(y)
    held = torch.arange(len(X)) % 5 == 0
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    x, labels = X[~held].repeat(copies, 1), y[~held].repeat(copies)
    choice = recommend(len(x), 2_410, will_tune=will_tune)
    optimizer, schedule = choice.build(list(net.parameters())), build_schedule(choice.schedule)
    batches = [b for _ in range(epochs) for b in torch.randperm(len(x)).split(choice.batch_size)]
    for step, index in enumerate(batches):

        def closure(index=index):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[index]), labels[index])
            loss.backward()
            return loss.detach()

        optimizer.param_groups[0]["lr"] = choice.lr * schedule(step, len(batches))
        optimizer.step(closure)
    assert (net(X[held]).argmax(1) == y[held]).float().mean() > 0.93


def test_no_rows_are_refused():
    with pytest.raises(InvalidParameter, match="recommend: `rows` must be at least 1; got 0"):
        recommend(0, 5)
