"""What models that draw rows share, and the sentence of what a model cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.generative.row_estimator import class_numbers
from castalia.utils.row_noise import BLOCK, RowNoise
from castalia.utils.seeds import derive, seed_from

__all__ = ["Lacks", "Samples"]

STREAM = 2**21  # numbers the seeds of sampling apart from those of training


class Lacks:
    """A method that a model cannot have; ``hasattr`` is False, and the error says why.

    Parameters
    ----------
    reason
        Why, in words after the name of the model.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise AttributeError(f"{owner.__name__}: there is no `{self.name}`: {self.reason}")


class Samples:
    """``sample`` and ``sample_blocks``, by ``_draw(noise, y) -> encoded rows``."""

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        raise NotImplementedError

    def sample(self, n: int = 1, y: Any = None, *, random_state: Any = None) -> Any:
        """Draw rows, in the units and the form of X.

        Parameters
        ----------
        n
            How many rows.
        y
            For conditional models: a class for all rows, or one for each.
        random_state
            Seed; None takes the model's, so that the same rows come each time. The first rows are
            the same however many are drawn.
        """
        parts = list(self.sample_blocks(n, y, random_state=random_state))
        if isinstance(parts[0], pa.Table):
            return pa.concat_tables(parts)
        return np.concatenate(parts)

    def sample_blocks(self, n: int, y: Any = None, *, random_state: Any = None) -> Iterator[Any]:
        """Draw rows block by block, for more than memory holds; arguments as for ``sample``."""
        check_is_fitted(self, "module_")
        if not Interval(1, whole=True).holds(n):
            raise InvalidParameter(
                f"{type(self).__name__}.sample: `n` must be a whole number of at least 1; got "
                f"{n!r}."
            )
        given = random_state if random_state is not None else self.random_state  # type: ignore[attr-defined]
        labels = self._labels(n, y)
        blocks = RowNoise.blocks(n, derive(seed_from(given), STREAM))
        return self._drawn(blocks, labels)

    def _drawn(self, blocks: Iterator[RowNoise], labels: Tensor | None) -> Iterator[Any]:
        self.module_.eval()  # type: ignore[attr-defined]
        device = next(self.module_.parameters()).device  # type: ignore[attr-defined]
        for i, noise in enumerate(blocks):
            part = None
            if labels is not None:
                part = labels[i * BLOCK : i * BLOCK + noise.rows].to(device)
            with torch.inference_mode():
                rows = self._draw(noise, part)
            yield self._values(rows)  # type: ignore[attr-defined]

    def _labels(self, n: int, y: Any) -> Tensor | None:
        """Return the class number of each row that is to be drawn."""
        name = type(self).__name__
        if not getattr(self, "conditional", False):
            if y is not None:
                raise InvalidParameter(
                    f"{name}.sample: `y` must be None without conditional=True; got {y!r}."
                )
            return None
        if y is None:
            raise InvalidData(
                f"{name}.sample: `y` must be a class, or one for each row, of a conditional "
                "model; got None."
            )
        numbers = class_numbers(self, y)
        if len(numbers) not in (1, n):
            raise InvalidData(f"{name}.sample: `y` must have 1 or {n} labels; got {len(numbers)}.")
        return numbers.expand(n) if len(numbers) == 1 else numbers
