"""Which optimizer to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.optim import Optimizer

from castalia.errors import InvalidParameter
from castalia.optim.build import build_optimizer

__all__ = ["Choice", "recommend"]

SMALL_ROWS, SMALL_PARAMETERS = 2_000, 20_000


@dataclass(frozen=True)
class Choice:
    """Settings to begin with, and why.

    The first four are those of an estimator and its ``Training``.
    """

    optimizer: str
    lr: float
    batch_size: int
    schedule: str | None
    reason: str

    def build(self, parameters: Sequence[Tensor]) -> Optimizer:
        """Make the optimizer; batches and schedule are left to the caller."""
        return build_optimizer(self.optimizer, parameters, lr=self.lr)


def recommend(rows: int, parameters: int, *, will_tune: bool = False) -> Choice:
    """Return the usual first choice of optimizer; a place to start, not a result.

    Parameters
    ----------
    rows
        Rows of training data.
    parameters
        Trainable parameters of the network.
    will_tune
        Whether several rates will be tried: stochastic gradient descent with momentum and a
        falling rate is then often as good as Adam or better.

    Examples
    --------
    >>> recommend(50_000, 1_000_000).optimizer
    'adam'
    >>> recommend(500, 100).reason
    'the data is one batch without noise, where a quasi-Newton method needs no rate'
    """
    for name, value in (("rows", rows), ("parameters", parameters)):
        if value < 1:
            raise InvalidParameter(f"recommend: `{name}` must be at least 1; got {value!r}.")
    if rows <= SMALL_ROWS and parameters <= SMALL_PARAMETERS:
        why = "the data is one batch without noise, where a quasi-Newton method needs no rate"
        return Choice("lbfgs", 1.0, rows, None, why)
    batch = 32 if rows < 10_000 else 128
    if will_tune:
        why = "momentum with a falling rate is often the best where its rate is searched for"
        return Choice("momentum", 0.1, batch, "linear_decay", why)
    why = "on mini-batches Adam works over a wide range of rates"
    return Choice("adam", 1e-3, batch, None, why)
