"""Rows read from what people train on: pairs of arrays, datasets and loaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from castalia.diagnose.examination.effort import MOST_NUMBERS, MOST_ROWS
from castalia.utils.text import shorten

__all__ = ["Rows", "Unreadable", "read_rows"]


class Unreadable(Exception):
    """Data that the examination cannot read; the text says why, and becomes a note."""


@dataclass(frozen=True)
class Rows:
    """A sample of the user's rows, and what is known of all of them.

    Attributes
    ----------
    x, y
        Inputs and targets of the sample.
    index
        Its row numbers in the user's data.
    total
        How many rows the user has; None for a stream.
    whole
        All inputs and targets, where they are in memory.
    batch_size
        Of the loader, if there was one.
    """

    x: Tensor
    y: Tensor
    index: np.ndarray
    total: int | None = None
    whole: tuple[Tensor, Tensor] | None = None
    batch_size: int | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def complete(self) -> bool:
        """Whether the sample is all there is."""
        return self.total == len(self)

    @property
    def all_x(self) -> Tensor:
        """All inputs in memory, or those of the sample."""
        return self.x if self.whole is None else self.whole[0]

    @property
    def all_y(self) -> Tensor:
        """All targets in memory, or those of the sample."""
        return self.y if self.whole is None else self.whole[1]


def read_rows(data: Any, name: str, seed: int) -> Rows:
    """Read a sample of at most a few thousand rows, drawn at random where rows can be chosen.

    Parameters
    ----------
    data
        ``(X, y)``, a dataset of pairs, a loader or another iterable of batches ``(x, y)``.
    name
        What it is called in notes.
    seed
        Of the sample.
    """
    if isinstance(data, DataLoader):
        rows = _from_loader(data, name, seed)
    elif isinstance(data, IterableDataset):
        rows = _from_batches(map(_alone, data), name)
    elif isinstance(data, Dataset) or (hasattr(data, "__getitem__") and _is_pairs(data)):
        rows = _from_dataset(data, name, seed, default_collate)
    elif isinstance(data, tuple | list) and len(data) == 2:
        rows = _from_arrays(data, name, seed)
    elif isinstance(data, Iterable) and iter(data) is not data:
        rows = _from_batches(iter(data), name)
    else:
        raise Unreadable(
            f"`{name}` must be (X, y), a dataset of pairs or a loader; got {type(data).__name__}."
        )
    if len(rows) == 0:
        raise Unreadable(f"`{name}` has no rows.")
    return rows


def _is_pairs(data: Any) -> bool:
    """Whether an object that is no array holds pairs under whole numbers."""
    if isinstance(data, tuple | list | np.ndarray | Tensor | dict) or not hasattr(data, "__len__"):
        return False
    try:
        return len(data) > 0 and len(data[0]) == 2
    except (TypeError, KeyError, IndexError):
        return False


def _from_loader(loader: DataLoader[Any], name: str, seed: int) -> Rows:
    plain = isinstance(loader.sampler, RandomSampler | SequentialSampler) and (
        type(loader.batch_sampler) is BatchSampler
    )
    if plain and not isinstance(loader.dataset, IterableDataset):
        rows = _from_dataset(loader.dataset, name, seed, loader.collate_fn)
    else:
        with _same_draws(loader):
            rows = _from_batches(iter(loader), name)
    return Rows(rows.x, rows.y, rows.index, rows.total, rows.whole, loader.batch_size)


@contextmanager
def _same_draws(loader: DataLoader[Any]) -> Iterator[None]:
    """Give the loader's own generators their states back."""
    owners = (loader, loader.sampler, loader.batch_sampler)
    generators = {id(g): g for g in (getattr(o, "generator", None) for o in owners) if g}
    states = [(g, g.get_state()) for g in generators.values()]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)


def _from_dataset(data: Any, name: str, seed: int, collate: Any) -> Rows:
    if isinstance(data, TensorDataset) and collate is default_collate:
        parts = data.tensors if len(data.tensors) > 1 else (*data.tensors, *data.tensors)
        return _from_arrays(parts, name, seed)
    total = len(data)
    if total == 0:
        raise Unreadable(f"`{name}` has no rows.")
    x, _ = _pair(collate([data[0]]), name)
    index = _choose(total, x[0].numel(), seed)
    x, y = _pair(collate([data[int(i)] for i in index]), name)
    return Rows(x, y, index, total)


def _from_arrays(data: Sequence[Any], name: str, seed: int) -> Rows:
    x, y = (_tensor(part, name) for part in _with_targets(data, name))
    if len(x) != len(y):
        raise Unreadable(f"`{name}` has {len(x):,} inputs but {len(y):,} targets.")
    index = _choose(len(x), x[:1].numel(), seed)
    chosen = torch.from_numpy(index).to(x.device)
    return Rows(x[chosen], y[chosen.to(y.device)], index, len(x), (x, y))


def _with_targets(data: Sequence[Any], name: str) -> tuple[Any, Any]:
    """Return inputs and targets; without targets, as for an autoencoder, the inputs again."""
    if len(data) != 2:
        raise Unreadable(
            f"`{name}` has {len(data)} tensors a row; only pairs of input and target are examined."
        )
    x, y = data
    return x, x if y is None else y


def _from_batches(batches: Iterator[Any], name: str) -> Rows:
    xs, ys, count, most = [], [], 0, MOST_ROWS
    ended = True
    for batch in batches:
        x, y = _pair(batch, name)
        most = min(most, max(64, MOST_NUMBERS // max(1, x[:1].numel())))
        xs.append(x)
        ys.append(y)
        count += len(x)
        if count >= most:
            ended = False
            break
    if not xs:
        raise Unreadable(f"`{name}` has no rows.")
    try:
        x, y = torch.cat(xs)[:most].clone(), torch.cat(ys)[:most].clone()
    except RuntimeError as error:
        raise Unreadable(f"The batches of `{name}` do not fit together ({error}).") from error
    return Rows(x, y, np.arange(len(x)), count if ended and count <= most else None)


def _pair(batch: Any, name: str) -> tuple[Tensor, Tensor]:
    if isinstance(batch, Tensor):
        return batch, batch
    if not isinstance(batch, tuple | list) or len(batch) not in (1, 2):
        raise Unreadable(
            f"`{name}` has batches of type {type(batch).__name__}; only pairs (x, y) of tensors "
            "are examined."
        )
    x, y = (_tensor(part, name) for part in (batch if len(batch) == 2 else (batch[0], batch[0])))
    return x, y


def _tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, Tensor):
        found = value.detach()
    elif isinstance(value, dict) or (
        isinstance(value, tuple | list) and any(isinstance(v, Tensor | dict) for v in value)
    ):
        raise Unreadable(
            f"`{name}` has inputs or targets of type {type(value).__name__}; only one tensor of "
            "inputs and one of targets are examined."
        )
    else:
        try:
            found = torch.as_tensor(np.ascontiguousarray(value))
        except (TypeError, ValueError) as error:
            raise Unreadable(
                f"`{name}` cannot become tensors: {shorten(str(error), 100)}"
            ) from error
    return found if found.ndim else found.reshape(1)


def _choose(total: int, numbers: int, seed: int) -> np.ndarray:
    most = min(MOST_ROWS, max(64, MOST_NUMBERS // max(1, numbers)))
    if total <= most:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, most, replace=False))


def _alone(item: Any) -> Any:
    """Turn an item of a stream into a batch of one."""
    return default_collate([item])
