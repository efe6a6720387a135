"""Fashion-MNIST with 600 of its 60,000 labels: what the other images are worth.

Five seeds draw the labelled images, sixty of each class. supervised: the network on those alone,
with random crops and flips; self-supervised: features by two views of every image, then a linear
discriminant on the maps of the labelled ones, moved and mirrored; semi-supervised: two views of
every image get the same answer. All three answer with the mean over a test image, moved and
mirrored. Views, network and probe were chosen on training images (RESULTS.md). CASTALIA_JOBS seeds
are fitted side by side, FEW_LABELS names one of the three, and EPOCHS how long features are learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from castalia.data.augment import Crop, Cutout, Flip, Recolor, Zoom
from castalia.data.images import load_images
from castalia.models.strategies import SelfSupervised, SemiSupervised
from castalia.models.vision import ConvNetClassifier
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

SEEDS, EACH, REPEAT = range(5), 60, 25
EPOCHS = int(os.environ.get("EPOCHS", 20))
VIEW = Crop(4) | Flip() | Zoom(0.75, 1.2) | Recolor(0.4, 0.4) | Cutout(0.3)
MOVED = ((0, 0), (0, 2), (0, -2), (2, 0), (-2, 0))  # pixels down and across
Images = tuple[np.ndarray, np.ndarray]


def network(seed: int, quick: bool, epochs: int, batch_size: int, lr: float) -> ConvNetClassifier:
    """Six convolutions and a dense layer, which keeps where things are; the same for all."""
    training = Training(
        optimizer="adamw", weight_decay=0.02, schedule="warmup_cosine", validation=0, clip=1.0
    )
    return ConvNetClassifier(
        widths=(8, 16, 32) if quick else (128, 256, 512), hidden=(256,),
        epochs=1 if quick else epochs, batch_size=batch_size, lr=lr, training=training,
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


def moved(X: np.ndarray) -> Iterator[np.ndarray]:
    """Yield images and mirror images at five places, what leaves the image cut off."""
    wide = np.pad(X, ((0, 0), (2, 2), (2, 2)))
    for down, across in MOVED:
        some = wide[:, 2 - down :, 2 - across :][:, :28, :28]
        yield some
        yield some[:, :, ::-1].copy()


def right(proba: Callable[[np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray) -> float:
    """Return how often the mean answer to an image, moved and mirrored, is the label."""
    answers = np.mean([proba(view) for view in moved(X)], axis=0)
    found = float((answers.argmax(axis=1) == y).mean())
    print(f"{100 * found:.2f} % of {len(y):,}", flush=True)
    return found


def supervised(seed: int, quick: bool) -> float:
    """The labelled images alone."""
    X, y, _, test = drawn(seed, quick)
    model = network(seed, quick, 200, 64, 2e-3).set_params(augment=Crop(2) | Flip())
    return right(model.fit(X, y).predict_proba, *test)


def features(seed: int, quick: bool, every: np.ndarray) -> SelfSupervised:
    """Learn features of all images without labels."""
    net = network(seed, quick, EPOCHS, 512, 1e-3)
    model = SelfSupervised(net, view=VIEW, hidden=256, dim=64, random_state=seed)
    return model.fit(every)


def maps(model: SelfSupervised, X: np.ndarray) -> list[np.ndarray]:
    """Return the maps after every stage, averaged to 7 x 7 places where there are more, (N, H)."""
    seen: dict[nn.Module, list[Tensor]] = {}

    def keep(stage: nn.Module, _: Any, found: Tensor) -> None:
        size = min(7, found.shape[-1])
        seen.setdefault(stage, []).append(adaptive_avg_pool2d(found, size).flatten(1).cpu())

    net = model.estimator_.module_.eval()
    pools = [module for module in net.modules() if isinstance(module, nn.MaxPool2d)]
    handles = [pool.register_forward_hook(keep) for pool in pools]
    model.transform(X)
    for handle in handles:
        handle.remove()
    return [torch.cat(seen[pool]).float().numpy() for pool in pools]


class LinearProbe:
    """A linear discriminant of the maps after all stages, fitted to images moved and mirrored.

    Each stage gives so many principal components of images without labels. How far the covariance
    is shrunk: by cross-validation, all views of an image in the same fold.
    """

    def __init__(self, model: SelfSupervised, every: np.ndarray, X: np.ndarray, y: np.ndarray):
        model.estimator_.module_.to("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model
        self.scales = [
            make_pipeline(StandardScaler(), PCA(min(512, *some.shape), random_state=0)).fit(some)
            for some in maps(model, every[:10_000])
        ]
        codes = np.concatenate([self.codes(view) for view in moved(X)])
        image = np.tile(np.arange(len(X)), 2 * len(MOVED))
        linear = LinearDiscriminantAnalysis(solver="lsqr")
        folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
        self.search = GridSearchCV(linear, {"shrinkage": [0.03, 0.1, 0.3]}, cv=folds)
        self.search.fit(codes, np.tile(y, 2 * len(MOVED)), groups=image)
        print(f"folds: {self.search.best_params_}, {self.search.best_score_:.4f}", flush=True)

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Return the principal components of all stages side by side."""
        parts = zip(self.scales, maps(self.model, X), strict=True)
        return np.concatenate([scale.transform(part) for scale, part in parts], axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the answers for images."""
        return self.search.predict_proba(self.codes(X))


def self_supervised(seed: int, quick: bool) -> float:
    """Features of all images without labels, then a linear probe."""
    X, y, every, test = drawn(seed, quick)
    model = features(seed, quick, every)
    return right(LinearProbe(model, every, X, y).predict_proba, *test)


def semi_supervised(seed: int, quick: bool) -> float:
    """Labels, repeated so that every batch has some, and agreement on all images."""
    X, y, every, test = drawn(seed, quick)
    net = network(seed, quick, 20, 512, 2e-3)
    model = SemiSupervised(
        net,
        method="consistency",
        factor=5.0,
        view=Crop(3) | Flip() | Cutout(0.3),
        random_state=seed,
    )
    n = 2 if quick else REPEAT
    model.fit(np.tile(X, (n, 1, 1)), np.tile(y, n), unlabelled=every)
    return right(model.predict_proba, *test)


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

    def side_by_side(work: Callable[[int, bool], float]) -> dict[str, Any]:
        found = Parallel(n_jobs=jobs)(delayed(work)(seed, quick) for seed in seeds)
        return dict(zip(map(str, seeds), found, strict=True))

    for name, arm in ARMS.items():
        if not name.startswith(os.environ.get("FEW_LABELS", "")):
            continue
        found = kept.find(name, partial(side_by_side, arm))
        shares = [100 * found[str(seed)] for seed in seeds]
        rows.append([name, spread(shares, 1), f"{min(shares):.1f}", f"{found['seconds']:.0f}"])
    columns = ["600 labels", "test accuracy %", "worst seed", "s, all seeds"]
    print_table("Fashion-MNIST, one label in a hundred", columns, rows)
