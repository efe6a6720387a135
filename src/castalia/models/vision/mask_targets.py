"""Masks as targets: checked against their images, brought to one size, counted and encoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from castalia.data.tables.column_moments import spans
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.label_maps import Maps, as_maps

__all__ = ["check_masks", "class_weights", "mask_codes"]

PIXELS = 1 << 20  # encoded at once


def check_masks(
    owner: str,
    sizes: np.ndarray,
    y: Any,
    size: tuple[int, int] | None = None,
    *,
    keep: bool = False,
) -> Any:
    """Return masks of whole numbers, each of its image's size, brought to one size.

    Parameters
    ----------
    owner
        Who asks, for the messages.
    sizes
        Height and width of each image, (N, 2).
    y
        One mask an image: an array or tensor (N, H, W), or a list of (H, W).
    size
        Height and width to bring them to; None: all have one size already.
    keep
        Whether masks keep their sizes, which may then differ.
    """
    if y is None:
        raise InvalidData(f"{owner}: requires y to be passed, but the target y is None.")
    masks = as_maps(y)
    if len(masks) != len(sizes):
        raise InvalidData(
            f"{owner}: X and y must have the same number of rows; got {len(sizes):,} and "
            f"{len(masks):,}."
        )
    _check_sizes(owner, masks, sizes)
    masks = _whole(owner, masks)
    if keep or (size is None and isinstance(masks, np.ndarray)):
        return masks
    if size is None:
        found = [tuple(map(int, one)) for one in np.unique(sizes, axis=0)]
        raise InvalidData(
            f"{owner}: images must have one size; got {len(found):,} sizes, such as {found[0]} "
            f"and {found[1]}. Set `image_size` to bring images and masks to one."
        )
    return resized_masks(masks, size)


def _check_sizes(owner: str, masks: Maps, sizes: np.ndarray) -> None:
    found = [mask.shape for mask in masks]
    bad = [i for i, shape in enumerate(found) if shape != tuple(sizes[i])]
    if bad:
        i = bad[0]
        raise InvalidData(
            f"{owner}: every mask must have the size of its image; got {len(bad):,} of "
            f"{len(found):,} that have not, first in row {i}: {found[i]} for an image of "
            f"{tuple(map(int, sizes[i]))}. A mask is (height, width), a class number a pixel."
        )


def _whole(owner: str, masks: Maps) -> Maps:
    """Return masks of whole numbers; floats are taken where they are whole."""
    if isinstance(masks, list):
        kinds = {mask.dtype.kind for mask in masks}
    else:
        kinds = {masks.dtype.kind}
    if kinds <= set("iu"):
        return masks
    if kinds <= set("biu"):
        return masks * 1 if isinstance(masks, np.ndarray) else [mask * 1 for mask in masks]
    if not kinds <= set("fbiu"):
        raise InvalidData(f"{owner}: masks must hold whole numbers; got {masks[0].dtype} values.")
    bad = [i for i, mask in enumerate(masks) if not (np.mod(mask, 1) == 0).all()]
    if bad:
        wrong = masks[bad[0]]
        value = wrong[np.mod(wrong, 1) != 0][0]
        rule = "whole numbers" if np.isfinite(value) else "no NaN, infinity or missing value"
        raise InvalidData(
            f"{owner}: the masks must hold {rule}; got {value:g} in {len(bad):,} of "
            f"{len(masks):,} masks, first in row {bad[0]}."
        )
    if isinstance(masks, np.ndarray):
        return masks.astype(np.int64)
    return [mask.astype(np.int64) for mask in masks]


def resized_masks(masks: Maps, size: tuple[int, int]) -> np.ndarray:
    """Return masks at one size: each pixel gets the label of the nearest old one."""
    if isinstance(masks, np.ndarray) and masks.shape[1:] == tuple(size):
        return masks
    result = np.empty((len(masks), *size), dtype=np.result_type(*{m.dtype for m in masks}))
    for i, mask in enumerate(masks):
        # Doubles hold every label that matters; interpolation knows no whole numbers.
        values = torch.from_numpy(mask.astype(np.float64))[None, None]
        result[i] = F.interpolate(values, size, mode="nearest-exact")[0, 0].numpy()
    return result


def mask_codes(
    owner: str, masks: np.ndarray, classes: np.ndarray, void: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return class codes in bytes, void as K, and how many pixels of each class a mask has.

    Returns
    -------
    codes : ndarray of uint8, (N, H, W)
    counts : ndarray, (N, K)
    """
    k = len(classes)
    codes = np.empty(masks.shape, dtype=np.uint8)
    counts = np.empty((len(masks), k), dtype=np.int64)
    for span in spans(len(masks), max(1, PIXELS // max(1, masks[:1].size))):
        part = masks[span]
        code = np.searchsorted(classes, part).clip(max=k - 1)
        known = classes[code] == part
        if void is not None:
            code[part == void] = k
            known |= part == void
        if not known.all():
            raise _unknown(owner, masks, classes, void)
        codes[span] = code
        place = code.reshape(len(part), -1) + (k + 1) * np.arange(len(part))[:, None]
        found = np.bincount(place.ravel(), minlength=(k + 1) * len(part))
        counts[span] = found.reshape(-1, k + 1)[:, :k]
    return codes, counts


def _unknown(owner: str, masks: np.ndarray, classes: np.ndarray, void: Any) -> InvalidData:
    """Say which labels the training has not seen, and where."""
    known = classes if void is None else np.append(classes, void)
    rows = np.flatnonzero([not np.isin(mask, known).all() for mask in masks])
    new = np.setdiff1d(masks[rows[0]], known)
    return InvalidData(
        f"{owner}: masks must hold only classes seen in training, {classes.tolist()[:12]}; got "
        f"{new.tolist()[0]!r} in row {rows[0]}, and {len(rows):,} of {len(masks):,} masks hold "
        "such a label. Set `void` to a label that should not count."
    )


def class_weights(
    owner: str, setting: Any, classes: np.ndarray, counts: np.ndarray, weight: np.ndarray | None
) -> np.ndarray | None:
    """Return the weight of each class, or None where all count the same.

    Parameters
    ----------
    owner
        Who asks, for the messages.
    setting
        None, ``"balanced"``, ``"median"`` or a dict.
    classes
        Class values, (K,).
    counts
        Pixels of each class in each mask, (N, K).
    weight
        Weights of the images, or None.
    """
    if setting is None:
        return None
    if isinstance(setting, dict):
        unknown = [label for label in setting if label not in classes]
        if unknown:
            raise InvalidParameter(
                f"{owner}: `class_weight` must name classes of y; got {unknown[0]!r}, which is not "
                f"one of {classes.tolist()[:12]}."
            )
        return np.array([float(setting.get(label, 1.0)) for label in classes.tolist()])
    if setting not in ("balanced", "median"):
        raise InvalidParameter(
            f"{owner}: `class_weight` must be None, 'balanced', 'median' or a dict; got "
            f"{setting!r}."
        )
    counts = counts * (1.0 if weight is None else weight[:, None])
    pixels = counts.sum(axis=0)  # (K,)
    if setting == "balanced":
        return pixels.sum() / (len(classes) * pixels)
    seen = (counts.sum(axis=1, keepdims=True) * (counts > 0)).sum(axis=0)  # of images with k
    frequency = pixels / seen
    return np.median(frequency) / frequency
