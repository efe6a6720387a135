"""The little of torchvision that the scripts use, where it is not installed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
from PIL import Image

from evidence.scripts_pictures import DATA_SETS

Change = Callable[[Any], Any]


def install(module: Callable[..., Any]) -> None:
    """Make the modules."""
    module("torchvision", __version__="0.0")
    module("torchvision.datasets", **DATA_SETS)
    module("torchvision.datasets.mnist", **DATA_SETS)
    made = module("torchvision.transforms", **{one.__name__: one for one in TRANSFORMS})
    module("torchvision.transforms.functional")
    made.v2 = made
    module(
        "torchvision.utils", save_image=lambda *_, **__: None, make_grid=lambda x, *_, **__: x[0]
    )
    module("torchvision.models", __getattr__=lambda name: MagicMock())


def Compose(changes: list[Change]) -> Change:  # noqa: N802
    def composed(x: Any) -> Any:
        for change in changes:
            x = change(x)
        return x

    composed.transforms = changes  # type: ignore[attr-defined]
    return composed


def ToTensor() -> Change:  # noqa: N802
    def to_tensor(x: Any) -> torch.Tensor:
        array = np.array(x)
        array = array[:, :, None] if array.ndim == 2 else array
        return torch.from_numpy(array.transpose(2, 0, 1).astype(np.float32) / 255)

    return to_tensor


def Normalize(mean: Any, std: Any) -> Change:  # noqa: N802
    m, s = (torch.as_tensor(v, dtype=torch.float32).view(-1, 1, 1) for v in (mean, std))
    return lambda x: (x - m) / s


def Resize(size: Any, *_: Any, **__: Any) -> Change:  # noqa: N802
    def resize(x: Any) -> Any:
        w, h = (size, size) if isinstance(size, int) else size[::-1]
        return x.resize((w, h), Image.Resampling.BILINEAR)

    return resize


def CenterCrop(size: Any) -> Change:  # noqa: N802
    def crop(x: Any) -> Any:
        n = size if isinstance(size, int) else size[0]
        left, top = (x.width - n) // 2, (x.height - n) // 2
        return x.crop((left, top, left + n, top + n))

    return crop


def Pad(padding: int) -> Change:  # noqa: N802
    def pad(x: Any) -> Any:
        new = Image.new(x.mode, (x.width + 2 * padding, x.height + 2 * padding))
        new.paste(x, (padding, padding))
        return new

    return pad


def RandomCrop(size: int, padding: int = 0) -> Change:  # noqa: N802
    def crop(x: Any) -> Any:
        x = Pad(padding)(x)
        left, top = random.randint(0, x.width - size), random.randint(0, x.height - size)
        return x.crop((left, top, left + size, top + size))

    return crop


def RandomHorizontalFlip(p: float = 0.5) -> Change:  # noqa: N802
    def flip(x: Any) -> Any:
        return x.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < p else x

    return flip


def ToPILImage() -> Change:  # noqa: N802
    def to_picture(x: torch.Tensor) -> Any:
        array = (x * 255).byte().numpy().transpose(1, 2, 0)
        return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)

    return to_picture


def Lambda(change: Change) -> Change:  # noqa: N802
    return change


TRANSFORMS = (
    Compose,
    ToTensor,
    Normalize,
    Resize,
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    ToPILImage,
    Lambda,
)
