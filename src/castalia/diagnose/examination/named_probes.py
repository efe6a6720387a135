"""Single probes under names of their own; their arguments are those of ``examine``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import nn

from castalia.diagnose.examination.examiner import outcomes
from castalia.diagnose.examination.outcomes import Outcome, joined

__all__ = ["baseline_test", "lr_range", "more_data_test", "shuffle_test", "tiny_fit"]

Module = nn.Module | Callable[[], Sequence[Any]]


class Probe(Protocol):
    """A function with the arguments of ``examine`` that makes some of its probes."""

    def __call__(
        self,
        module: Module,
        loss_fn: Callable[..., Any] | None = None,
        train: Any = None,
        validation: Any = None,
        *,
        optimizer: Any = None,
        task: str | None = None,
        seconds: float = ...,
        seed: int = 0,
    ) -> Outcome:
        """Return what the probes saw as one outcome."""


def _making(*probes: str, seconds: float) -> Callable[[Callable[[], None]], Probe]:
    """Make these probes, under the name and with the description of the decorated function."""
    usual = seconds

    def make(
        module: Module,
        loss_fn: Callable[..., Any] | None = None,
        train: Any = None,
        validation: Any = None,
        *,
        optimizer: Any = None,
        task: str | None = None,
        seconds: float = usual,
        seed: int = 0,
    ) -> Outcome:
        asked = (module, loss_fn, train, validation, optimizer, task, seconds, probes, seed)
        _, done, notes = outcomes(*asked)
        return joined(probes[-1], done, notes)

    def described(by: Callable[[], None]) -> Probe:
        make.__name__, make.__qualname__, make.__doc__ = by.__name__, by.__qualname__, by.__doc__
        return make

    return described


@_making("tiny-fit", seconds=10.0)
def tiny_fit() -> None:
    """Test whether the network can memorise 16 rows, without dropout and with Adam.

    A network that cannot is too small, has wrong or missing gradients, or outputs that cannot take
    the values of the targets. Arguments are those of ``examine``.

    Returns
    -------
    Outcome
        True if it can. ``numbers`` holds the accuracy, R² or fall of the loss, and its bar.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X, y = torch.randn(64, 5), torch.randint(0, 3, (64,))
    >>> net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
    >>> found = tiny_fit(net, nn.CrossEntropyLoss(), (X, y))
    >>> bool(found), found.numbers["accuracy"]
    (True, 1.0)
    """


@_making("lr-range", seconds=15.0)
def lr_range() -> None:
    """Compare the user's learning rate with others, by short trainings on the same batches.

    Arguments are those of ``examine``.

    Returns
    -------
    Outcome
        True if the rate is neither far too high nor far too low. ``numbers`` holds the rate
        (``lr``), the best one of those tried by factors of ten (``best``) and the loss at each.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(100, 4)
    >>> y = X.sum(1, keepdim=True)
    >>> net = nn.Linear(4, 1)
    >>> slow = torch.optim.SGD(net.parameters(), lr=1e-6)
    >>> found = lr_range(net, nn.MSELoss(), (X, y), optimizer=slow)
    >>> bool(found), found.findings[0].code
    (False, 'CST102')
    """


@_making("input-blind", "shuffle-test", seconds=15.0)
def shuffle_test() -> None:
    """Test that the network needs its inputs, and that shuffled labels leave it at chance.

    On mixed-up inputs a network that uses them does worse (else CST406). Trained on shuffled
    labels, it must not beat chance on held rows (else CST206). Arguments are those of ``examine``.

    Returns
    -------
    Outcome
        True if both hold. ``numbers`` holds the losses and errors.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(200, 2)
    >>> y = (X[:, 0] > 0).long()
    >>> net = nn.Linear(2, 2)
    >>> bool(shuffle_test(net, nn.CrossEntropyLoss(), (X[:150], y[:150]), (X[150:], y[150:])))
    True
    """


@_making("baseline-test", seconds=15.0)
def baseline_test() -> None:
    """Compare the network with guessing, a linear model and boosting on the validation rows.

    The network as it is, if it has learned already; otherwise a copy after a short training.
    Arguments are those of ``examine``; validation data are needed.

    Returns
    -------
    Outcome
        True if no baseline is clearly better. ``numbers`` holds the error of each: the error rate,
        or the share of variance not explained.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(300, 2)
    >>> y = (X[:, 0] * X[:, 1] > 0).long()
    >>> flat = nn.Linear(2, 2)  # a line cannot separate these; trees can
    >>> found = baseline_test(flat, nn.CrossEntropyLoss(), (X[:200], y[:200]), (X[200:], y[200:]))
    >>> bool(found), found.numbers["boosting"] < found.numbers["network"]
    (False, True)
    """


@_making("more-data-test", seconds=15.0)
def more_data_test() -> None:
    """Train on a quarter, a half and all of the rows, and see if the error still falls.

    Arguments are those of ``examine``; validation data are needed.

    Returns
    -------
    Outcome
        True if more rows would not help much. ``numbers`` holds the curve.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(400, 2)
    >>> y = (X[:, 0] > 0).long()
    >>> net = nn.Linear(2, 2)
    >>> found = more_data_test(net, nn.CrossEntropyLoss(), (X[:300], y[:300]), (X[300:], y[300:]))
    >>> bool(found), found.numbers["rows"]
    (True, [75, 150, 300])
    """
