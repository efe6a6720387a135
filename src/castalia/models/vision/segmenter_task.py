"""The task of labelling every pixel: masks become class codes, scores become masks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.base.input_checks import split_target
from castalia.base.targets import Target, TargetCodec
from castalia.data.images import Images, as_images
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision.mask_targets import check_masks, class_weights, mask_codes
from castalia.utils.label_maps import confusion, iou_from, map_values

__all__ = ["Segmenter"]

MOST = 255  # classes: codes are bytes, and one of them is void


class MaskCodec(TargetCodec):
    """A class at every pixel: learns ``classes_`` and ``class_weight_``."""

    def check(self, est: Any, adapter: Any, X: Images, y: Any) -> np.ndarray:
        """Return the masks at the size that the network sees, (N, H, W)."""
        if est.void is not None and not isinstance(est.void, Integral):
            raise InvalidParameter(
                f"{type(est).__name__}: `void` must be a whole number or None; got {est.void!r}."
            )
        return check_masks(type(est).__name__, X.sizes, y, adapter.wanted)

    def fit(
        self, est: Any, adapter: Any, X: Images, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn the classes and their weights, and return codes."""
        name, values = type(est).__name__, map_values(y)
        est.classes_ = values if est.void is None else values[values != est.void]
        _check_number(name, est.classes_)
        codes, counts = mask_codes(name, y, est.classes_, est.void)
        empty = np.flatnonzero(counts.sum(axis=1) == 0)
        if len(empty):
            raise InvalidData(
                f"{name}: every mask must hold a pixel that is not void; got {len(empty):,} of "
                f"{len(y):,} with void={est.void!r} only, first in row {empty[0]}. Leave those "
                "images out."
            )
        est.class_weight_ = class_weights(name, est.class_weight, est.classes_, counts, weight)
        return Target(torch.from_numpy(codes), len(est.classes_), weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Encode further masks with the classes already learnt."""
        codes, _ = mask_codes(type(est).__name__, y, est.classes_, est.void)
        return Target(torch.from_numpy(codes), len(est.classes_))


def _check_number(owner: str, classes: np.ndarray) -> None:
    found = len(classes)
    if not 2 <= found <= MOST:
        got = f"one class, {classes.tolist()[0]!r}" if found == 1 else f"{found:,}"
        raise InvalidData(
            f"{owner}: the masks must hold from 2 to {MOST} classes; got {got}. A mask holds "
            "the number of a class at every pixel, and lossless files keep it."
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Segmenter:
    """One of several classes for every pixel; the class values are learnt from the masks.

    Parameters
    ----------
    class_weight
        None, ``"balanced"`` (inverse frequency of the class among the pixels), ``"median"``
        (median frequency balancing: frequencies among the pixels of images that show the class,
        their median over each), or a dict from class to weight.
    void
        Value of mask pixels that never count, such as 255; None: all count.
    """

    codec: ClassVar[TargetCodec] = MaskCodec()

    class_weight: Any = None
    void: Any = None

    def _scores(self, X: Any) -> Iterator[Tensor]:
        """Yield scores (B, K, H, W) at the images' own size, images of one size together."""
        images = as_images(X, type(self).__name__)
        all_sizes, start = images.sizes, 0
        for block in self._forward(images):  # type: ignore[attr-defined]
            sizes = all_sizes[start : start + len(block)]
            start += len(block)
            together = len(block) if (sizes == sizes[0]).all() else 1
            for part, size in zip(block.split(together), sizes[::together], strict=True):
                yield _enlarged(part, (int(size[0]), int(size[1])))

    def predict(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Return the class of every pixel, (N, H, W); a list of (H, W) where sizes differ."""
        classes: np.ndarray = self.classes_  # type: ignore[attr-defined]
        return _joined([classes[s.argmax(dim=1).numpy()] for s in self._scores(X)])

    def predict_proba(self, X: Any) -> np.ndarray | list[np.ndarray]:
        """Return the probability of each class at every pixel, (N, H, W, K), or a list of them."""
        return _joined([s.softmax(dim=1).movedim(1, -1).numpy() for s in self._scores(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean over classes of intersection over union, void pixels left out.

        Parameters
        ----------
        X
            Images.
        y
            Masks of the images' own size; None where X is a set of images that has them.
        """
        X, y = split_target(X, y)
        images = as_images(X, type(self).__name__)
        y = check_masks(type(self).__name__, images.sizes, y, keep=True)
        _, counts = confusion(type(self).__name__, y, self.predict(images), void=self.void)
        return float(np.nanmean(iou_from(counts)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.one_d_labels = False
        tags.target_tags.two_d_labels = False
        return tags


def _enlarged(scores: Tensor, size: tuple[int, int]) -> Tensor:  # (B, K, h, w)
    if tuple(scores.shape[2:]) == size:
        return scores
    return F.interpolate(scores, size, mode="bilinear", align_corners=False)


def _joined(parts: list[np.ndarray]) -> np.ndarray | list[np.ndarray]:
    """Return one array, or a list of one entry an image where sizes differ."""
    if len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return [one for part in parts for one in part]
