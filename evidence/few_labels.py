"""Fashion-MNIST with 600 of its 60,000 labels: what the other images are worth.

Five seeds draw the labelled images, sixty of each class. supervised: the network on those alone,
with random crops and flips; self-supervised: features by two views of every image, then a logistic
regression on the mean features of an image and its mirror image; semi-supervised: two views of
every image get the same answer. Which views and which temperature is chosen by cross-validation on
the 600 labels of another seed, after short trainings. The test images decide nothing. CASTALIA_JOBS
seeds are fitted side by side, FEW_LABELS names one of the three, and EPOCHS how long features are
learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.data.augment import Crop, Cutout, Flip, Recolor, Zoom
from castalia.data.images import load_images
from castalia.models.strategies import SelfSupervised, SemiSupervised
from castalia.models.vision import ConvNetClassifier
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

SEEDS, EACH, REPEAT = range(5), 60, 25
OTHER = 100  # the seed by which views are chosen
EPOCHS, SHORT = int(os.environ.get("EPOCHS", 40)), int(os.environ.get("SHORT", 10))
STRONG = Crop(4) | Flip() | Zoom(0.75, 1.2) | Recolor(0.4, 0.4) | Cutout(0.3)
PARTS = (  # of an image, moved and enlarged, as SimCLR's crops
    Zoom(0.9, 1.8, padding="border") | Crop(5, padding="border") | Flip() | Recolor(0.6, 0.5)
)
VIEWS = {
    "frames, 0.2": (STRONG, 0.2),
    "parts, 0.2": (PARTS, 0.2),
    "parts, 0.5": (PARTS, 0.5),
    "parts and holes, 0.2": (PARTS | Cutout(0.3), 0.2),
}
Images = tuple[np.ndarray, np.ndarray]


def network(seed: int, epochs: int, batch_size: int, lr: float) -> ConvNetClassifier:
    """Six convolutions, the same for all; the strategies change the images themselves."""
    training = Training(
        optimizer="adamw", weight_decay=0.02, schedule="warmup_cosine", validation=0
    )
    return ConvNetClassifier(
        widths=(48, 96, 192), epochs=epochs, batch_size=batch_size, lr=lr, training=training,
        random_state=seed,
    )  # fmt: skip


def drawn(seed: int, quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, Images]:
    """Return labelled images and labels, all images, and the test images with theirs."""
    (X, y), test = load_images("fashion-mnist"), load_images("fashion-mnist", "test")
    random = np.random.default_rng(seed)
    rows = np.concatenate(
        [random.permutation(np.flatnonzero(y == k))[: 6 if quick else EACH] for k in range(10)]
    )
    some = (test[0][:200], test[1][:200]) if quick else test
    return X[rows], y[rows], X[:300] if quick else X, some


def supervised(seed: int, quick: bool) -> float:
    """The labelled images alone."""
    X, y, _, test = drawn(seed, quick)
    model = network(seed, 1 if quick else 200, 64, 2e-3).set_params(augment=Crop(2) | Flip())
    return float(model.fit(X, y).score(*test))


def features(seed: int, name: str, epochs: int, every: np.ndarray) -> SelfSupervised:
    """Learn features of all images without labels, from views of that name."""
    view, temperature = VIEWS[name]
    return SelfSupervised(
        network(seed, epochs, 512, 2e-3), view=view, hidden=256, dim=64, temperature=temperature,
        random_state=seed,
    ).fit(every)  # fmt: skip


def both_ways(model: SelfSupervised, X: np.ndarray) -> np.ndarray:
    """Return the mean features of images and their mirror images."""
    model.estimator_.module_.to("cuda" if torch.cuda.is_available() else "cpu")
    return (model.transform(X) + model.transform(X[:, :, ::-1].copy())) / 2


def line(codes: np.ndarray, y: np.ndarray) -> Any:
    """Fit a logistic regression, its penalty chosen by cross-validation."""
    penalties = {"C": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0]}
    search = GridSearchCV(LogisticRegression(max_iter=2000), penalties, cv=5)
    return make_pipeline(StandardScaler(), search).fit(codes, y)


def tried(name: str, quick: bool) -> dict[str, Any]:
    """Return how often folds of the other seed's labels are right, after a short training."""
    X, y, every, _ = drawn(OTHER, quick)
    model = features(OTHER, name, 1 if quick else SHORT, every)
    return {"folds": float(line(both_ways(model, X), y)[-1].best_score_)}


def self_supervised(seed: int, quick: bool, name: str = "") -> float:
    """Features of all images without labels, then a line."""
    X, y, every, (held, truth) = drawn(seed, quick)
    model = features(seed, name, 1 if quick else EPOCHS, every)
    right = float(line(both_ways(model, X), y).score(both_ways(model, held), truth))
    print(f"self-supervised, {name}, seed {seed}: {100 * right:.2f}", flush=True)
    return right


def semi_supervised(seed: int, quick: bool) -> float:
    """Labels, repeated so that every batch has some, and agreement on all images."""
    X, y, every, test = drawn(seed, quick)
    net = network(seed, 1 if quick else 20, 512, 2e-3)
    model = SemiSupervised(
        net,
        method="consistency",
        factor=5.0,
        view=Crop(3) | Flip() | Cutout(0.3),
        random_state=seed,
    )
    n = 2 if quick else REPEAT
    model.fit(np.tile(X, (n, 1, 1)), np.tile(y, n), unlabelled=every)
    return float(model.score(*test))


ARMS: dict[str, Callable[[int, bool], float]] = {
    "supervised": supervised,
    "self-supervised": self_supervised,
    "semi-supervised": semi_supervised,
}


def run(quick: bool = False) -> None:
    """Print the accuracy of each, over seeds."""
    folder()
    kept, rows, jobs = Kept("few_labels"), [], int(os.environ.get("CASTALIA_JOBS", 1))
    seeds = SEEDS[:1] if quick else SEEDS
    for name, arm in ARMS.items():
        if not name.startswith(os.environ.get("FEW_LABELS", "")):
            continue
        if arm is self_supervised:
            folds = {v: kept.find(f"trial: {v}", partial(tried, v, quick))["folds"] for v in VIEWS}
            arm = partial(self_supervised, name=max(folds, key=folds.__getitem__))
        found = kept.find(
            name,
            lambda arm=arm: {
                "right": Parallel(n_jobs=jobs)(delayed(arm)(seed, quick) for seed in seeds)
            },
        )
        right = [100 * share for share in found["right"]]
        rows.append([name, spread(right, 1), f"{min(right):.1f}",
                     f"{found['seconds']:.0f}"])  # fmt: skip
    columns = ["600 labels", "test accuracy %", "worst seed", "s, all seeds"]
    print_table("Fashion-MNIST, one label in a hundred", columns, rows)
