"""How much is trained and how fast, where that depends on the data."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Amounts", "Recipe"]


class Amounts(NamedTuple):
    """Epochs, rows of a batch and learning rate of a training."""

    epochs: int
    batch_size: int
    lr: float


class Recipe:
    """Amounts as an estimator's fields say; a subclass fills in those that are None.

    It has no state: one object serves all estimators of a family.
    """

    def amounts(self, est: Any) -> Amounts:
        """Return the amounts of a training whose data ``est.spec_`` describes."""
        return Amounts(est.epochs, est.batch_size, est.lr)
