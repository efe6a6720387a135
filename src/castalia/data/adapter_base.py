"""What every adapter is: how the X of one kind of data becomes rows that a network can take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
import torch

from castalia.data.batches import Samples
from castalia.data.row_splits import SMALLEST, holdout
from castalia.protocols import Rows

__all__ = ["Adapter", "Reads"]

ROWS = 256  # of a block when predicting


class Adapter:
    """Base of adapters; a subclass gives ``check`` and ``rows``, and ``fit`` where it learns.

    Attributes
    ----------
    inputs
        Width of one encoded row, or its channels.
    categories
        Sizes of the categorical columns.
    """

    inputs: int = 1
    categories: tuple[int, ...] = ()

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs beyond these; plain JSON values."""
        return {}

    @property
    def shape(self) -> torch.Size:
        """Shape of one row, channels first; () where rows differ."""
        return torch.Size([])

    @classmethod
    def of(cls, owner: Any) -> Self:
        """Make the adapter of an estimator, not yet fitted; ``Reads`` passes fields of it."""
        return cls()

    def check(self, X: Any, owner: str) -> Any:
        """Return X as this kind of data, after ``fit`` such as was learnt from; or refuse it."""
        return X

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> Self:
        """Learn from checked data."""
        return self

    def rows(self, X: Any, dtype: Any) -> Rows:
        """Return checked data as rows of a training; numbers of a numpy dtype."""
        raise NotImplementedError

    def blocks(self, X: Any, dtype: Any) -> Iterator[Any]:
        """Yield batches of inputs in order, for prediction."""
        samples = Samples(self.rows(X, dtype))
        for index in torch.arange(len(samples)).split(ROWS):
            yield samples.batch(index).x

    def split(
        self,
        samples: Samples,
        validation: float | Samples,
        seed: int,
        labels: np.ndarray | None = None,
    ) -> tuple[Samples, Samples]:
        """Return what is trained on and what is held out: a share of the rows, or others."""
        if isinstance(validation, Samples):
            return samples, validation
        kept, held = holdout(len(samples), validation, seed=seed, labels=labels, smallest=SMALLEST)
        return (samples.subset(kept) if len(held) else samples), samples.subset(held)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        return dict(vars(self))

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return an adapter from its saved state."""
        made = cls()
        vars(made).update(state)
        return made


class Reads:
    """An adapter that is made of fields of its estimator.

    Parameters
    ----------
    adapter
        The class.
    fields
        Names of fields that are arguments of the same name.
    renamed
        Arguments whose fields have another name.

    Examples
    --------
    An estimator of texts says ``adapter = Reads(TextAdapter, "tokenizer", "context", "long")``, one
    of images ``adapter = Reads(ImageAdapter, size="image_size")``.
    """

    def __init__(self, adapter: type[Adapter], *fields: str, **renamed: str) -> None:
        self.adapter, self.fields = adapter, {**{name: name for name in fields}, **renamed}

    def of(self, owner: Any) -> Adapter:
        """Make the adapter of an estimator, not yet fitted."""
        made: Any = self.adapter
        found: Adapter = made(**{key: getattr(owner, field) for key, field in self.fields.items()})
        return found
