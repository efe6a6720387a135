"""A classifier slid over larger images: windows, pooled maps, files of several sizes."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from castalia import LeNetClassifier, Training
from castalia.base import load, save
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.vision import ConvNetClassifier, FullyConvolutional
from castalia.testing.toys import stripes


@pytest.fixture(scope="module")
def small():
    X, y = stripes()
    names = np.array(["across", "down", "aslant"])[y]
    return LeNetClassifier(epochs=8, lr=0.01, random_state=0).fit(X, names)


@pytest.fixture(scope="module")
def model(small):
    return FullyConvolutional(estimator=small).fit()


def test_a_fitted_classifier_is_used_as_it_is(small, model):
    assert model.estimator_ is small
    assert (model.window_, model.stride_) == ((12, 12), (4, 4))
    assert model.classes_.tolist() == ["across", "aslant", "down"]
    X = stripes(20, seed=3)[0]
    np.testing.assert_allclose(
        model.transform(X)[:, :, 0, 0], small._outputs(X), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_allclose(model.predict_proba(X), small.predict_proba(X), atol=1e-5)
    assert (model.predict(X) == small.predict(X)).all()


def test_entries_are_the_answers_for_crops_up_to_the_padding(small, model):
    x = stripes(2, size=40, seed=5)[0]
    maps = model.transform(x)
    assert maps.shape == (2, 3, 8, 8)
    corners = [(i, j) for i in range(8) for j in range(8)]
    crops = np.concatenate([x[:, 4 * i : 4 * i + 12, 4 * j : 4 * j + 12] for i, j in corners])
    explicit = small.predict(crops).reshape(64, 2)
    slid = model.classes_[maps.argmax(axis=1)].reshape(2, 64).T
    assert (slid == explicit).mean() > 0.9  # the first convolution pads two pixels


def test_the_best_window_decides_or_all_do(small):
    x = stripes(3, size=24)[0]
    best, mean = (FullyConvolutional(estimator=small, pool=pool).fit() for pool in ("max", "mean"))
    maps = torch.from_numpy(best.transform(x))
    pooled = maps.amax(dim=(2, 3)), maps.mean(dim=(2, 3))
    expected = [small.codec.probability(small, scores) for scores in pooled]
    np.testing.assert_allclose(best.predict_proba(x), expected[0], atol=1e-6)
    np.testing.assert_allclose(mean.predict_proba(x), expected[1], atol=1e-6)


def test_pictures_of_several_sizes_give_a_list_of_maps(model):
    pictures = [stripes(1, size=size)[0][0] for size in (12, 20, 33)]
    assert [maps.shape for maps in model.transform(pictures)] == [(3, 1, 1), (3, 3, 3), (3, 6, 6)]
    assert model.predict(pictures).shape == (3,)
    alone = model.transform(pictures[2][None])[0]
    np.testing.assert_allclose(model.transform(pictures)[2], alone, atol=1e-6)


def test_a_saved_one_slides_alike(model, tmp_path):
    x = stripes(2, size=20)[0]
    loaded = load(save(model, tmp_path / "model"))
    assert np.array_equal(loaded.transform(x), model.transform(x))
    assert loaded.stride_ == model.stride_


def test_a_fit_trains_a_copy_and_a_second_one_replaces_the_network(small):
    X, y = stripes(120)
    model = FullyConvolutional(estimator=clone(small).set_params(epochs=2), random_state=1)
    first = model.fit(X, y).transform(X[:2])
    second = model.set_params(random_state=2).fit(X, y).transform(X[:2])
    assert not hasattr(model.estimator, "module_")
    assert not np.allclose(first, second)


def test_several_labels_are_pooled_one_by_one():
    X, y = stripes(120)
    labels = np.stack([y == 0, y == 1], axis=1).astype(int)
    settings = {"widths": (8,), "convs": 1, "epochs": 4, "lr": 0.01}
    model = FullyConvolutional(estimator=ConvNetClassifier(**settings), random_state=0)
    model.fit(X, labels)
    expected = (model.transform(X[:9]).max(axis=(2, 3)) > 0).astype(int)
    assert np.array_equal(model.predict(X[:9]), expected)


def test_too_small_pictures_and_unfitted_classifiers_are_named(model):
    with pytest.raises(InvalidData, match="at least 12 x 12 pixels.*image 0 has 8 x 12"):
        model.predict(np.zeros((1, 8, 12), dtype=np.uint8))
    with pytest.raises(InvalidParameter, match="must be fitted when `fit` gets no data"):
        FullyConvolutional(estimator=LeNetClassifier()).fit()
    with pytest.raises(InvalidParameter, match="`estimator` must be a classifier of images"):
        FullyConvolutional(estimator="LeNet").fit()
    with pytest.raises(NotFittedError):
        FullyConvolutional().transform(np.zeros((1, 12, 12)))


def digits_on_canvases(images, side, seed):
    """Put each digit somewhere on a dark canvas of noise, but not in the middle of it."""
    random = np.random.default_rng(seed)
    canvases = random.uniform(0, 3, (len(images), side, side))
    for canvas, image in zip(canvases, images, strict=True):
        while True:
            top, left = random.integers(0, side - 8, 2)
            if max(abs(top + 4 - side / 2), abs(left + 4 - side / 2)) > 8:
                break
        canvas[top : top + 8, left : left + 8] += image
    return canvases


def test_pooled_class_maps_find_a_small_object_that_the_centre_crop_misses():
    images, y = load_digits(n_class=3, return_X_y=True)
    images, random = images.reshape(-1, 8, 8), np.random.default_rng(0)
    windows = random.uniform(0, 3, (len(y), 12, 12))  # digits anywhere in a window
    for window, image in zip(windows, images, strict=True):
        top, left = random.integers(0, 5, 2)
        window[top : top + 8, left : left + 8] += image
    small = LeNetClassifier(epochs=15, lr=0.003, random_state=0).fit(windows[:400], y[:400])
    canvases = digits_on_canvases(images[400:], 40, seed=1)
    found = FullyConvolutional(estimator=small).fit().score(canvases, y[400:])
    centre = small.score(canvases[:, 14:26, 14:26], y[400:])
    assert centre < 0.45  # chance is a third
    assert found > 0.8


def test_a_classifier_in_double_precision_slides_too():
    X, y = stripes(60)
    exact = LeNetClassifier(epochs=1, training=Training(precision="float64"), random_state=0)
    maps = FullyConvolutional(estimator=exact.fit(X, y)).fit().transform(X[:2])
    assert maps.dtype == np.float64
