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
from castalia.data.sequences import Sequences, as_sequences
from castalia.errors import InvalidData

__all__ = [
    "Bucket",
    "DirectSequenceEstimator",
    "Observations",
    "is_list_of_arrays",
    "read_observations",
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
class Observations:
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


def read_observations(
    X: Any, owner: str, *, lengths: Any = None, missing: bool = False, channels: int | None = None
) -> Observations:
    """Check sequences of numbers.

    Parameters
    ----------
    X
        One sequence, (T,) or (T, D); several, (B, T, D), a list of arrays, ``Sequences``, or joined
        one after the other with their ``lengths``.
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
    >>> [part.shape for part in read_observations(np.zeros(5), "model", lengths=[2, 3]).parts]
    [(2, 1), (3, 1)]
    """
    found, form, flat = _formed(X, lengths, owner)
    width = found[0].shape[1]
    if channels is not None and width != channels:
        raise InvalidData(
            f"{owner}: sequences must have {channels} channels, as in fit; got {width}."
        )
    parts = tuple(_numbers(part, owner) for part in found)
    for place, part in enumerate(parts):
        _check(part, place, owner, missing)
    return Observations(parts, form, flat)


def read_targets(y: Any, X: Observations, owner: str, *, lengths: Any = None) -> Observations:
    """Check targets of every step, in the form of X; (B, T) goes with a stack (B, T, D)."""
    if y is None:
        raise InvalidData(f"{owner}: requires y to be passed, but the target y is None.")
    if X.form in ("stack", "list"):
        if len(y) != len(X.parts):
            raise InvalidData(
                f"{owner}: X and y must have the same number of rows; got {len(X.parts):,} and "
                f"{len(y):,}."
            )
        found, form, flat = as_sequences(y, owner), "list", np.ndim(y[0]) == 1
    else:
        found, form, flat = _formed(y, lengths, owner)
    parts = tuple(_numbers(part, owner) for part in found)
    for place, (mine, beside) in enumerate(zip(parts, X.parts, strict=True)):
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
        _check(mine, place, f"{owner}, y", False)
    return Observations(parts, form, flat)


def is_list_of_arrays(X: Any) -> bool:
    """Whether X is several sequences, one by one: a list of arrays, or ``Sequences``."""
    if isinstance(X, Sequences):
        return True
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


def _formed(X: Any, lengths: Any, owner: str) -> tuple[Sequences, str, bool]:
    """Return sequences, the form they came in, and whether it had no axis of channels."""
    if is_list_of_arrays(X):
        if lengths is not None:
            raise InvalidData(f"{owner}: `lengths` must be None for a list of sequences.")
        flat = not isinstance(X, Sequences) and np.ndim(X[0]) == 1
        return as_sequences(X, owner), "list", flat
    array = _numbers(X, owner)
    if array.ndim not in (1, 2, 3):
        raise InvalidData(
            f"{owner}: sequences must be (T,), (T, D) or (B, T, D); got shape {array.shape}."
        )
    steps = None if lengths is None else _lengths(lengths, owner)
    if array.ndim == 3:
        given = array if steps is None else (array, steps)
        return as_sequences(given, owner), "stack" if steps is None else "list", False
    flat = array.ndim == 1
    if steps is None:
        return as_sequences([array], owner), "one", flat
    if steps.sum() != len(array):
        raise InvalidData(
            f"{owner}: `lengths` must add up to the {len(array):,} steps of X; got {steps.sum():,}."
        )
    return as_sequences(np.split(array, steps.cumsum()[:-1]), owner), "joined", flat


def _lengths(lengths: Any, owner: str) -> np.ndarray:
    steps = np.asarray(lengths)
    if steps.ndim != 1 or steps.dtype.kind not in "iu" or (steps < 1).any():
        raise InvalidData(
            f"{owner}: `lengths` must be whole numbers of at least 1, one a sequence; got "
            f"{lengths!r}."
        )
    return steps


def _check(part: np.ndarray, place: int, owner: str, missing: bool) -> None:
    name = f"sequence {place}"
    wrong = np.isinf(part) if missing else ~np.isfinite(part)
    if wrong.any():
        step = int(wrong.any(axis=1).argmax())
        allowed = "infinity (NaN marks a missing observation)" if missing else "NaN or infinity"
        raise InvalidData(
            f"{owner}: sequences must hold no {allowed}; {name} does, first in step {step}."
        )
    if np.nanmax(np.abs(part), initial=0.0) > LARGEST:
        raise InvalidData(
            f"{owner}: sequences must hold numbers below {LARGEST:g}; {name} does not. Divide the "
            "channels by a power of ten."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class DirectSequenceEstimator(DirectEstimator):
    """Base of direct estimators on sequences."""

    def _read(self, X: Any, lengths: Any = None, *, reset: bool = False) -> Observations:
        """Check sequences with missing observations: those of ``fit`` with ``reset``."""
        known = None if reset else self.n_features_in_
        found = read_observations(
            X, type(self).__name__, lengths=lengths, missing=True, channels=known
        )
        self.n_features_in_: int = found.channels
        return found

    def _buckets(self, found: Observations) -> list[Bucket]:
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
