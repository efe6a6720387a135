"""600 photographs in folders: a network without arguments, beside the usual loop of one cycle.

60 photographs of each class of CIFAR-10 to train on and 200 to test on lie as PNG files in class
folders, in ``photographs/train`` and ``photographs/test`` of the folder that CASTALIA_DATA names;
where they do not, they are written there from the data set. The usual loop is ResNet-18 of the same
shape, AdamW, one cycle of the rate up to 0.003, mirrored and shifted images, as many epochs as
fastai's users take for few images (30), or as ours takes.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from castalia.data.augment import Crop, Flip
from castalia.data.images import load_images, read_folder
from castalia.models.vision import ResNetClassifier
from castalia.nets.vision import ResNet
from evidence.rows import folder, keep, print_table, spread

SEEDS = 5
EACH = {"train": 60, "test": 200}
PEAK = 3e-3
USUAL = 30  # epochs
SIZE = (32, 32)


def run(quick: bool = False) -> None:
    """Test accuracy and seconds over seeds."""
    home = folder() / "photographs"
    for part, each in EACH.items():
        if not (home / part).is_dir():
            write(home / part, part, each)
    train, test = read_folder(home / "train"), read_folder(home / "test")
    ours(0, train, test, quick)  # loads what is loaded once
    found: dict[str, list[tuple[float, float]]] = {}
    for seed in range(1 if quick else SEEDS):
        accuracy, seconds, epochs = ours(seed, train, test, quick)
        found.setdefault("ResNetClassifier()", []).append((accuracy, seconds))
        for count in (1,) if quick else (USUAL, epochs):
            name = f"one cycle of {count} epochs"
            found.setdefault(name, []).append(one_cycle(seed, train, test, count, quick))
            keep("few_photographs", seed=seed, recipe=name, figures=found[name][-1])
        keep("few_photographs", seed=seed, recipe="ours", figures=(accuracy, seconds))
    lines = []
    for name, pairs in found.items():
        accuracy, seconds = zip(*pairs, strict=True)
        lines.append([name, spread(accuracy, 1), spread(seconds, 1), str(len(pairs))])
    print_table("600 photographs", ["training", "test accuracy %", "s a fit", "seeds"], lines)


def write(place: Path, part: str, each: int) -> None:
    """Write the first images of each class as files in class folders."""
    images, labels = load_images("cifar10", part)
    for label in np.unique(labels):
        (place / str(label)).mkdir(parents=True)
        for i in np.flatnonzero(labels == label)[:each]:
            Image.fromarray(np.asarray(images[i])).save(place / str(label) / f"{i}.png")


def ours(seed: int, train: Any, test: Any, quick: bool) -> tuple[float, float, int]:
    """No argument at all but the seed."""
    own = small(quick) | ({"epochs": 1} if quick else {})
    model, start = ResNetClassifier(random_state=seed, **own), time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    return 100 * float(model.score(test, test.target)), seconds, len(model.history_)


def one_cycle(seed: int, train: Any, test: Any, epochs: int, quick: bool) -> tuple[float, float]:
    """Train ResNet-18 by a loop written out, from files to a network."""
    torch.manual_seed(seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start = time.perf_counter()
    x, y = tensors(train, device)
    mean, deviation = x.mean(dim=(0, 2, 3), keepdim=True), x.std(dim=(0, 2, 3), keepdim=True)
    net = ResNet(3, int(y.max()) + 1, size=SIZE, **small(quick)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=0.01)
    steps = epochs * -(-len(x) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK, total_steps=steps)
    change = Flip() | Crop(4)
    for _ in range(epochs):
        for index in torch.randperm(len(x), device=device).split(64):
            rows = change((x[index] - mean) / deviation, y[index])[0]
            loss = nn.functional.cross_entropy(net(rows), y[index], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    net.eval()
    x, y = tensors(test, device)
    with torch.no_grad():
        said = torch.cat([net((part - mean) / deviation).argmax(dim=1) for part in x.split(500)])
    return 100 * float((said == y).float().mean()), seconds


def small(quick: bool) -> dict[str, Any]:
    """Return the size of the network: the usual one, or a tiny one for a trial."""
    return {"depth": 8, "width": 4} if quick else {}


def tensors(images: Any, device: str) -> tuple[Tensor, Tensor]:
    """Return all images (n, 3, 32, 32) and the numbers of their classes."""
    pixels = images.pixels(np.arange(len(images)), SIZE, 3)
    codes = np.unique(images.target, return_inverse=True)[1]
    return pixels.to(device).float() / 255, torch.from_numpy(codes).to(device)
