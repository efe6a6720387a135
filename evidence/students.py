"""Fashion-MNIST: a small network taught by ResNet-18, and the same network in fewer bytes.

The student is the network of 97,594 weights of ``evidence.pictures`` with a quarter of its epochs,
alone and with the teacher, three seeds each; the teacher is fitted once. Compressed: the student of
the first seed, without further training, its latency on one core. CASTALIA_JOBS fits run side by
side.
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


def learnt(seed: int, taught: bool, quick: bool) -> float:
    """Return percent right of a student, alone or with the teacher."""
    X, y, held, truth = images(quick)
    model: Any = student(seed, quick)
    if taught:
        teacher = castalia.load(home())
        if torch.cuda.is_available():
            teacher.module_.cuda()  # it answers for 60,000 images
        model = Distill(model, teacher=teacher, temperature=4.0, share=0.9, random_state=seed)
    found = 100 * float(model.fit(X, y).score(held, truth))
    print(f"seed {seed}, {'taught' if taught else 'alone'}: {found:.2f}", flush=True)
    return found


def smaller(quick: bool) -> dict[str, Any]:
    """Return times smaller, percent right and ms of 1,000 images on a core, of each way."""
    X, y, held, truth = images(quick)
    base = student(0, quick).fit(X, y)
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
    pairs = [(seed, taught) for taught in (False, True) for seed in seeds]
    found = kept.find(
        "students",
        lambda: {"right": Parallel(n_jobs=jobs)(delayed(learnt)(*pair, quick) for pair in pairs)},
    )
    alone, taught = np.array(found["right"]).reshape(2, -1)
    print_table(
        "Fashion-MNIST, a student of ResNet-18",
        ["teacher %", "alone %", "taught %", "gain", "s"],
        [[f"{teacher['right']:.2f}", spread(alone, 2), spread(taught, 2), spread(taught - alone, 2),
          f"{teacher['seconds'] + found['seconds']:.0f}"]],
    )  # fmt: skip
    parts = kept.find("smaller", lambda: smaller(quick))
    rows = [[name, f"{v[0]:.1f}", f"{v[1]:.2f}", f"{v[2]:.0f}"]
            for name, v in parts.items() if name != "seconds"]  # fmt: skip
    columns = ["97,594 weights", "times smaller", "test accuracy %", "ms for 1,000 images, a core"]
    print_table("Fashion-MNIST, compressed", columns, rows)
