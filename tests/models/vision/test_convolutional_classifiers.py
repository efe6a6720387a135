"""Classifiers of images: settings that reach the network, several labels, digits."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.utils import shuffle

from castalia import evaluate
from castalia.errors import ShapeMismatch
from castalia.models.vision import (
    AlexNetClassifier,
    ConvNetClassifier,
    GoogLeNetClassifier,
    LeNetClassifier,
    ResNetClassifier,
    VGGClassifier,
)
from castalia.testing.toys import stripes


@pytest.fixture(scope="module")
def digits():
    """Digits of 8 x 8 pixels: images and labels to learn from, and others to be judged by."""
    X, y = load_digits(return_X_y=True)
    X, y = shuffle((X.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8), y, random_state=0)
    return X[:1200], y[:1200], X[1200:], y[1200:]


def test_a_convolutional_network_reads_small_digits(digits):
    X, y, unseen, labels = digits
    model = ConvNetClassifier(widths=(16, 32), convs=1, epochs=12, lr=1e-2, random_state=0)
    assert model.fit(X, y).score(unseen, labels) > 0.97


def test_lenet_reads_small_digits_made_larger(digits):
    X, y, unseen, labels = digits
    model = LeNetClassifier(image_size=16, epochs=8, lr=1e-2, random_state=0).fit(X, y)
    assert model.score(unseen, labels) > 0.95


def test_the_top_k_error_counts_labels_outside_the_k_best(digits):
    scores = np.array([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.2, 0.45, 0.35], [0.6, 0.3, 0.1]])
    truth = np.array([2, 1, 0, 2])
    error = [1 - evaluate.top_k_accuracy_score(truth, scores, k=k) for k in (1, 2)]
    assert error == [0.75, 0.5]  # 1 of 4 first, 2 of 4 among the first two
    X, y, unseen, labels = digits
    model = ConvNetClassifier(widths=(8,), convs=1, epochs=2, lr=3e-3, random_state=0).fit(X, y)
    p = model.predict_proba(unseen)
    best = np.argsort(-p, axis=1)[:, :5]
    outside = np.mean([label not in row for label, row in zip(labels, best, strict=True)])
    assert 1 - evaluate.top_k_accuracy_score(labels, p, k=5) == pytest.approx(outside)
    assert outside < 1 - model.score(unseen, labels)


def test_a_residual_network_that_knows_pictures_learns_many_attributes_at_once(digits):
    X, y, unseen, labels = digits
    small = {"depth": 8, "width": 8, "lr": 1e-2, "random_state": 0}
    source = ResNetClassifier(epochs=4, **small).fit(X, y)
    has = np.stack([np.isin(np.arange(10), group) for group in _groups(300)], axis=1)
    model = ResNetClassifier(start=source, epochs=5, **small).fit(X, has[y].astype(int))
    found = model.predict(unseen)
    per_label = f1_score(has[labels], found, average=None)
    assert per_label.shape == (300,)
    assert per_label.min() > 0.8
    assert per_label.mean() > 0.93


def _groups(n):
    """Sets of digits that have an attribute."""
    random = np.random.default_rng(0)
    return [random.choice(10, size=random.integers(2, 6), replace=False) for _ in range(n)]


def test_every_setting_reaches_the_network():
    X, y = stripes(30)
    quick = {"epochs": 1, "random_state": 0}
    net = ResNetClassifier(
        depth=14, width=4, variant="v2", scale=0.5, multistep=True, stem="small", **quick
    ).fit(X, y).module_  # fmt: skip
    assert net.features.stage1[1].k is not None
    assert net.features.stage1[1].before is not None
    assert net.features.stage1[0].scale == 0.5
    assert ResNetClassifier(depth=8, width=4, shortcut=False, **quick).fit(
        X, y
    ).module_.features.stage1[0].scale is None  # fmt: skip
    net = VGGClassifier(depth=13, width=0.04, batch_norm=False, image_size=32, **quick).fit(X, y)
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in net.module_.modules())
    assert "conv1_2" in dict(net.module_.features.named_children())
    net = GoogLeNetClassifier(width=0.04, batch_norm=False, image_size=32, **quick).fit(X, y)
    assert net.module_.features.inception3a.branch3[1].conv.kernel_size == (5, 5)
    net = AlexNetClassifier(width=0.04, towers=1, image_size=64, **quick).fit(X, y).module_
    assert net.features.conv2.groups == 1
    net = LeNetClassifier(pooling="average", activation="tanh", partial=True, **quick).fit(X, y)
    assert type(net.module_.features.c3).__name__ == "PartialConv2d"
    net = ConvNetClassifier(
        widths=(4,), kernel=5, convs=1, hidden=(7,), dropout=0.2, batch_norm=False, **quick
    ).fit(X, y).module_  # fmt: skip
    assert net.head.dense1.in_features == 4 * 6 * 6
    assert net.head.dropout1.p == 0.2
    net = ConvNetClassifier(widths=(4, 4), pooling="stride", **quick).fit(X, y).module_
    assert net.features.stage1[3].stride == (2, 2)


def test_pictures_too_small_for_the_network_are_refused_before_training():
    X, y = stripes(30)
    with pytest.raises(ShapeMismatch, match="VGG: images must be at least 32 pixels.*got 12 x 12"):
        VGGClassifier(epochs=1).fit(X, y)
