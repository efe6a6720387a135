"""The task of detectors: boxes in, boxes out, of each image.

Inside, boxes are (class, cx, cy, w, h) in shares of the image, padded to one number an image.
Shapes: B images of a block, N boxes the network answers, K candidates, M true boxes, C classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from castalia.base.input_checks import split_target
from castalia.base.params import Interval
from castalia.base.targets import Target, TargetCodec
from castalia.data.images import Boxes, Images
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.vision.average_precision import as_boxes, mean_average_precision
from castalia.nn.bounding_boxes import from_corners, suppress, to_corners
from castalia.utils.text import listing, plural

__all__ = ["BoxCodec", "Detector", "pad_boxes"]

CANDIDATES, MOST = 1000, 300  # boxes of an image before and after suppression
FAINT = 0.005  # scores from which boxes count in the average precision


class BoxCodec(TargetCodec):
    """Boxes of each image: learns ``classes_``, and pads."""

    def check(self, est: Any, adapter: Any, X: Images, y: Any) -> list[Boxes]:
        """Return the boxes of each image in shares of it; those that cannot be are left out."""
        name = type(est).__name__
        if isinstance(y, str) or not hasattr(y, "__len__"):
            raise InvalidData(f"{name}: y must be a list with the boxes of each image; got {y!r}.")
        if len(y) != len(X):
            raise InvalidData(
                f"{name}: X and y must have the same number of rows; got {len(X):,} images and "
                f"boxes of {len(y):,}."
            )
        found = [_boxes_of(item, place, name) for place, item in enumerate(y)]
        _check_pixels(name, found)
        inside = [b.clipped(*size) for b, size in zip(found, X.sizes.tolist(), strict=True)]
        _report(name, found, inside)
        shares = [b.scaled(1 / h, 1 / w) for b, (h, w) in zip(inside, X.sizes, strict=True)]
        return [b.take(b.areas > 0) for b in shares]

    def fit(
        self, est: Any, adapter: Any, X: Images, y: list[Boxes], weight: np.ndarray | None
    ) -> Target:
        """Learn the classes and pad the boxes; difficult ones are not learnt."""
        est.classes_ = _classes(est, y)
        return super().fit(est, adapter, X, y, weight)

    def encode(self, est: Any, y: list[Boxes]) -> Target:
        """Encode further boxes with the classes already learnt."""
        for boxes in y:
            unknown = ~np.isin(boxes.labels, est.classes_)
            if unknown.any():
                raise InvalidData(
                    f"{type(est).__name__}: the validation target must hold only classes seen in "
                    f"training, {listing(est.classes_.tolist(), 'and')}; got "
                    f"{boxes.labels[unknown].tolist()[0]!r}."
                )
        return Target(pad_boxes(y, est.classes_), len(est.classes_))


@dataclass(kw_only=True, eq=False, repr=False)
class Detector:
    """Things on images: their classes and their boxes.

    Parameters
    ----------
    threshold
        Score from which ``predict`` gives a box, from 0 to 1; lower finds more, rightly and
        wrongly.
    overlap
        Overlap above which the better of two boxes of a class removes the other. Crowded things
        need a higher one.
    """

    codec: ClassVar[TargetCodec] = BoxCodec()

    threshold: Annotated[float, Interval(0, 1)] = 0.25
    overlap: Annotated[float, Interval(0, 1)] = 0.5

    def predict(self, X: Any, threshold: float | None = None) -> list[Boxes]:
        """Return the boxes found on each image, in its own pixels, the surest first.

        Parameters
        ----------
        X
            Images.
        threshold
            Score from which a box is given; None takes that of the constructor.

        Returns
        -------
        list of Boxes
            With ``labels``, ``corners`` and ``scores``; at most 300 an image.
        """
        least = self.threshold if threshold is None else threshold
        if not 0 <= least <= 1:
            raise InvalidParameter(
                f"{type(self).__name__}.predict: `threshold` must be from 0 to 1; got {least!r}."
            )
        X = self._checked(X)  # type: ignore[attr-defined]
        sizes, found = X.sizes, list[Boxes]()
        for outputs in self._through(X):  # type: ignore[attr-defined]
            here = sizes[len(found) : len(found) + len(outputs)]
            found += self._boxes(outputs, here, least)
        return found

    def _boxes(self, outputs: Tensor, sizes: np.ndarray, least: float) -> list[Boxes]:
        """Turn a block of outputs into boxes: the best class of each, the best boxes of each."""
        scores, labels = self.module_.scores(outputs).max(dim=-1)  # type: ignore[attr-defined]
        scores, best = scores.topk(min(CANDIDATES, scores.shape[1]), dim=1)  # (B, K), falling
        labels = labels.gather(1, best)
        shares = to_corners(outputs[..., :4].take_along_dim(best[..., None], dim=1)).clamp(0, 1)
        full = (shares[..., 2:] > shares[..., :2]).all(dim=-1) & (scores >= least)
        # Those below the threshold are the last: leave out as many as no image needs.
        n = max(int((scores >= least).sum(dim=1).max()), 1)
        kept = suppress(shares[:, :n], scores[:, :n], labels[:, :n], iou=self.overlap) & full[:, :n]
        found = []
        for image, (height, width) in enumerate(sizes):
            keep = kept[image].nonzero()[:MOST, 0]
            pixels = shares[image, keep] * shares.new_tensor([width, height, width, height])
            names = self.classes_[labels[image, keep].numpy()]  # type: ignore[attr-defined]
            found.append(Boxes(names, pixels.numpy(), scores=scores[image, keep].numpy()))
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean average precision at an overlap of 0.5, as PASCAL VOC measures it.

        Parameters
        ----------
        X
            Images.
        y
            Boxes of each image; None where X holds them.
        sample_weight
            Must be None: a precision has no weights.
        """
        if sample_weight is not None:
            raise InvalidParameter(
                f"{type(self).__name__}.score: `sample_weight` must be None; average precision "
                "ranks boxes, not images."
            )
        X, y = split_target(X, y)
        return mean_average_precision(y, self.predict(X, threshold=FAINT))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def pad_boxes(boxes: Sequence[Boxes], classes: np.ndarray) -> Tensor:
    """Return boxes as (images, M, 5): class number, cx, cy, w, h; -1 and zeros fill the rows.

    Parameters
    ----------
    boxes
        Boxes of each image, in shares of it; difficult ones are left out.
    classes
        The known classes, sorted.

    Examples
    --------
    >>> pad_boxes([Boxes(["b"], [[0, 0, 0.5, 1]]), Boxes([], [])], np.array(["a", "b"]))
    tensor([[[ 1.0000,  0.2500,  0.5000,  0.5000,  1.0000]],
    <BLANKLINE>
            [[-1.0000,  0.0000,  0.0000,  0.0000,  0.0000]]])
    """
    boxes = [b if b.difficult is None else b.take(~b.difficult) for b in boxes]
    most = max([1, *map(len, boxes)])
    padded = torch.zeros(len(boxes), most, 5)
    padded[..., 0] = -1
    for row, found in enumerate(boxes):
        if len(found):
            codes = torch.from_numpy(np.searchsorted(classes, found.labels))
            padded[row, : len(found), 0] = codes.to(padded.dtype)
            padded[row, : len(found), 1:] = from_corners(torch.from_numpy(found.corners))
    return padded


def _classes(owner: Any, y: list[Boxes]) -> np.ndarray:
    """Return the classes of all boxes, sorted."""
    labels = [boxes.labels for boxes in y if len(boxes)]
    if all(b.difficult is not None and b.difficult.all() for b in y if len(b)):
        raise InvalidData(
            f"{type(owner).__name__}: y must hold at least one box with an area inside its "
            f"image that is not marked difficult; got none on {plural(len(y), 'image')}. "
            "Corners are x1, y1, x2, y2 in pixels."
        )
    try:
        return np.unique(np.concatenate(labels))
    except TypeError as error:
        raise InvalidData(
            f"{type(owner).__name__}: the classes of boxes must be of one type, all words or all "
            "numbers."
        ) from error


def _boxes_of(item: Any, place: int, owner: str) -> Boxes:
    """Read the boxes of one image; errors name it."""
    try:
        return as_boxes(item, owner)
    except ValueError as error:
        raise InvalidData(f"{owner}: boxes of image {place} cannot be read. {error}") from error


def _check_pixels(owner: str, boxes: list[Boxes]) -> None:
    """Refuse corners in shares of the image."""
    largest = max((float(b.corners.max()) for b in boxes if len(b)), default=2.0)
    if 0 < largest <= 1:
        raise InvalidData(
            f"{owner}: corners must be x1, y1, x2, y2 in pixels; none is above {largest:g}, so "
            "they seem to be shares of the image. Multiply them by its width and height."
        )


def _report(owner: str, given: list[Boxes], inside: list[Boxes]) -> None:
    """Say once how many boxes were left out or cut, and on which images."""
    empty = {i: n for i, b in enumerate(inside) if (n := int((b.areas == 0).sum()))}
    cut = {
        i: n
        for i, (a, b) in enumerate(zip(given, inside, strict=True))
        if (n := int(((a.corners != b.corners).any(axis=1) & (b.areas > 0)).sum()))
    }
    said = [
        f"{plural(sum(found.values()), 'box').replace('boxs', 'boxes')} {what} ({_places(found)})"
        for found, what in (
            (empty, "without area inside the image left out"),
            (cut, "cut off at the edge"),
        )
        if found
    ]
    if said:
        warnings.warn(f"{owner}: {'; '.join(said)}.", DataWarning, stacklevel=4)


def _places(found: dict[int, int]) -> str:
    shown = ", ".join(str(i) for i in list(found)[:5])
    more = f" and {len(found) - 5:,} more" if len(found) > 5 else ""
    return f"image{'s' if len(found) > 1 else ''} {shown}{more}"
