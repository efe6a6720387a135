"""Boxes of one image."""

import numpy as np
import pytest

from castalia.data.images import Boxes
from castalia.errors import InvalidData, ShapeMismatch


def test_boxes_are_cut_off_at_the_edges_of_their_image():
    boxes = Boxes([1, 2], [[-5, 2, 8, 40], [3, 3, 4, 4]], difficult=[True, False])
    found = boxes.clipped(20, 6)
    assert found.corners.tolist() == [[0, 2, 6, 20], [3, 3, 4, 4]]
    assert found.difficult.tolist() == [True, False]


def test_swapped_and_flat_boxes_have_no_area():
    boxes = Boxes([0, 0, 0], [[5, 5, 1, 9], [2, 2, 2, 8], [0, 0, 2, 3]])
    assert boxes.areas.tolist() == [0, 0, 6]
    assert len(boxes.take(boxes.areas > 0)) == 1


def test_an_image_may_have_no_boxes():
    boxes = Boxes([], [])
    assert boxes.corners.shape == (0, 4)
    assert len(boxes.take([])) == 0
    assert boxes.clipped(5, 5) == boxes


def test_boxes_are_equal_when_all_their_parts_are():
    one = Boxes(["a"], [[0, 0, 1, 1]], scores=[0.5])
    assert one == Boxes(["a"], [[0, 0, 1, 1]], scores=[0.5])
    assert one != Boxes(["a"], [[0, 0, 1, 1]])
    assert one != Boxes(["b"], [[0, 0, 1, 1]], scores=[0.5])


def test_errors_name_the_shape():
    with pytest.raises(ShapeMismatch, match=r"`corners` must be \(M, 4\), .*got \(1, 3\)"):
        Boxes([0], [[1, 2, 3]])
    with pytest.raises(ShapeMismatch, match=r"`labels` must be one a box, \(1,\); got \(2,\)"):
        Boxes([0, 1], [[0, 0, 1, 1]])
    with pytest.raises(InvalidData, match="finite"):
        Boxes([0], [[0, 0, np.nan, 1]])
