"""Experiments of the course on networks that see: shortcuts, and three regimes of transfer."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from castalia import Training
from castalia.models.vision import ConvNetClassifier
from castalia.nets.vision import ResNet
from castalia.objectives import CrossEntropy
from castalia.testing import train_tensors

LOOP = np.array([1, 0, 0, 0, 0, 0, 1, 0, 1, 1])  # digits whose line closes
SMALL = {"widths": (16, 32), "convs": 1, "lr": 3e-3}
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def pictures():
    """Digits of 8 x 8 pixels: 900 of a task that is known, the others of a new one."""
    X, y = load_digits(return_X_y=True)
    X, y = shuffle((X.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8), y, random_state=0)
    return X[:900], y[:900], X[900:], y[900:]


def learnt(X, y):
    return ConvNetClassifier(epochs=15, random_state=0, **SMALL).fit(X, y)


def accuracy(X, y, per_class, *, epochs, seed, **settings):
    """Learn from a few images of each class and judge on all the others."""
    random = np.random.default_rng(seed)
    few = [random.choice(np.flatnonzero(y == c), per_class, replace=False) for c in np.unique(y)]
    shown = np.concatenate(few)
    rest = np.setdiff1d(np.arange(len(y)), shown)
    model = ConvNetClassifier(
        **{**SMALL, **settings},
        epochs=epochs,
        batch_size=16,
        random_state=seed,
        training=Training(validation=0.0),
    )
    return model.fit(X[shown], y[shown]).score(X[rest], y[rest])


def test_a_deeper_plain_network_trains_worse_and_a_residual_one_does_not():
    X, y = load_digits(return_X_y=True)
    x, y = torch.tensor(X[:192].reshape(-1, 1, 8, 8) / 8 - 1).float(), torch.tensor(y[:192])

    def loss(depth, shortcut):
        torch.manual_seed(0)
        net = ResNet(1, 10, depth=depth, width=4, shortcut=shortcut)
        training = Training(device="cpu", optimizer="momentum")
        state = train_tensors(
            net, CrossEntropy(), x, y, training=training, epochs=5, batch_size=32, lr=0.05
        )
        return state.history[-1]["loss"]

    plain, deeper_plain, deeper_residual = loss(8, False), loss(26, False), loss(26, True)
    assert deeper_plain > 1.5 * plain
    assert deeper_plain > 2 * deeper_residual


def test_features_of_a_known_task_beat_a_start_from_scratch_with_few_labels(pictures):
    X, y, new, digits = pictures
    source = learnt(X, y)  # knows the ten digits; asked whether the line closes
    kept = {name: value.clone() for name, value in source.module_.state_dict().items()}
    for seed in SEEDS:
        few = {"epochs": 30, "seed": seed}
        scratch = accuracy(new, LOOP[digits], 8, **few)
        features = accuracy(new, LOOP[digits], 8, start=source, train="head", lr=2e-2, **few)
        assert features > scratch + 0.03
    assert all(torch.equal(v, kept[k]) for k, v in source.module_.state_dict().items())


def test_far_from_the_known_task_extraction_loses_to_scratch_and_scratch_to_fine_tuning(pictures):
    X, y, new, digits = pictures
    source = learnt(X, LOOP[y])  # knows two kinds of digits; asked for all ten
    for seed in SEEDS:
        some = {"epochs": 8, "seed": seed}
        extraction = accuracy(new, digits, 10, start=source, train="head", lr=2e-2, **some)
        scratch = accuracy(new, digits, 10, **some)
        tuned = accuracy(new, digits, 10, start=source, **some)
        assert extraction + 0.1 < scratch < tuned
