"""Fashion-MNIST: a small network taught by ResNet-18, and the same network in fewer bytes.

The student is the network of 97,594 weights of ``evidence.pictures``, with the teacher and alone,
three seeds each; the teacher is that of ``evidence.pictures`` without label smoothing, whose soft
answers say less. It is fitted once and answers for the very images that a student is shown. How it
teaches is chosen by 10,000 training images kept back, after short trainings. Compressed: the
network alone, of the first seed and 20 epochs, without further training, its latency on one core.
CASTALIA_JOBS fits run side by side.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

import castalia
from castalia.data.augment import Crop, Cutout, Flip, Mixup
from castalia.data.images import load_images
from castalia.models.strategies import Compress, Distill
from castalia.models.vision import ResNetClassifier
from evidence.kept_figures import Kept
from evidence.pictures import convnet, resnet
from evidence.rows import folder, print_table, spread

SEEDS, KEPT_BACK, SHORT = range(3), 10_000, 20
VIEWS = Flip() | Crop(2)
WAYS: dict[str, dict[str, Any]] = {  # of teaching: temperature, weight against labels, views
    "crops, T 4, labels too": {"temperature": 4.0, "share": 0.9, "views": VIEWS},
    "crops, T 4": {"temperature": 4.0, "share": 1.0, "views": VIEWS},
    "holes, T 4": {"temperature": 4.0, "share": 1.0, "views": VIEWS | Cutout(0.35)},
    "mixtures, T 4": {"temperature": 4.0, "share": 1.0, "views": VIEWS | Mixup(1.0, 10)},
    "mixtures, T 2": {"temperature": 2.0, "share": 1.0, "views": VIEWS | Mixup(1.0, 10)},
}


def home(trial: bool) -> Path:
    """Where a teacher is kept."""
    return Path(os.environ.get("OUT", ".")) / ("trial" if trial else "teacher")


def images(quick: bool, trial: bool = False) -> Any:
    """Return images and labels, and those that are asked for: of the test, or kept back."""
    (X, y), (held, truth) = load_images("fashion-mnist"), load_images("fashion-mnist", "test")
    if trial:
        X, y, held, truth = X[:-KEPT_BACK], y[:-KEPT_BACK], X[-KEPT_BACK:], y[-KEPT_BACK:]
    n = 300 if quick else len(X)
    return X[:n], y[:n], held[: n // 3] if quick else held, truth[: n // 3] if quick else truth


def teach(quick: bool, trial: bool = False) -> float:
    """Fit ResNet-18, keep it, and return percent right."""
    X, y, held, truth = images(quick, trial)
    model: ResNetClassifier = resnet(0, quick).set_params(label_smoothing=0.0)
    if trial:
        model.set_params(epochs=1 if quick else SHORT)
    model.fit(X, y)
    castalia.save(model, home(trial))
    return 100 * float(model.score(held, truth))


def learnt(seed: int, way: str | None, quick: bool, trial: bool = False) -> float:
    """Return percent right of a student, taught in a way or alone."""
    X, y, held, truth = images(quick, trial)
    model: Any = convnet(seed, quick).set_params(augment=VIEWS)
    if trial:
        model.set_params(epochs=1 if quick else SHORT)
    if way is not None:
        settings = dict(WAYS[way])
        model.set_params(augment=settings.pop("views"))
        teacher = castalia.load(home(trial))
        model = Distill(model, teacher=teacher, answers="views", **settings, random_state=seed)
    return 100 * float(model.fit(X, y).score(held, truth))


def smaller(quick: bool) -> dict[str, Any]:
    """Return times smaller, percent right and ms of 1,000 images on a core, of each way."""
    X, y, held, truth = images(quick)
    base = convnet(0, quick).set_params(epochs=1 if quick else SHORT).fit(X, y)
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
    kept, seeds = Kept("students"), SEEDS[:1] if quick else SEEDS
    jobs = Parallel(n_jobs=int(os.environ.get("CASTALIA_JOBS", 1)))

    def first() -> dict[str, Any]:
        teachers = [delayed(teach)(quick, trial) for trial in (False, True)]
        teacher, _, *alone = jobs(teachers + [delayed(learnt)(s, None, quick) for s in seeds])
        return {"teacher": teacher, "alone": alone}

    def trials() -> dict[str, Any]:
        found = jobs(delayed(learnt)(0, way, quick, trial=True) for way in WAYS)
        return dict(zip(WAYS, found, strict=True))

    without, tried = kept.find("teacher and alone", first), kept.find("trials", trials)
    best = max(WAYS, key=tried.__getitem__)
    taught = kept.find(
        "taught", lambda: {"right": jobs(delayed(learnt)(s, best, quick) for s in seeds)}
    )
    gain = np.subtract(taught["right"], without["alone"])
    figures = [spread(found, 2) for found in (without["alone"], taught["right"], gain)]
    print_table(
        f"Fashion-MNIST, a student of ResNet-18: {best}",
        ["teacher %", "alone %", "taught %", "gain"],
        [[f"{without['teacher']:.2f}", *figures]],
    )
    parts = kept.find("smaller", lambda: smaller(quick))
    rows = [[name, f"{v[0]:.1f}", f"{v[1]:.2f}", f"{v[2]:.0f}"]
            for name, v in parts.items() if name != "seconds"]  # fmt: skip
    columns = ["97,594 weights", "times smaller", "test accuracy %", "ms for 1,000 images, a core"]
    print_table("Fashion-MNIST, compressed", columns, rows)
