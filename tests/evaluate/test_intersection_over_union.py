"""Overlap of boxes and of masks."""

import numpy as np
import pytest

from castalia.errors import ShapeMismatch
from castalia.evaluate import iou


def test_the_boxes_of_the_notes_overlap_by_their_number():
    pair = (57, 133, 329, 265), (153, 95, 396, 218)
    assert iou(*pair) == pytest.approx(14_960 / (35_904 + 29_889 - 14_960))
    assert iou(*pair, inclusive=True) == pytest.approx(0.296477, abs=1e-6)


def test_every_pair_of_two_lists_of_boxes():
    boxes = np.array([[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]])
    found = iou(boxes[:, None], boxes[None])
    np.testing.assert_allclose(found, [[1, 1 / 3, 0], [1 / 3, 1, 0], [0, 0, 1]])


def test_masks_overlap_by_the_share_of_their_pixels():
    a, b = np.zeros((2, 4, 4), dtype=bool)
    a[:2], b[1:3] = True, True
    assert iou(a, b) == pytest.approx(4 / 12)
    assert iou(a, a) == 1.0
    assert np.isnan(iou(a & ~a, b & ~b))


def test_what_is_neither_is_refused():
    with pytest.raises(ShapeMismatch, match=r"boxes \(…, 4\) or masks .* got shapes \(3,\)"):
        iou([1, 2, 3], [1, 2, 3])
    with pytest.raises(ShapeMismatch, match=r"masks must have one shape; got \(2,\) and \(3,\)"):
        iou(np.ones(2, dtype=bool), np.ones(3, dtype=bool))
