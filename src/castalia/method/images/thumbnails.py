"""Images small enough for a page that holds everything it shows."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from castalia.data.images import Images
from castalia.evaluate import FeatureMaps
from castalia.method.task import Task

__all__ = ["examples", "feature_maps", "thumbnail"]

SIDE = 112  # pixels of the longer side
LOSSLESS = 48  # pixels up to which an image is kept as it is
CLASSES, OF_EACH = 12, 8
LAYERS, MAPS, MAP_SIDE = 2, 16, 32


def thumbnail(images: Images, row: int, side: int = SIDE) -> str:
    """Return an image as a data URI, small by default."""
    from PIL import Image

    height, width = images.take([row]).sizes[0]
    scale = min(1.0, side / max(height, width))
    size = max(1, round(height * scale)), max(1, round(width * scale))
    x = images.pixels([row], size, 1 if images.channels == 1 else 3)[0]  # (C, H, W)
    if x.is_floating_point():
        low, high = x.min(), x.max()
        x = (255 * (x - low) / (high - low).clamp(min=1e-12)).to(torch.uint8)
    array = x.permute(1, 2, 0).numpy()
    image = Image.fromarray(array[..., 0] if array.shape[2] == 1 else array)
    kind = "png" if max(size) <= LOSSLESS else "jpeg"
    out = io.BytesIO()
    image.save(out, kind, **({"quality": 80} if kind == "jpeg" else {"optimize": True}))
    return f"data:image/{kind};base64,{base64.b64encode(out.getvalue()).decode()}"


def examples(images: Images, task: Task, seed: int) -> list[dict[str, Any]]:
    """Return some images of each class, the commonest classes first."""
    rng, codes = np.random.default_rng(seed), task.codes
    found = []
    for place in np.argsort(-np.bincount(codes), kind="stable")[:CLASSES]:
        rows = np.flatnonzero(codes == place)
        chosen = np.sort(rng.choice(rows, min(OF_EACH, len(rows)), replace=False))
        shown = [thumbnail(images, row) for row in chosen]
        found.append({"name": str(task.classes[place]), "count": len(rows), "images": shown})
    return found


def feature_maps(model: Any, images: Images, row: int) -> list[dict[str, Any]]:
    """Return what the first convolutions of a fitted classifier make of one image."""
    net = model.module_
    weight = next(net.parameters())
    x = next(iter(model.adapter_.blocks(images.take([row]), np.float32))).to(weight)
    convolutions = [name for name, m in net.named_modules() if isinstance(m, nn.Conv2d)]
    return [_shrunk(FeatureMaps.from_network(net, x, n, most=MAPS)) for n in convolutions[:LAYERS]]


def _shrunk(shown: FeatureMaps) -> dict[str, Any]:
    """Return a display in few numbers."""
    maps = torch.from_numpy(shown.maps)  # (C, H, W)
    shrink = min(1.0, MAP_SIDE / max(maps.shape[1:]))
    height, width = (max(1, round(n * shrink)) for n in maps.shape[1:])
    small = F.adaptive_avg_pool2d(maps, (height, width)).numpy().astype(float)
    digits = 3 - int(np.ceil(np.log10(max(np.abs(small).max(), 1e-9))))
    step = 1 if shown.image is None else -(-max(shown.image.shape[:2]) // (2 * MAP_SIDE))
    image = None if shown.image is None else np.round(shown.image[::step, ::step], 2)
    return {
        "name": shown.name,
        "maps": np.round(small, digits),
        "image": image,
        "hidden": shown.hidden,
    }
