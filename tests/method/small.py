"""Small tables and folders of images, and plans that take a second."""

import numpy as np
from PIL import Image

from castalia.method import FitPlan

QUICK = {"epochs": 2, "hidden": (8,)}


def write_table(path, rows=80, seed=0):
    rng = np.random.default_rng(seed)
    length, width = rng.normal(size=(2, rows))
    colour = rng.choice(["red", "blue"], rows)
    kind = np.where(length + 2 * (colour == "red") > 1, "plum", "pear")
    lines = ["length,width,colour,site,when,price,kind"]
    for i in range(rows):
        gap = "" if i % 11 == 3 else f"{width[i]:.3f}"
        lines.append(
            f"{length[i]:.3f},{gap},{colour[i]},s{i % 8},2024-01-{i % 28 + 1:02d},"
            f"{3 * length[i] + width[i]:.3f},{kind[i]}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def quick_plan(data, target="kind", **settings):
    quick = {"settings": QUICK, "seeds": 1, "boosting_rounds": 5, "preflight_seconds": 0}
    return FitPlan(data=data, target=target, **(quick | {"time": "none"} | settings))


SMALL_NET = {"epochs": 2, "widths": (4,), "convs": 1}


def image(kind, size, rng, mode="RGB"):
    """Return stripes across ("rows") or down ("columns"), or a disc, in noise."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    shape = {"rows": y // 2 % 2, "columns": x // 2 % 2}.get(kind)
    if shape is None:
        shape = (y - height / 2) ** 2 + (x - width / 2) ** 2 < (min(size) / 3) ** 2
    grey = 60 + 120 * shape + rng.normal(0, 20, size)
    return Image.fromarray(grey.clip(0, 255).astype(np.uint8)).convert(mode)


def write_images(folder, each=12, kinds=("rows", "columns"), size=(12, 12), mode="RGB", seed=0):
    """Write class folders of small images."""
    rng = np.random.default_rng(seed)
    for kind in kinds:
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for i in range(each):
            image(kind, size, rng, mode).save(folder / kind / f"{i}.png")
    return folder


def image_plan(data, **settings):
    quick = {"settings": SMALL_NET, "seeds": 1, "boosting_rounds": 2, "preflight_seconds": 0}
    return FitPlan(data=data, **(quick | settings))
