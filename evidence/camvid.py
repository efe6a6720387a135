"""CamVid, 11 classes: U-Nets trained from nothing beside published figures.

Frames are 240 x 180, half the published size; masks and scores are at 480 x 360, as published:
scores of the network are enlarged twice before the best class is taken. Trained on the 367 training
frames; the 101 validation frames decide nothing here and are shown for whoever changes a setting;
the 233 test frames are looked at once.

Published: SegNet-Basic 46.3, SegNet 50.2 (2017, Badrinarayanan, Kendall, Cipolla, arXiv
1511.00561), ENet 51.3 (2016, Paszke et al., arXiv 1606.02147), all at 480 x 360.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from castalia.data.augment import Flip, Recolor, Rotate, Shift, Zoom
from castalia.data.images import CAMVID_CLASSES, CAMVID_VOID, load_camvid
from castalia.evaluate import class_iou, pixel_accuracy
from castalia.models.vision import UNetSegmenter
from castalia.train import Training
from evidence.rows import folder, print_table, spread

SEEDS, EPOCHS = 3, 200
PUBLISHED = {
    "SegNet-Basic (published)": "46.3",
    "SegNet (published)": "50.2",
    "ENet (published)": "51.3",
}
# What comes in from outside is void. Pixels have deviation 1, so Recolor's numbers are in these.
AUGMENT = Flip() | Rotate(5) | Zoom(0.75, 1.75) | Shift(0.15) | Recolor(0.4, 0.3, 0.3)


def unet(class_weight: str | None, seed: int, *, quick: bool = False) -> UNetSegmenter:
    """Fixed settings; only the weights of the classes differ."""
    training = Training(
        optimizer="adamw",
        schedule="warmup_cosine",
        weight_decay=0.02,
        clip=5.0,
        average=("ema", 0.998),
        precision="float32" if quick else "auto",
        validation=0,
        watch=False,
        verbose=False,
    )
    return UNetSegmenter(
        widths=(4, 8, 8) if quick else (48, 96, 192, 384, 384),
        dropout=0.2,
        class_weight=class_weight,
        void=CAMVID_VOID,
        augment=AUGMENT,
        epochs=2 if quick else EPOCHS,
        batch_size=2 if quick else 8,
        lr=1e-3,
        training=training,
        random_state=seed,
    )


def run(quick: bool = False) -> None:
    """Mean IoU over the classes, with and without median frequency balancing."""
    folder()  # says so when CASTALIA_DATA is not set
    parts = {
        part: load_camvid(part, most=4 if quick else None) for part in ("train", "val", "test")
    }
    rows = [[name, "", figure, "", "", ""] for name, figure in PUBLISHED.items()]
    classes = []
    for class_weight in (None, "median"):
        title = f"UNetSegmenter, class_weight={class_weight!r}"
        found, seconds = [], []
        for seed in range(1 if quick else SEEDS):
            model, took = fitted(class_weight, seed, parts["train"], quick=quick)
            found.append({part: scores(model, *parts[part]) for part in ("val", "test")})
            seconds.append(took)
            miou = 100 * np.nanmean(found[-1]["test"][0])
            print(f"{title}, seed {seed}: {miou:.1f}, {took:.0f} s", file=sys.stderr, flush=True)
        rows.append(
            [
                title,
                spread([100 * np.nanmean(f["val"][0]) for f in found], 1),
                spread([100 * np.nanmean(f["test"][0]) for f in found], 1),
                spread([100 * f["test"][1] for f in found], 1),
                str(len(found)),
                f"{np.mean(seconds):.0f}",
            ]
        )
        each = np.mean([f["test"][0] for f in found], axis=0)
        classes.append([title, *(f"{100 * value:.1f}" for value in each)])
    columns = ["model", "val mIoU", "test mIoU", "test pixel accuracy", "seeds", "s a fit"]
    print_table("CamVid", columns, rows)
    print_table("CamVid, IoU of each class on the test frames", ["model", *CAMVID_CLASSES], classes)


def fitted(
    class_weight: str | None, seed: int, data: tuple[np.ndarray, np.ndarray], *, quick: bool
) -> tuple[UNetSegmenter, float]:
    """A trained model and the seconds it took."""
    frames, masks = data
    start = time.perf_counter()
    # Of every 2 x 2 labels one, so that masks have the size of the frames.
    model = unet(class_weight, seed, quick=quick).fit(frames, masks[:, 1::2, 1::2])
    return model, time.perf_counter() - start


def scores(model: Any, frames: np.ndarray, masks: np.ndarray) -> tuple[np.ndarray, float]:
    """IoU of each class and pixel accuracy at the size of the masks."""
    found = []
    for some in np.array_split(frames, max(1, len(frames) // 16)):
        probability = torch.from_numpy(model.predict_proba(some)).movedim(-1, 1)
        large = F.interpolate(probability, masks.shape[1:], mode="bilinear", align_corners=False)
        found.append(model.classes_[large.argmax(dim=1).numpy()])
    predicted = np.concatenate(found)
    labels = range(len(CAMVID_CLASSES))
    iou = class_iou(masks, predicted, labels=labels, void=CAMVID_VOID)
    return iou, pixel_accuracy(masks, predicted, void=CAMVID_VOID)
