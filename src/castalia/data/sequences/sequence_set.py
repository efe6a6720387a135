"""A set of sequences: steps of one or many channels, as many steps as each has.

Shapes: n sequences, T steps, C channels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.text import plural

__all__ = ["Sequences", "as_sequences"]


class Sequences:
    """Sequences of equal or different lengths.

    Parameters
    ----------
    steps
        Arrays (T, C), numbers or, for categories, objects.
    channels
        Names of the channels; None: ``c0``, ``c1`` ….
    ids
        What the sequences are called, (n,); None: 0, 1 ….
    times
        When each step is, an array (T,) for each sequence; None where nobody said.
    target
        What is to be predicted of each sequence, (n,), or of each step, n arrays; None.
    notes
        Remarks on what was read.

    Examples
    --------
    >>> found = Sequences([np.zeros((3, 2)), np.ones((5, 2))])
    >>> len(found), found.lengths.tolist(), found.channels
    (2, [3, 5], ['c0', 'c1'])
    """

    def __init__(
        self,
        steps: Sequence[np.ndarray],
        *,
        channels: Sequence[str] | None = None,
        ids: Any = None,
        times: Sequence[np.ndarray] | None = None,
        target: Any = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.steps = list(steps)
        width = self.steps[0].shape[1] if self.steps else 0
        self.channels = [f"c{i}" for i in range(width)] if channels is None else list(channels)
        self.ids = np.arange(len(self.steps)) if ids is None else np.asarray(ids)
        self.times, self.target, self.notes = times, target, list(notes)

    @classmethod
    def padded(cls, array: Any, lengths: Any) -> Sequences:
        """Return the real steps of a padded array, (n, T, C) or (n, T).

        Examples
        --------
        >>> Sequences.padded(np.zeros((2, 4, 1)), [1, 4]).lengths.tolist()
        [1, 4]
        """
        return as_sequences((np.asarray(array), np.asarray(lengths)), "Sequences.padded")

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.steps)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int | np.integer):
            return self.steps[place]
        return self.take(np.arange(len(self))[place])

    def __repr__(self) -> str:
        lengths = self.lengths
        span = f"{lengths.min():,} to {lengths.max():,}" if len(self) else "0"
        return f"Sequences({len(self)} of {span} steps, channels {', '.join(self.channels)})"

    @property
    def lengths(self) -> np.ndarray:
        """Steps of each sequence, (n,)."""
        return np.array([len(each) for each in self.steps], dtype=np.int64)

    @property
    def source(self) -> str:
        """What to call it in a message."""
        return "the data"

    def take(self, index: Any) -> Sequences:
        """Return the sequences at these positions."""
        chosen = np.arange(len(self))[np.asarray(index)].tolist()
        return Sequences(
            [self.steps[i] for i in chosen],
            channels=self.channels,
            ids=self.ids[chosen],
            times=None if self.times is None else [self.times[i] for i in chosen],
            target=_chosen(self.target, chosen),
            notes=self.notes,
        )

    def features(self) -> Sequences:
        """Return the same without the target."""
        return Sequences(
            self.steps, channels=self.channels, ids=self.ids, times=self.times, notes=self.notes
        )

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        mark = hashlib.sha256(repr((self.channels, self.lengths.tolist())).encode())
        for each in self.steps:
            plain = each.dtype.kind != "O"
            mark.update(np.ascontiguousarray(each).tobytes() if plain else repr(each).encode())
        return mark.hexdigest()


def _chosen(target: Any, chosen: list[int]) -> Any:
    if target is None:
        return None
    return target[chosen] if isinstance(target, np.ndarray) else [target[i] for i in chosen]


def as_sequences(X: Any, owner: str) -> Sequences:
    """Return X as sequences, or say what about it is none.

    Parameters
    ----------
    X
        ``Sequences``; an array (n, T, C) or (n, T); a padded array (n, T, C) with lengths (n,), as
        a tuple; or a list of arrays (T, C) or (T,), or of lists of words.
    owner
        Who asks, for messages.

    Examples
    --------
    >>> as_sequences([[1.0, 2.0], [3.0]], "RNNClassifier").lengths.tolist()
    [2, 1]
    """
    if isinstance(X, Sequences):
        return X
    if isinstance(X, tuple) and len(X) == 2 and np.ndim(X[1]) == 1 and np.ndim(X[0]) == 3:
        return Sequences(_cut(_array(X[0]), np.asarray(X[1]), owner))
    if hasattr(X, "columns"):
        raise InvalidData(
            f"{owner}: sequences must be arrays or `Sequences`; got a table. Say which column "
            "names the sequence and which the time: castalia.data.read_sequences(X, group=…, "
            "time=…)."
        )
    X = _array(X) if isinstance(X, Tensor | np.ndarray) else X
    if isinstance(X, str) or not hasattr(X, "__len__"):
        raise InvalidData(f"{owner}: sequences must be arrays (T, C), several of them; got {X!r}.")
    if not len(X):
        raise InvalidData(f"{owner}: there must be one sequence at least; got none.")
    steps = [_steps(each, i, owner) for i, each in enumerate(X)]
    width = steps[0].shape[1]
    other = next((i for i, each in enumerate(steps) if each.shape[1] != width), None)
    if other is not None:
        raise ShapeMismatch(
            f"{owner}: sequences must have equally many channels; the first has {width} and "
            f"sequence {other} has {steps[other].shape[1]}."
        )
    return Sequences(steps)


def _array(X: Any) -> np.ndarray:
    return X.detach().cpu().numpy() if isinstance(X, Tensor) else np.asarray(X)


def _cut(array: np.ndarray, lengths: np.ndarray, owner: str) -> list[np.ndarray]:
    """Return the real steps of padded rows."""
    array = array[..., None] if array.ndim == 2 else array
    if len(lengths) != len(array):
        raise ShapeMismatch(
            f"{owner}: lengths must be one for each of the {plural(len(array), 'sequence')}; got "
            f"{len(lengths)}."
        )
    bad = (lengths < 1) | (lengths > array.shape[1]) | (lengths != np.floor(lengths))
    if bad.any():
        raise InvalidData(
            f"{owner}: lengths must be whole numbers from 1 to {array.shape[1]}, the steps of the "
            f"padded array; got {lengths[bad][0]} for sequence {int(bad.argmax())}."
        )
    pairs = zip(array, lengths.astype(int), strict=True)
    return [_steps(row[:length], i, owner) for i, (row, length) in enumerate(pairs)]


def _steps(each: Any, place: int, owner: str) -> np.ndarray:
    """Return one sequence as (T, C), numbers or objects."""
    try:
        array = _array(each)
        if array.dtype.kind == "U" and not isinstance(each, np.ndarray):
            array = np.array(each, dtype=object)  # numbers beside words stay numbers
    except ValueError as error:
        raise ShapeMismatch(
            f"{owner}: the steps of a sequence must have equally many channels; sequence {place} "
            f"has not ({error})."
        ) from error
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.dtype.kind not in "buifUSO":
        raise InvalidData(
            f"{owner}: a sequence must be (T,) or (T, C), numbers or words; sequence {place} has "
            f"shape {array.shape} and dtype {array.dtype}."
        )
    if not array.size:
        raise InvalidData(
            f"{owner}: every sequence must have a step at least; sequence {place} is empty."
        )
    if array.dtype.kind in "USO":
        return array.astype(object)
    return array.astype(np.float32 if array.dtype == np.float32 else np.float64)
