"""Fashion-MNIST: a small network taught by ResNet-18, and the same network in fewer bytes.

The student is the network of 97,594 weights of ``evidence.pictures`` with a quarter of its epochs,
with the teacher and alone, three seeds each; the teacher is fitted once and answers for the crops
and mirror images that a student is shown. Compressed: the student of the first seed, without
further training, its latency on one core. CASTALIA_JOBS fits run side by side.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

import castalia
from castalia.data.augment import Crop, Flip
from castalia.data.images import load_images
from castalia.models.strategies import Compress, Distill
from castalia.models.vision import ConvNetClassifier, ResNetClassifier
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.pictures import convnet
from evidence.rows import folder, print_table, spread

SEEDS = range(3)


def home() -> Path:
    """Where the teacher is kept."""
    return Path(os.environ.get("OUT", ".")) / "teacher"


def images(quick: bool) -> Any:
    """Return images and labels, and those of the test."""
    (X, y), (held, truth) = load_images("fashion-mnist"), load_images("fashion-mnist", "test")
    n = 300 if quick else len(X)
    return X[:n], y[:n], held[: n // 3] if quick else held, truth[: n // 3] if quick else truth


def teach(quick: bool) -> dict[str, Any]:
    """Fit ResNet-18 without label smoothing, whose soft answers say less, and keep it."""
    X, y, held, truth = images(quick)
    training = Training(
        optimizer="nesterov", weight_decay=5e-4, schedule="warmup_cosine", validation=0
    )
    model = ResNetClassifier(
        depth=18, augment=Flip() | Crop(3), epochs=1 if quick else 16, batch_size=256, lr=0.1,
        training=training, random_state=0,
    )  # fmt: skip
    model.fit(X, y)
    castalia.save(model, home())
    return {"right": 100 * model.score(held, truth)}


def student(seed: int, quick: bool) -> ConvNetClassifier:
    """The small network."""
    return convnet(seed, quick).set_params(epochs=1 if quick else 20)


def learnt(seed: int, taught: bool, quick: bool) -> dict[str, Any]:
    """Return percent right of a student, alone or with the teacher."""
    X, y, held, truth = images(quick)
    model: Any = student(seed, quick)
    if taught:
        settings: dict[str, Any] = {"temperature": 4.0, "share": 0.9, "answers": "views"}
        model = Distill(model, teacher=castalia.load(home()), **settings, random_state=seed)
    return {"right": 100 * float(model.fit(X, y).score(held, truth))}


def smaller(quick: bool) -> dict[str, Any]:
    """Return times smaller, percent right and ms of 1,000 images on a core, of each way."""
    X, y, held, truth = images(quick)
    base = student(0, quick).fit(X, y)
    base.module_.to("cpu")
    torch.set_num_threads(1)
    found: dict[str, Any] = {"as it is": [1.0, *_asked(base, held, truth)]}
    for name, settings in {
        "int8": {"method": "int8"},
        "pruned to a half": {"method": "prune", "keep": 0.5},
        "pruned to a fifth": {"method": "prune", "keep": 0.2},
    }.items():
        model = Compress(**settings).compress(base)
        size = model.sizes_["before"] / model.sizes_["after"]
        found[name] = [size, *_asked(model, held, truth)]
    return found


def _asked(model: Any, held: np.ndarray, truth: np.ndarray) -> list[float]:
    right, times = 100 * float(model.score(held, truth)), []
    for _ in range(5):
        start = time.perf_counter()
        model.predict(held[:1000])
        times.append(1000 * (time.perf_counter() - start))
    return [right, min(times)]


def run(quick: bool = False) -> None:
    """Print teacher and students, and the compressed one."""
    folder()
    kept, jobs = Kept("students"), int(os.environ.get("CASTALIA_JOBS", 1))
    seeds = SEEDS[:1] if quick else SEEDS
    teacher = kept.find("teacher", lambda: teach(quick))
    pairs = [(seed, taught) for taught in (True, False) for seed in seeds]
    names = [f"{'taught' if taught else 'alone'}, seed {seed}" for seed, taught in pairs]
    found = Parallel(n_jobs=jobs, backend="threading")(
        delayed(kept.find)(name, partial(learnt, *pair, quick))
        for name, pair in zip(names, pairs, strict=True)
    )
    taught, alone = np.array([each["right"] for each in found]).reshape(2, -1)
    print_table(
        "Fashion-MNIST, a student of ResNet-18",
        ["teacher %", "alone %", "taught %", "gain", "s"],
        [[f"{teacher['right']:.2f}", spread(alone, 2), spread(taught, 2), spread(taught - alone, 2),
          f"{teacher['seconds'] + sum(each['seconds'] for each in found):.0f}"]],
    )  # fmt: skip
    parts = kept.find("smaller", lambda: smaller(quick))
    rows = [[name, f"{v[0]:.1f}", f"{v[1]:.2f}", f"{v[2]:.0f}"]
            for name, v in parts.items() if name != "seconds"]  # fmt: skip
    columns = ["97,594 weights", "times smaller", "test accuracy %", "ms for 1,000 images, a core"]
    print_table("Fashion-MNIST, compressed", columns, rows)
