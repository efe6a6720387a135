"""Sequences as direct estimators read them: what is given becomes padded batches of like length.

Padding is NaN, as missing observations are: models for which a missing step changes nothing
(hidden Markov, Kalman) need no other mask. Shapes: B sequences, T steps, D channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.base import DirectEstimator
from castalia.errors import InvalidData

__all__ = [
    "Bucket",
    "DirectSequenceEstimator",
    "SequenceSet",
    "is_list_of_arrays",
    "read_sequences",
    "read_targets",
]

LARGEST = 1e150


@dataclass(frozen=True)
class Bucket:
    """Sequences of like length, padded with NaN: values (B, T, D), lengths (B,), their places."""

    values: Tensor
    lengths: Tensor
    places: tuple[int, ...]

    @property
    def mask(self) -> Tensor:
        """Which steps are inside their sequence, (B, T)."""
        steps = torch.arange(self.values.shape[1], device=self.values.device)
        return steps < self.lengths[:, None]


@dataclass(frozen=True)
class SequenceSet:
    """Checked sequences and the form they were given in.

    Attributes
    ----------
    parts
        Each sequence, (T, D), float64.
    form
        ``"one"``: an array of one sequence; ``"joined"``: one array and lengths; ``"stack"``: a
        3-D array; ``"list"``.
    flat
        Whether sequences came without the axis of channels.
    """

    parts: tuple[np.ndarray, ...]
    form: str
    flat: bool = False

    @property
    def channels(self) -> int:
        """Number of channels D."""
        return self.parts[0].shape[1]

    @property
    def steps(self) -> int:
        """Steps of all sequences."""
        return sum(map(len, self.parts))

    def buckets(self, device: torch.device | str = "cpu") -> list[Bucket]:
        """Pad sequences to the longest of those whose lengths have as many binary digits."""
        groups: dict[int, list[int]] = {}
        for place, part in enumerate(self.parts):
            groups.setdefault(len(part).bit_length(), []).append(place)
        return [self._bucket(places, device) for _, places in sorted(groups.items())]

    def _bucket(self, places: list[int], device: Any) -> Bucket:
        lengths = [len(self.parts[place]) for place in places]
        if len(set(lengths)) == 1:
            values = np.stack([self.parts[place] for place in places])
        else:
            values = np.full((len(places), max(lengths), self.channels), np.nan)
            for row, place in enumerate(places):
                values[row, : lengths[row]] = self.parts[place]
        at = torch.as_tensor(lengths, device=device)
        return Bucket(torch.from_numpy(values).to(device), at, tuple(places))

    def together(self, buckets: Sequence[Bucket], found: Sequence[Tensor]) -> Any:
        """Return answers for each step, (B, T, …) a bucket, in the form the sequences came in."""
        answers: list[Any] = [None] * len(self.parts)
        for bucket, of_bucket in zip(buckets, found, strict=True):
            arrays = of_bucket.cpu().numpy()
            for row, place in enumerate(bucket.places):
                answers[place] = arrays[row, : len(self.parts[place])]
        if self.form == "list":
            return answers
        return np.stack(answers) if self.form == "stack" else np.concatenate(answers)

    def of_each(self, buckets: Sequence[Bucket], found: Sequence[Tensor]) -> np.ndarray:
        """Return one answer a sequence, (B, …) a bucket, in the order of the sequences."""
        places = np.concatenate([bucket.places for bucket in buckets])
        joined = torch.cat(list(found)).cpu().numpy()
        return joined[np.argsort(places, kind="stable")]


def read_sequences(
    X: Any, owner: str, *, lengths: Any = None, missing: bool = False, channels: int | None = None
) -> SequenceSet:
    """Check sequences of numbers.

    Parameters
    ----------
    X
        One sequence, (T,) or (T, D); several, (B, T, D), a list of arrays, or joined one after the
        other with their ``lengths``.
    owner
        Whose data it is, for messages.
    lengths
        Steps of each sequence in a joined array, or used steps of each in a padded (B, T, D).
    missing
        Whether NaN may stand for a missing observation.
    channels
        Number of channels as in ``fit``; None: any.

    Examples
    --------
    >>> [part.shape for part in read_sequences(np.zeros(5), "model", lengths=[2, 3]).parts]
    [(2, 1), (3, 1)]
    """
    if is_list_of_arrays(X):
        arrays, form = [_numbers(part, owner) for part in X], "list"
        if lengths is not None:
            raise InvalidData(f"{owner}: `lengths` must be None for a list of sequences.")
    else:
        arrays, form = _split(_numbers(X, owner), lengths, owner)
    if not arrays:
        raise InvalidData(f"{owner}: X must hold at least one sequence; got none.")
    parts = tuple(part[:, None] if part.ndim == 1 else part for part in arrays)
    width = parts[0].shape[-1] if channels is None else channels
    for place, part in enumerate(parts):
        _check(part, place, width, owner, missing)
    return SequenceSet(parts, form, arrays[0].ndim == 1)


def read_targets(y: Any, X: SequenceSet, owner: str, *, lengths: Any = None) -> SequenceSet:
    """Check targets of every step, in the form of X; (B, T) goes with a stack (B, T, D)."""
    if y is None:
        raise InvalidData(f"{owner}: requires y to be passed, but the target y is None.")
    n = len(X.parts)
    if X.form in ("stack", "list"):
        if len(y) != n:
            raise InvalidData(
                f"{owner}: X and y must have the same number of rows; got {n:,} and {len(y):,}."
            )
        parts = [_numbers(part, owner) for part in y]
        form = "list"
    else:
        parts, form = _split(_numbers(y, owner), lengths, owner)
    flat = parts[0].ndim == 1
    read = tuple(part[:, None] if part.ndim == 1 else part for part in parts)
    for place, (mine, beside) in enumerate(zip(read, X.parts, strict=True)):
        if len(mine) != len(beside):
            raise InvalidData(
                f"{owner}: X and y must have the same number of steps in each sequence; got "
                f"{len(beside):,} and {len(mine):,} in sequence {place}."
            )
        if not np.isfinite(mine).all():
            raise InvalidData(
                f"{owner}: the target y must hold no NaN or infinity; it does, first in row "
                f"{place}."
            )
        _check(mine, place, read[0].shape[1], f"{owner}, y", False)
    return SequenceSet(read, form, flat)


def is_list_of_arrays(X: Any) -> bool:
    """Whether X is a list of sequences."""
    return isinstance(X, list | tuple) and bool(X) and all(_is_array(part) for part in X)


def _is_array(part: Any) -> bool:
    return isinstance(part, np.ndarray | Tensor) or hasattr(part, "to_numpy")


def _numbers(X: Any, owner: str) -> np.ndarray:
    X = X.detach().cpu().numpy() if isinstance(X, Tensor) else X
    try:
        array = np.asarray(X)
        if array.dtype.kind not in "buifO":
            raise TypeError(f"got values of type {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidData(
            f"{owner}: sequences must be arrays of numbers, (T,) or (T, D) each; {error}. Give "
            "sequences of different lengths as a list of arrays."
        ) from error


def _split(array: np.ndarray, lengths: Any, owner: str) -> tuple[list[np.ndarray], str]:
    """Take one array apart, and say in which form it came."""
    if array.ndim not in (1, 2, 3):
        raise InvalidData(
            f"{owner}: sequences must be (T,), (T, D) or (B, T, D); got shape {array.shape}."
        )
    if lengths is None:
        return (list(array), "stack") if array.ndim == 3 else ([array], "one")
    steps = np.asarray(lengths)
    if steps.ndim != 1 or steps.dtype.kind not in "iu" or (steps < 1).any():
        raise InvalidData(
            f"{owner}: `lengths` must be whole numbers of at least 1, one a sequence; got "
            f"{lengths!r}."
        )
    if array.ndim == 3:
        if len(steps) != len(array) or steps.max() > array.shape[1]:
            raise InvalidData(
                f"{owner}: `lengths` must be {len(array):,} numbers of at most {array.shape[1]:,}, "
                f"the shape of X; got {len(steps):,}, the largest {steps.max():,}."
            )
        return [part[:n] for part, n in zip(array, steps, strict=True)], "list"
    if steps.sum() != len(array):
        raise InvalidData(
            f"{owner}: `lengths` must add up to the {len(array):,} steps of X; got {steps.sum():,}."
        )
    return np.split(array, steps.cumsum()[:-1]), "joined"


def _check(part: np.ndarray, place: int, width: int, owner: str, missing: bool) -> None:
    name = f"sequence {place}"
    if part.ndim != 2 or not part.shape[1]:
        raise InvalidData(f"{owner}: {name} must be (T,) or (T, D); got shape {part.shape}.")
    if not len(part):
        raise InvalidData(f"{owner}: {name} must have at least one step; got none. Drop it.")
    if part.shape[1] != width:
        raise InvalidData(
            f"{owner}: sequences must have {width} channels, as the first or those of fit; got "
            f"{part.shape[1]} in {name}."
        )
    if np.isinf(part).any() or (not missing and np.isnan(part).any()):
        step = int((~np.isfinite(part) if not missing else np.isinf(part)).any(axis=1).argmax())
        allowed = "infinity (NaN marks a missing observation)" if missing else "NaN or infinity"
        raise InvalidData(
            f"{owner}: sequences must hold no {allowed}; {name} does, first in step {step}."
        )
    if part.size and np.nanmax(np.abs(part), initial=0.0) > LARGEST:
        raise InvalidData(
            f"{owner}: sequences must hold numbers below {LARGEST:g}; {name} does not. Divide the "
            "channels by a power of ten."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DirectSequenceEstimator(DirectEstimator):
    """Base of direct estimators on sequences."""

    def _read(self, X: Any, lengths: Any = None, *, reset: bool = False) -> SequenceSet:
        """Check sequences with missing observations: those of ``fit`` with ``reset``."""
        known = None if reset else self.n_features_in_
        found = read_sequences(
            X, type(self).__name__, lengths=lengths, missing=True, channels=known
        )
        self.n_features_in_: int = found.channels
        return found

    def _buckets(self, found: SequenceSet) -> list[Bucket]:
        """Put sequences on the device."""
        return found.buckets(self._tensor(found.parts[0][:1]).device)

    def _sequence_weights(
        self, buckets: Sequence[Bucket], n: int, weight: Any
    ) -> list[Tensor | None]:
        """Return the weights of each bucket's sequences."""
        if weight is None:
            return [None] * len(buckets)
        found = np.asarray(weight, dtype=np.float64)
        if (
            found.shape != (n,)
            or not np.isfinite(found).all()
            or (found < 0).any()
            or not found.any()
        ):
            raise InvalidData(
                f"{type(self).__name__}: `sample_weight` must be {n:,} numbers of at least 0, one "
                f"a sequence, and not all 0; got {weight!r}."
            )
        return [torch.from_numpy(found[list(b.places)]).to(b.values) for b in buckets]
