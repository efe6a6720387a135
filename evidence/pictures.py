"""Digits and clothes: convolutional classifiers beside published figures.

MNIST with LeNet on a CPU, Fashion-MNIST with a small network and ResNet-18 on a GPU. All 60,000
training images are trained on, with settings fixed beforehand; the 10,000 test images decide
nothing.

Published: LeNet-5 on MNIST 99.05 % (1998, LeCun et al., without distortions); on Fashion-MNIST, of
the table in the data set's README, two convolutions with under 100k weights 92.5 % and ResNet-18
94.9 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from castalia.data.augment import Crop, Cutout, Flip, Rotate, Shift, Zoom
from castalia.data.images import load_images
from castalia.models.vision import ConvNetClassifier, LeNetClassifier, ResNetClassifier
from castalia.train import Training
from evidence.rows import folder, print_table, spread

SEEDS = (0, 1, 2)


def lenet(seed: int, quick: bool) -> LeNetClassifier:
    """LeNet-5 with max pooling and ReLU on digits that are turned, shifted and zoomed a little."""
    training = Training(schedule="warmup_cosine", average=("ema", 0.999), validation=0)
    return LeNetClassifier(
        augment=Rotate(8) | Shift(0.07) | Zoom(0.92, 1.08),
        epochs=1 if quick else 14,
        batch_size=128,
        lr=3e-3,
        training=training,
        random_state=seed,
    )


def convnet(seed: int, quick: bool) -> ConvNetClassifier:
    """Under 100,000 weights."""
    training = Training(
        optimizer="adamw",
        weight_decay=0.02,
        schedule="warmup_cosine",
        average=("ema", 0.999),
        validation=0,
    )
    return ConvNetClassifier(
        widths=(32, 48, 56),
        augment=Flip() | Crop(2),
        epochs=1 if quick else 80,
        batch_size=128,
        lr=4e-3,
        training=training,
        random_state=seed,
    )


def resnet(seed: int, quick: bool) -> ResNetClassifier:
    """ResNet-18 with the stem for small pictures."""
    training = Training(
        optimizer="nesterov",
        weight_decay=5e-4,
        schedule="warmup_cosine",
        compile=not quick,
        validation=0,
    )
    return ResNetClassifier(
        depth=18,
        augment=Flip() | Crop(3) | Cutout(0.35),
        label_smoothing=0.1,
        epochs=1 if quick else 50,
        batch_size=128,
        lr=0.05,
        training=training,
        random_state=seed,
    )


# Of each row: data, model, what makes it, seeds, the published figure, and whether it wants a GPU.
ROWS: tuple[tuple[str, str, Callable[[int, bool], Any], int, str, bool], ...] = (
    ("mnist", "LeNetClassifier", lenet, 1, "99.05", False),
    ("fashion-mnist", "ConvNetClassifier, widths (32, 48, 56)", convnet, 3, "92.5", True),
    ("fashion-mnist", "ResNetClassifier, depth 18", resnet, 3, "94.9", True),
)


def run(quick: bool = False) -> None:
    """Test accuracy over seeds; a GPU does its rows, a CPU its own."""
    folder()  # says so when CASTALIA_DATA is not set
    gpu, lines = torch.cuda.is_available(), []
    for data, name, make, seeds, published, wants_gpu in ROWS:
        if wants_gpu is not gpu and not quick:
            continue
        accuracy, seconds, weights = [], [], 0
        for seed in SEEDS[: 1 if quick else seeds]:
            model, score, took = trained(make(seed, quick), data, quick)
            accuracy.append(100 * score)
            seconds.append(took)
            weights = sum(p.numel() for p in model.module_.parameters())
            print(f"{name}, seed {seed}: {accuracy[-1]:.2f} %, {took:.0f} s", flush=True)
        cells = [f"{weights:,}", published, spread(accuracy, 2), str(len(accuracy))]
        lines.append([data, name, *cells, spread(seconds, 0)])
    columns = ["data", "model", "weights", "published %", "test accuracy %", "seeds", "s a fit"]
    print_table("Images of digits and clothes", columns, lines)


def trained(model: Any, data: str, quick: bool) -> tuple[Any, float, float]:
    """The fitted model, its test accuracy, and the seconds of the fit."""
    images, labels = load_images(data)
    if quick:
        images, labels = images[:500], labels[:500]
    start = time.perf_counter()
    model.fit(images, labels)
    took = time.perf_counter() - start
    tests = load_images(data, "test")
    return model, float(model.score(*((part[:500] for part in tests) if quick else tests))), took
