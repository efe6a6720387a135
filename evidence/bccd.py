"""Blood cells found on microscope images (BCCD), trained from scratch.

364 images of 640 x 480 pixels; red cells (4,155 boxes of about 105 pixels, crowded and
overlapping), white cells (372, about 200 pixels) and platelets (361, about 40). Trained on the
lists ``train`` and ``val`` (292 images), tested on ``test`` (72). No weights from elsewhere. The
measure is PASCAL VOC's mean average precision at an overlap of 0.5, over all boxes of the test
list; two boxes without area are left out by the reader.

Published, on other splits of the same images: 0.924 (YOLOv8n, pre-trained) and 0.947 (a variant
of it, IET Computer Vision 2025), 0.854 (Joshi 2022, Uniciencia 36).

Data: Shenggan, BCCD Dataset, MIT licence.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from castalia.data.augment import Augmentation, Flip, Recolor, Shift, Zoom
from castalia.data.images import Images, read_voc
from castalia.errors import DataWarning
from castalia.evaluate import DetectionScores, detection_scores
from castalia.models.vision import YOLODetector
from castalia.train import Training
from evidence.rows import folder, print_table, spread

SEEDS = (0, 1, 2)
EPOCHS = 150
SIZE = (384, 512)
FAINT = 0.005  # scores from which boxes are ranked


def changes() -> Augmentation:
    """Cells look alike from every side, at other distances and in other light."""
    moves = Flip() | Flip("vertical") | Zoom(0.7, 1.4) | Shift(0.15)
    return moves | Recolor(0.3, 0.3, 0.3)


def detector(seed: int, quick: bool) -> YOLODetector:
    """Three grids: cells of 8 pixels for platelets, of 32 for white cells."""
    training = Training(
        optimizer="adamw",
        weight_decay=5e-3,
        schedule="warmup_cosine",
        average=("ema", 0.99 if quick else 0.998),
        clip=10.0,
        validation=0,
        verbose=False,
    )
    return YOLODetector(
        strides=(8, 16, 32),
        anchors=3,
        width=8 if quick else 32,
        depth=1 if quick else 2,
        positives=9,
        image_size=(96, 128) if quick else SIZE,
        augment=changes(),
        overlap=0.5,
        epochs=3 if quick else EPOCHS,
        batch_size=16,
        lr=2e-3,
        training=training,
        random_state=seed,
    )


def load(path: Path, part: str, most: int | None = None) -> Images:
    """Images of one list with their boxes."""
    with warnings.catch_warnings():  # the two boxes without area are known
        warnings.simplefilter("ignore", DataWarning)
        images = read_voc(path, part)
    return images if most is None else images.take(range(most))


def judged(model: YOLODetector, images: Images) -> DetectionScores:
    """Average precision of each class."""
    return detection_scores(images.target, model.predict(images.features(), threshold=FAINT))


def run(quick: bool = False) -> None:
    """Train once a seed and print the precision of each class, mean ± std over seeds."""
    archive, most = folder() / "bccd" / "BCCD.zip", 24 if quick else None
    train, test = load(archive, "trainval", most), load(archive, "test", most)
    found, seconds = [], []
    for seed in SEEDS[:1] if quick else SEEDS:
        start = time.perf_counter()
        model = detector(seed, quick).fit(train)
        seconds.append(time.perf_counter() - start)
        found.append(judged(model, test))
        print(f"seed {seed}: mAP@0.5 {found[-1].mean:.4f}, {seconds[-1]:.0f} s", flush=True)
    print_table(
        "Blood cells (BCCD), mAP at an overlap of 0.5",
        ["class", "true boxes", "AP@0.5", "recall", "seeds", "seconds a training"],
        rows(found, seconds),
    )


def rows(found: list[DetectionScores], seconds: list[float]) -> list[list[str]]:
    """One line a class and one for their mean."""
    lines: list[list[Any]] = []
    for classes in zip(*(scores.classes for scores in found), strict=True):
        precision = spread([c.precision for c in classes])
        recall = spread([c.recall for c in classes])
        lines.append([classes[0].label, str(classes[0].true), precision, recall, "", ""])
    mean = spread([scores.mean for scores in found])
    return [*lines, ["mean", "", mean, "", str(len(found)), spread(seconds, 0)]]
