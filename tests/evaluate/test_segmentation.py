"""Measures of label maps, beside scikit-learn's on flat labels."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score, confusion_matrix, jaccard_score

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import boundary_accuracy, class_iou, mean_iou, pixel_accuracy
from castalia.utils import label_maps as pixels


@pytest.fixture
def maps():
    """True maps with void 255, and predictions right in most places."""
    random = np.random.default_rng(0)
    true = random.integers(0, 5, (6, 20, 30)).astype(np.uint8)
    wrong = random.integers(0, 5, true.shape).astype(np.uint8)
    predicted = np.where(random.random(true.shape) < 0.7, true, wrong)
    true[random.random(true.shape) < 0.1] = 255
    return true, predicted


def test_iou_is_the_jaccard_score_of_the_counted_pixels(maps):
    true, predicted = maps
    counted = true != 255
    expected = jaccard_score(true[counted], predicted[counted], average=None)
    assert_allclose(class_iou(true, predicted, void=255), expected)
    assert_allclose(mean_iou(true, predicted, void=255), expected.mean())


def test_counts_are_those_of_the_confusion_matrix_however_they_are_cut(maps, monkeypatch):
    true, predicted = maps
    monkeypatch.setattr(pixels, "CHUNK", 77)
    counted = true != 255
    expected = confusion_matrix(true[counted], predicted[counted])
    labels, counts = pixels.confusion("test", true, predicted, void=255)
    assert_array_equal(counts[:, :-1], expected)
    assert labels.tolist() == [0, 1, 2, 3, 4]
    assert not counts[:, -1].any()


def test_pixel_accuracy_is_the_accuracy_of_the_counted_pixels(maps):
    true, predicted = maps
    counted = true != 255
    expected = accuracy_score(true[counted], predicted[counted])
    assert_allclose(pixel_accuracy(true, predicted, void=255), expected)


def test_maps_of_different_sizes_and_tensors_count_alike(maps):
    true, predicted = maps
    cut = [slice(None, 4 + 2 * i) for i in range(len(true))]
    lists = [[m[c] for m, c in zip(maps_, cut, strict=True)] for maps_ in (true, predicted)]
    flat = [np.concatenate([m.ravel() for m in one]) for one in lists]
    assert_allclose(class_iou(*lists, void=255), class_iou(*flat, void=255))
    tensors = torch.from_numpy(true), torch.from_numpy(predicted)
    assert mean_iou(*tensors, void=255) == mean_iou(true, predicted, void=255)


def test_a_predicted_void_is_a_miss():
    assert class_iou([[0, 0, 1, 9]], [[0, 9, 1, 0]], void=9).tolist() == [0.5, 1.0]
    assert pixel_accuracy([[0, 0, 1, 9]], [[0, 9, 1, 0]], void=9) == pytest.approx(2 / 3)


def test_a_class_that_is_nowhere_does_not_lower_the_mean():
    assert np.isnan(class_iou([[0, 1]], [[0, 1]], labels=[0, 1, 2])[2])
    assert mean_iou([[0, 1]], [[0, 1]], labels=[0, 1, 2]) == 1.0


def test_labels_set_the_order():
    true, predicted = [[0, 0, 1, 1]], [[0, 1, 1, 1]]
    assert_allclose(class_iou(true, predicted, labels=[1, 0]), [2 / 3, 1 / 2])


def test_boundary_accuracy_looks_near_borders_only():
    true = np.zeros((1, 12, 12), dtype=int)
    true[:, :, 6:] = 1
    far, near = true.copy(), true.copy()
    far[0, 0, 0] = 1
    near[0, 0, 6] = 0
    assert boundary_accuracy(true, far) == 1.0
    assert boundary_accuracy(true, near) == 1 - 1 / 48  # 12 rows, two columns on either side


def test_boundary_accuracy_leaves_void_out():
    true = np.array([[[0, 0, 1, 9]]])
    assert boundary_accuracy(true, [[[0, 0, 1, 0]]], width=1, void=9) == 1.0


def test_what_cannot_be_compared_is_named():
    with pytest.raises(ShapeMismatch, match=r"number 1 has \(2, 3\) and \(2, 2\)"):
        mean_iou([np.zeros((2, 2)), np.zeros((2, 3))], [np.zeros((2, 2)), np.zeros((2, 2))])
    with pytest.raises(ShapeMismatch, match="one map for each of the 2 of `y_true`; got 1"):
        mean_iou(np.zeros((2, 4)), np.zeros((1, 4)))
    with pytest.raises(InvalidData, match="true labels must be among .0, 1.; got 7"):
        mean_iou([[0, 7]], [[0, 1]], labels=[0, 1])
    with pytest.raises(InvalidData, match="must hold a pixel that counts"):
        mean_iou([[9]], [[0]], void=9)
    with pytest.raises(InvalidParameter, match="`width` must be at least 1; got 0"):
        boundary_accuracy([[[0, 1]]], [[[0, 1]]], width=0)
    with pytest.raises(InvalidData, match="a border between two labels"):
        boundary_accuracy([[[1, 1]]], [[[0, 1]]])
