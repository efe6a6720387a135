"""A classifier of small images slid over large ones, all windows in one pass.

A network that learnt digits in windows, and windows without one, becomes a convolution and answers
for every window of a large canvas at once. The best window decides what is there; the middle of the
canvas does not know.

Reference: 2014, Sermanet et al., OverFeat, ICLR, arXiv 1312.6229.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax

from castalia.lab.digits import Digits, digits
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.vision import FullyConvolutional, LeNetClassifier
from castalia.utils.figure_style import COLOURS, heat

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["lessons", "run", "scattered"]

NOISE = 0.2  # of the canvas, where a digit is 1
NOTHING = 10  # the class of windows without a digit
PART = 0.4  # of a digit: less than this is nothing


def scattered(
    images: np.ndarray, side: int, random: np.random.Generator, clear: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Put each image somewhere on a noisy canvas; ``clear`` pixels about the middle stay free.

    Returns
    -------
    ndarray (N, side, side)
        The canvases.
    ndarray (N, 2)
        Where the upper left corners are.
    """
    size = images.shape[1]
    canvases = random.uniform(0, NOISE, (len(images), side, side))
    corners = random.integers(0, side - size + 1, (len(images), 2))
    for _ in range(100):  # draw again those too near to the middle
        near = np.abs(corners + size / 2 - side / 2).max(axis=1) < clear
        corners[near] = random.integers(0, side - size + 1, (near.sum(), 2))
    for canvas, image, (top, left) in zip(canvases, images, corners, strict=True):
        part = canvas[top : top + size, left : left + size]
        np.maximum(part, image, out=part)
    return canvases, corners


def lessons(data: Digits, window: int, random: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Return windows with a digit, and as many with noise or a part of one: class ``NOTHING``."""
    images = data.x.reshape(-1, data.side, data.side)
    whole, _ = scattered(images, window, random)
    wide, corners = scattered(images, 3 * window, random)
    parts = []
    for canvas, corner in zip(wide, corners, strict=True):
        while True:
            top, left = random.integers(0, 2 * window + 1, 2)
            inside = np.minimum(corner + data.side, (top + window, left + window))
            seen = (inside - np.maximum(corner, (top, left))).clip(0).prod() / data.side**2
            if seen < PART:
                break
        parts.append(canvas[top : top + window, left : left + window])
    labels = np.concatenate([data.y, np.full(len(parts), NOTHING)])
    return np.concatenate([whole, np.stack(parts)]).astype(np.float32), labels


def run(*, quick: bool = False) -> Outcome:
    """Train on windows, look for digits on canvases, and compare with cutting windows out."""
    data, random = digits(1000 if quick else 1500, 200, small=True), np.random.default_rng(0)
    side = data.side
    window, canvas = side + side // 2, 5 * side
    small = LeNetClassifier(epochs=20 if quick else 25, lr=2e-3, random_state=0)
    small.fit(*lessons(data, window, random))
    model = FullyConvolutional(estimator=small).fit()
    large, corners = scattered(data.x_test.reshape(-1, side, side), canvas, random, clear=side)
    large = large.astype(np.float32)
    begin = perf_counter()
    maps = softmax(model.transform(large), axis=1)  # (N, K, h, w)
    slid = perf_counter() - begin
    begin = perf_counter()
    explicit = _one_by_one(small, large, model)
    cutting = perf_counter() - begin
    cut = (canvas - window) // 2
    middle = small.predict_proba(large[:, cut : cut + window, cut : cut + window])[:, :NOTHING]
    best = maps[:, :NOTHING].max(axis=(2, 3)).argmax(axis=1)
    numbers = {
        "share right, best window": float((best == data.y_test).mean()),
        "share right, middle": float((middle.argmax(axis=1) == data.y_test).mean()),
        "windows a canvas": float(maps[0, 0].size),
        "windows that answer like the crop": float((maps.argmax(axis=1) == explicit).mean()),
        "seconds, one pass": slid,
        "seconds, crops": cutting,
    }
    figure, axes = panels(3, (10.0, 3.5))
    _draw(axes, large[0], maps[0, data.y_test[0]], corners[0], (side, window, model.stride_[0]))
    axes[1].set_title(f"probability of a {data.y_test[0]} in every window")
    names = ["middle of\nthe canvas", "best\nwindow"]
    values = [numbers["share right, middle"], numbers["share right, best window"]]
    axes[2].bar(names, values, color=[COLOURS[7], COLOURS[0]], width=0.55)
    axes[2].set(ylabel="share right", ylim=(0, 1))
    axes[2].grid(axis="x", visible=False)
    said = (
        f"Slid over {canvas} x {canvas} pixels, a LeNet trained on windows of {window} names "
        f"{values[1]:.0%} of the digits of {data.name}, and {values[0]:.0%} in the middle alone; "
        f"{numbers['windows that answer like the crop']:.1%} of its windows answer as the crop."
    )
    return Outcome(figure, numbers, said)


def _one_by_one(small: LeNetClassifier, large: np.ndarray, model: FullyConvolutional) -> np.ndarray:
    """Return the classes of every window cut out, (N, h, w)."""
    (height, width), (down, across) = model.window_, model.stride_
    views = np.lib.stride_tricks.sliding_window_view(large, (height, width), axis=(1, 2))
    views = views[:, ::down, ::across]  # (N, h, w, H, W)
    found = small.predict(np.ascontiguousarray(views).reshape(-1, height, width))
    return found.reshape(views.shape[:3])


def _draw(
    axes: list[Axes],
    canvas: np.ndarray,
    scores: np.ndarray,
    corner: np.ndarray,
    sizes: tuple[int, int, int],
) -> None:
    """Draw the canvas with the digit's place and the best window, and the map of its class."""
    side, window, stride = sizes
    axes[0].imshow(canvas, cmap="gray_r", vmin=0, vmax=1)
    best = np.array(np.unravel_index(scores.argmax(), scores.shape)) * stride
    for (top, left), size, colour, name in (
        (corner, side, COLOURS[7], "where it is"),
        (best, window, COLOURS[0], "best window"),
    ):
        xs = left - 0.5 + size * np.array([0, 1, 1, 0, 0])
        ys = top - 0.5 + size * np.array([0, 0, 1, 1, 0])
        axes[0].plot(xs, ys, color=colour, lw=1.6, label=name)
    axes[0].legend(
        frameon=False, fontsize=8.5, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2
    )
    axes[1].imshow(scores, cmap=heat())
    for ax in axes[:2]:
        ax.set(xticks=[], yticks=[])
        ax.grid(False)
        ax.spines[:].set_visible(False)
