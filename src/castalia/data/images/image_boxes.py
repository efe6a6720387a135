"""The things marked in one image.

A box is (x1, y1, x2, y2) in pixels: x to the right, y downwards, (0, 0) the upper left corner of
the image and (width, height) its lower right one.  Shapes: M boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from castalia.errors import InvalidData, ShapeMismatch

__all__ = ["Boxes"]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Labelled boxes of one image.

    Parameters
    ----------
    labels
        The class of each box, (M,).
    corners
        x1, y1, x2, y2 of each box in pixels, (M, 4); made float32.
    difficult
        Whether a box is hard to recognise, so that finding it is neither rewarded nor asked for,
        (M,); None for no box.
    scores
        How sure a detector is of each box, (M,); None for boxes marked by people.

    Examples
    --------
    >>> boxes = Boxes(["dog", "cat"], [[0, 0, 10, 20], [5, 5, 50, 30]])
    >>> len(boxes), boxes.areas.tolist(), boxes.take([1]).labels.tolist()
    (2, [200.0, 1125.0], ['cat'])
    """

    labels: NDArray[Any]
    corners: NDArray[np.float32]
    difficult: NDArray[np.bool_] | None = None
    scores: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        labels, corners = np.asarray(self.labels), np.asarray(self.corners, dtype=np.float32)
        corners = corners.reshape(-1, 4) if corners.size == 0 else corners
        if corners.ndim != 2 or corners.shape[1] != 4:
            raise ShapeMismatch(
                f"Boxes: `corners` must be (M, 4), x1 y1 x2 y2; got {corners.shape}."
            )
        if not np.isfinite(corners).all():
            raise InvalidData("Boxes: `corners` must be finite numbers; got NaN or infinity.")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "corners", corners)
        for name, kind in (("difficult", np.bool_), ("scores", np.float32)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.asarray(value, dtype=kind))
        for name, value in self._columns().items():
            if value.shape != (len(corners),):
                raise ShapeMismatch(
                    f"Boxes: `{name}` must be one a box, ({len(corners)},); got {value.shape}."
                )

    def _columns(self) -> dict[str, NDArray[Any]]:
        """Return what is there once a box, by name, but for the corners."""
        found = {"labels": self.labels, "difficult": self.difficult, "scores": self.scores}
        return {name: value for name, value in found.items() if value is not None}

    def __len__(self) -> int:
        return len(self.corners)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Boxes):
            return NotImplemented
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return all((a is None) == (b is None) and np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    @property
    def areas(self) -> NDArray[np.float32]:
        """Return the area of each box in square pixels, (M,); none where corners are swapped."""
        sides = (self.corners[:, 2:] - self.corners[:, :2]).clip(min=0)
        return np.asarray(sides.prod(axis=1), dtype=np.float32)

    def take(self, index: ArrayLike) -> Boxes:
        """Return the boxes at these positions, or where a mask is true."""
        chosen = np.asarray(index)
        chosen = chosen if chosen.size else chosen.astype(np.intp)
        columns = {name: value[chosen] for name, value in self._columns().items()}
        return Boxes(corners=self.corners[chosen], **columns)

    def clipped(self, height: float, width: float) -> Boxes:
        """Return the boxes cut off at the edges of an image of this size."""
        limits = np.array([width, height, width, height], dtype=np.float32)
        return Boxes(corners=np.clip(self.corners, 0, limits), **self._columns())

    def scaled(self, down: float, across: float) -> Boxes:
        """Return the boxes of the image made ``down`` times as high, ``across`` times as wide.

        >>> Boxes([0], [[1, 2, 3, 4]]).scaled(2, 10).corners.tolist()
        [[10.0, 4.0, 30.0, 8.0]]
        """
        factors = np.array([across, down, across, down], dtype=np.float32)
        return Boxes(corners=self.corners * factors, **self._columns())
