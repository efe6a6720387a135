"""A folder of JPEGs as augmented batches: our rows and transforms against a DataLoader of torch.

Both decode, resize to 224 x 224, cut a random window out of the padded image, mirror half of them
and normalise, with two workers: threads here, processes there. The peer uses torchvision's
transforms where that is installed, otherwise the same steps written with Pillow.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import DataLoader, Dataset

from benchmarks.harness import Bar, Contender, Report, installed, main, race, ratio, table

SIDE, PAD, BATCH, WORKERS = 224, 8, 64, 2
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Size:
    pictures: int
    rounds: int


SIZES = {"full": Size(1_000, 5), "quick": Size(300, 3), "tiny": Size(8, 1)}


def make_folder(folder: Path, pictures: int) -> None:
    """Write JPEGs of 500 x 375 in two classes: smooth shapes with some grain, like photographs."""
    random = np.random.default_rng(0)
    for i in range(pictures):
        place = folder / ("even" if i % 2 == 0 else "odd")
        place.mkdir(exist_ok=True)
        coarse = random.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        smooth = np.asarray(Image.fromarray(coarse).resize((500, 375), Image.Resampling.BICUBIC))
        grain = random.normal(0, 6, smooth.shape)
        pixels = (smooth + grain).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(place / f"{i:05}.jpg", quality=90)


def ours(folder: Path) -> Callable[[], None]:
    """Rows from files, decoded ahead by threads; batches are augmented as a whole."""
    from castalia.data.augment import Crop, Flip
    from castalia.data.images import FileRows, read_folder

    files = read_folder(folder, workers=WORKERS).source
    scale = (255 * torch.tensor(MEAN), 255 * torch.tensor(DEVIATION))
    rows = FileRows(files, (SIDE, SIDE), *scale)  # type: ignore[arg-type]
    augment = Crop(PAD) | Flip()

    def epoch() -> None:
        batches = torch.randperm(len(rows)).split(BATCH)
        rows.plan(batches)
        seen = sum(len(augment(rows.take(index))[0]) for index in batches)
        check(seen, len(rows))

    return epoch


class Pictures(Dataset[Any]):
    """What one writes by hand: a file, Pillow, a transform."""

    def __init__(self, folder: Path, transform: Callable[[Any], Any]) -> None:
        self.paths, self.transform = sorted(folder.glob("*/*.jpg")), transform

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, row: int) -> Any:
        with Image.open(self.paths[row]) as image:
            return self.transform(image.convert("RGB"))


def by_hand(image: Image.Image) -> torch.Tensor:
    """Resize, crop, mirror and normalise one image with Pillow and torch."""
    image = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    left, top = torch.randint(0, 2 * PAD + 1, (2,)).tolist()
    padded = ImageOps.expand(image, PAD)
    image = padded.crop((left, top, left + SIDE, top + SIDE))
    if torch.rand(()).item() < 0.5:
        image = ImageOps.mirror(image)
    x = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous().float().div_(255)
    return x.sub_(torch.tensor(MEAN).view(3, 1, 1)).div_(torch.tensor(DEVIATION).view(3, 1, 1))


def torchvision_transform() -> Any:
    """The same steps as torchvision's reference scripts write them."""
    from torchvision import transforms as t

    steps = [t.Resize((SIDE, SIDE)), t.RandomCrop(SIDE, padding=PAD), t.RandomHorizontalFlip()]
    return t.Compose([*steps, t.ToTensor(), t.Normalize(MEAN, DEVIATION)])


def peer(folder: Path, transform: Callable[[Any], Any]) -> Callable[[], None]:
    """A DataLoader with two processes that stay for all epochs."""
    loader = DataLoader(
        Pictures(folder, transform),
        batch_size=BATCH,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=True,
        prefetch_factor=3,
    )

    def epoch() -> None:
        check(sum(len(x) for x in loader), len(loader.dataset))  # type: ignore[arg-type]

    return epoch


def check(seen: int, wanted: int) -> None:
    """Refuse an epoch that lost pictures."""
    if seen != wanted:
        raise RuntimeError(f"{seen} of {wanted} images came out")


def run(scale: str = "full") -> Report:
    """Time whole epochs over the folder; the warm-up epoch fills the file cache."""
    size = SIZES[scale]
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        make_folder(folder, size.pictures)
        contenders = [
            Contender("castalia", ours(folder)),
            Contender("DataLoader, Pillow", peer(folder, by_hand)),
        ]
        if installed("torchvision"):
            contenders.append(
                Contender("DataLoader, torchvision", peer(folder, torchvision_transform()))
            )
        found = race(contenders, size.rounds)
    best = min((c.name for c in contenders[1:]), key=lambda name: min(found[name].wall))
    share = ratio(found["castalia"], found[best], "wall").median
    setting = (
        f"{size.pictures} JPEGs of 500 x 375, {WORKERS} workers, batches of {BATCH} at {SIDE} x "
        f"{SIDE}, {size.rounds} rounds. CPU time of the peers' worker processes is not counted."
    )
    bars = [Bar(f"one epoch over {best}, wall", share, "<=", 1.0)]
    figures = {name: vars(result) for name, result in found.items()}
    return Report("image_decoding", setting, table(found, best, score=""), bars, figures)


if __name__ == "__main__":
    main(run)
