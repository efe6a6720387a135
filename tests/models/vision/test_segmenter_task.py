"""Masks as targets: what is learnt from them, what is refused, what is predicted."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import cross_val_score

from castalia import Training
from castalia.base import load, save
from castalia.data import Images, augment
from castalia.data.images import as_images
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import mean_iou
from castalia.models.vision import UNetSegmenter
from castalia.models.vision.mask_targets import class_weights, mask_codes, resized_masks
from castalia.testing import toy

X, Y = toy("shapes")
X, Y = X[:24], Y[:24]


def small(**settings):
    quick = {"widths": (4, 8), "depth": 1, "epochs": 1, "batch_size": 8, "random_state": 0}
    return UNetSegmenter(**{**quick, **settings})


@pytest.fixture(scope="module")
def fitted():
    return small().fit(X, Y)


def test_class_values_are_learnt_and_given_back(fitted):
    values = np.array([7, -3, 40])
    other = small().fit(X, values[Y])
    assert other.classes_.tolist() == [-3, 7, 40]
    assert set(np.unique(other.predict(X))) <= {-3, 7, 40}
    assert fitted.predict(X).dtype == Y.dtype


def test_probabilities_sum_to_one_and_their_largest_is_predicted(fitted):
    probability = fitted.predict_proba(X[:5])
    assert probability.shape == (5, 24, 24, 3)
    assert_allclose(probability.sum(axis=-1), 1, rtol=1e-5)
    assert_array_equal(fitted.classes_[probability.argmax(axis=-1)], fitted.predict(X[:5]))


def test_the_score_is_the_mean_iou(fitted):
    assert fitted.score(X, Y) == mean_iou(Y, fitted.predict(X))
    assert fitted.score(Images(as_images(X).source, Y)) == fitted.score(X, Y)


def test_void_is_no_class_and_changes_nothing_else():
    holed = Y.copy()
    holed[:, :6] = 255
    model = small(void=255).fit(X, holed)
    assert model.classes_.tolist() == [0, 1, 2]
    noisy = np.where(holed == 255, np.random.default_rng(0).integers(0, 3, Y.shape), holed)
    other = small().fit(X, noisy)  # the same pixels, counted
    assert not np.array_equal(model.predict_proba(X), other.predict_proba(X))
    full = model.predict(X).copy()
    full[:, :6] = 1 - full[:, :6]
    assert mean_iou(holed, full, void=255) == model.score(X, holed)


def test_what_stands_under_void_cannot_matter():
    a, b = X.copy(), Y.copy()
    b[:, 20:] = 255
    first = small(void=255).fit(a, b).module_.state_dict()
    again = small(void=99).fit(a, np.where(b == 255, 99, b)).module_.state_dict()
    assert all(first[name].equal(again[name]) for name in first)


def test_masks_are_kept_in_bytes_with_void_after_the_last_class():
    masks = np.array([[[5, 9], [255, 9]]])
    codes, counts = mask_codes("me", masks, np.array([5, 9]), 255)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [[[0, 1], [2, 1]]]
    assert counts.tolist() == [[1, 2]]


def test_class_weights_are_inverse_or_median_frequencies():
    counts = np.array([[80, 20, 0], [60, 0, 40]])
    classes = np.array([0, 1, 2])
    assert class_weights("me", None, classes, counts, None) is None
    balanced = class_weights("me", "balanced", classes, counts, None)
    assert_allclose(balanced, 200 / (3 * np.array([140, 20, 40])))
    assert_allclose((balanced * counts.sum(axis=0)).sum(), counts.sum())  # 1 on average
    frequency = np.array([140 / 200, 20 / 100, 40 / 100])  # among images that show the class
    median = class_weights("me", "median", classes, counts, None)
    assert_allclose(median, 0.4 / frequency)
    assert_allclose(class_weights("me", {2: 5}, classes, counts, None), [1, 1, 5])
    twice = class_weights("me", "balanced", classes, counts, np.array([2.0, 1.0]))
    assert_allclose(twice, 300 / (3 * np.array([220, 40, 40])))


def test_class_weights_reach_the_loss():
    model = small(class_weight="balanced").fit(X, Y)
    assert_allclose(model.class_weight_, Y.size / (3 * np.bincount(Y.ravel())))
    objective = model._objective(model.spec_)
    assert_allclose(objective.class_weight.numpy(), model.class_weight_, rtol=1e-6)


def test_pictures_of_several_sizes_get_masks_of_their_own_size():
    pictures = [X[0], X[1][:20, :18], X[2][:16], X[3]] * 3
    masks = [Y[0], Y[1][:20, :18], Y[2][:16], Y[3]] * 3
    model = small(image_size=(24, 16)).fit(pictures, masks)
    assert model.spec_.extra["size"] == [24, 16]
    found = model.predict(pictures)
    assert [m.shape for m in found] == [m.shape for m in masks]
    assert [p.shape for p in model.predict_proba(pictures[:2])] == [(24, 24, 3), (20, 18, 3)]
    assert model.score(pictures, masks) == mean_iou(masks, found)


def test_masks_are_brought_to_a_size_by_the_nearest_pixel():
    masks = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    assert resized_masks(masks, (2, 2)).tolist() == [[[5, 7], [13, 15]]]
    assert_array_equal(resized_masks(masks, (8, 8)), masks.repeat(2, axis=1).repeat(2, axis=2))


def test_arrays_tensors_lists_and_floats_of_masks_are_one(fitted):
    expected = fitted.predict_proba(X)
    for y in (torch.from_numpy(Y), list(Y), Y.astype(float), Y.tolist()):
        assert_array_equal(small().fit(X, y).predict_proba(X), expected)


def test_masks_of_truth_values_will_do():
    assert small().fit(X, Y > 0).classes_.tolist() == [0, 1]


def test_saved_models_answer_alike(fitted, tmp_path):
    model = small(class_weight="median", void=255).fit(X, Y)
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


def test_given_validation_masks_are_encoded_by_the_learnt_classes():
    values = np.array([3, 5, 8])
    training = Training(validation=(X[:4], values[Y[:4]]))
    assert small(training=training).fit(X, values[Y]).history_[0]["val_loss"] > 0
    training = Training(validation=(X[:4], values[Y[:4]] + 1))
    with pytest.raises(InvalidData, match=r"seen in training, \[3, 5, 8\]; got 4 in row 0, and 4"):
        small(training=training).fit(X, values[Y])


def test_augmentation_moves_masks_along_and_calls_the_outside_void(monkeypatch):
    seen = {}

    class Spy:
        def __init__(self, augment, void):
            seen.update(augment=augment, void=void)

        def __call__(self, x, y):
            seen.update(x=x.shape, y=y.shape)
            return x, y

    monkeypatch.setattr("castalia.models.vision.image_segmenter.WithMasks", Spy)
    flip = augment.Flip()
    small(augment=flip, training=Training(validation=0)).fit(X, Y)
    assert seen["augment"] is flip
    assert seen["void"] == 3
    assert seen["y"] == (8, 24, 24)


BAD = {
    "other_size": (
        lambda: Y[:, :-1],
        r"got 24 of 24 that have not, first in row 0: \(23, 24\) for an image of \(24, 24\)",
    ),
    "one_hot": (lambda: np.eye(3)[Y], r"first in row 0: \(24, 24, 3\)"),
    "one_class": (lambda: np.zeros_like(Y), "from 2 to 255 classes; got one class, 0"),
    "picture": (lambda: np.arange(Y.size).reshape(Y.shape), "classes; got 13,824"),
    "fractions": (lambda: Y + 0.5, r"whole numbers; got 0.5 in 24 of 24 masks, first in row 0"),
    "words": (lambda: np.array(["a", "b"])[Y % 2], "must hold whole numbers; got <U1"),
    "none": (lambda: None, "the target y is None"),
    "short": (lambda: Y[:-2], "same number of rows; got 24 and 22"),
}


@pytest.mark.parametrize("name", BAD)
def test_masks_that_cannot_be_used_are_named_and_counted(name):
    make, pattern = BAD[name]
    with pytest.raises(InvalidData, match=f"UNetSegmenter: .*{pattern}"):
        small().fit(X, make())


def test_masks_of_void_only_are_named_and_counted():
    empty = Y.copy()
    empty[[5, 9]] = 255
    with pytest.raises(InvalidData, match="got 2 of 24 with void=255 only, first in row 5"):
        small(void=255).fit(X, empty)


def test_several_sizes_need_an_image_size():
    with pytest.raises(InvalidData, match=r"got 2 sizes, such as \(20, 24\) and \(24, 24\)"):
        small().fit([X[0], X[1][:20]], [Y[0], Y[1][:20]])


@pytest.mark.parametrize("setting", ["rare", {9: 2.0}], ids=["word", "unknown class"])
def test_class_weights_that_mean_nothing_are_refused(setting):
    with pytest.raises(InvalidParameter, match="UNetSegmenter: `class_weight` must"):
        small(class_weight=setting).fit(X, Y)


def test_void_must_be_a_whole_number():
    with pytest.raises(InvalidParameter, match="`void` must be a whole number or None; got '255'"):
        small(void="255").fit(X, Y)


def test_cross_validation_cuts_pictures_and_masks_alike():
    found = cross_val_score(small(), X, Y, cv=3)
    assert found.shape == (3,)
    assert ((found > 0) & (found < 1)).all()
