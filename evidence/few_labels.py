"""Fashion-MNIST with 600 of its 60,000 labels: what the other images are worth.

Five seeds draw the labelled images, sixty of each class. supervised: the network on those alone,
with random crops and flips; self-supervised: features by two views of every image, then a linear
discriminant on the maps of the labelled ones, moved and mirrored; semi-supervised: two views of
every image get the same answer. All three answer with the mean over a test image, moved and
mirrored. Which views and which temperature is chosen by cross-validation on the 600 labels of
another seed, after short trainings. The test images decide nothing. CASTALIA_JOBS seeds are fitted
side by side, FEW_LABELS names one of the three, and EPOCHS how long features are learnt.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
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

from castalia.data.augment import Crop, Cutout, Flip, Recolor, Rotate, Zoom
from castalia.data.images import load_images
from castalia.models.strategies import SelfSupervised, SemiSupervised
from castalia.models.vision import ConvNetClassifier
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table, spread

SEEDS, EACH, REPEAT = range(5), 60, 25
OTHER = 100  # the seed by which views are chosen
EPOCHS, SHORT = int(os.environ.get("EPOCHS", 50)), int(os.environ.get("SHORT", 12))
MILD = Crop(3) | Flip() | Rotate(8) | Recolor(0.4, 0.4) | Cutout(0.4)
STRONG = Crop(4) | Flip() | Zoom(0.75, 1.2) | Recolor(0.4, 0.4) | Cutout(0.3)
VIEWS = {
    "mild, 0.2": (MILD, 0.2),
    "mild, 0.5": (MILD, 0.5),
    "strong, 0.2": (STRONG, 0.2),
}
MOVED = ((0, 0), (0, 2), (0, -2), (2, 0), (-2, 0))  # pixels down and across
Images = tuple[np.ndarray, np.ndarray]


def network(seed: int, epochs: int, batch_size: int, lr: float) -> ConvNetClassifier:
    """Six convolutions and a dense layer, which keeps where things are; the same for all."""
    training = Training(
        optimizer="adamw", weight_decay=0.02, schedule="warmup_cosine", validation=0, clip=1.0
    )
    return ConvNetClassifier(
        widths=(64, 128, 256), hidden=(256,), epochs=epochs, batch_size=batch_size, lr=lr,
        training=training, random_state=seed,
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
    model = network(seed, 1 if quick else 200, 64, 2e-3).set_params(augment=Crop(2) | Flip())
    return right(model.fit(X, y).predict_proba, *test)


def features(seed: int, name: str, epochs: int, every: np.ndarray) -> SelfSupervised:
    """Learn features of all images without labels, from views of that name."""
    view, temperature = VIEWS[name]
    return SelfSupervised(
        network(seed, epochs, 512, 1e-3), view=view, hidden=256, dim=64, temperature=temperature,
        random_state=seed,
    ).fit(every)  # fmt: skip


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
        self.score = float(self.search.best_score_)
        print(f"folds: {self.search.best_params_}, {self.score:.4f}", flush=True)

    def codes(self, X: np.ndarray) -> np.ndarray:
        """Return the principal components of all stages side by side."""
        parts = zip(self.scales, maps(self.model, X), strict=True)
        return np.concatenate([scale.transform(part) for scale, part in parts], axis=1)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the answers for images."""
        return self.search.predict_proba(self.codes(X))


def tried(name: str, quick: bool) -> float:
    """Return how often folds of the other seed's labels are right, after a short training."""
    X, y, every, _ = drawn(OTHER, quick)
    model = features(OTHER, name, 1 if quick else SHORT, every)
    return LinearProbe(model, every, X, y).score


def self_supervised(seed: int, quick: bool, name: str = "") -> float:
    """Features of all images without labels, then a linear probe."""
    X, y, every, test = drawn(seed, quick)
    model = features(seed, name, 1 if quick else EPOCHS, every)
    return right(LinearProbe(model, every, X, y).predict_proba, *test)


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

    def side_by_side(work: Callable[[Any, bool], float], items: Iterable[Any]) -> dict[str, Any]:
        found = Parallel(n_jobs=jobs)(delayed(work)(item, quick) for item in items)
        return dict(zip(map(str, items), found, strict=True))

    for name, arm in ARMS.items():
        if not name.startswith(os.environ.get("FEW_LABELS", "")):
            continue
        if arm is self_supervised:
            folds = kept.find("trials", lambda: side_by_side(tried, VIEWS))
            arm = partial(self_supervised, name=max(VIEWS, key=folds.__getitem__))
        found = kept.find(name, partial(side_by_side, arm, seeds))
        shares = [100 * found[str(seed)] for seed in seeds]
        rows.append([name, spread(shares, 1), f"{min(shares):.1f}", f"{found['seconds']:.0f}"])
    columns = ["600 labels", "test accuracy %", "worst seed", "s, all seeds"]
    print_table("Fashion-MNIST, one label in a hundred", columns, rows)
