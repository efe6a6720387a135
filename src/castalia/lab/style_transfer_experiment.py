"""Style transfer: one photograph painted in the manner of another image.

The eyes are a small VGG with random weights: no file is needed. Products of channels, averaged over
the image, are brought to those of the style; deep maps stay near those of the content.

Reference: 2016, Gatys, Ecker, Bethge, Image style transfer using convolutional neural networks,
CVPR, arXiv 1508.06576.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_sample_image

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.vision import StyleTransfer
from castalia.utils.figure_style import COLOURS, caption, log_scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["drawn", "run"]


def drawn(side: int = 256, seed: int = 0) -> np.ndarray:
    """Return an image of swirling brush strokes in blue, white and ochre, (side, side, 3) bytes.

    Waves whose direction follows a smooth field, as in a painted night sky.
    """
    random = np.random.default_rng(seed)
    down, across = np.mgrid[:side, :side] / side
    angle = np.zeros((side, side))
    for _ in range(6):  # whirls
        y, x = random.uniform(0, 1, 2)
        near = np.exp(-((down - y) ** 2 + (across - x) ** 2) / 0.05)
        angle += near * np.arctan2(down - y, across - x) * random.choice([-1, 1])
    phase = 90 * (down * np.cos(angle) + across * np.sin(angle)) + 6 * np.sin(9 * across + 5 * down)
    stroke = 0.5 + 0.5 * np.sin(phase)
    light = 0.5 + 0.5 * np.sin(7 * across + 4 * np.sin(5 * down) + 2)
    night, sky, ochre = np.array([[18, 32, 86], [116, 164, 214], [236, 190, 74]])
    image = night + stroke[..., None] * (sky - night)
    glow = (light**4 * stroke)[..., None]
    found: np.ndarray = (image * (1 - glow) + ochre * glow).clip(0, 255).astype(np.uint8)
    return found


def run(*, quick: bool = False) -> Outcome:
    """Paint scikit-learn's photograph of a temple in a drawn and in a photographed style."""
    size, steps = (48, 30) if quick else (224, 200)
    content = load_sample_image("china.jpg")
    styles = {"drawn": drawn(), "flower": load_sample_image("flower.jpg")}
    figure, axes = panels(3, (11.0, 5.6), rows=2)
    numbers: dict[str, float] = {}
    _image(axes[0], content, "content")
    for i, (name, style) in enumerate(styles.items()):
        painter = StyleTransfer(image_size=size, steps=steps, random_state=0).fit(style)
        painted = painter.transform(content)[0]
        history = painter.history_[0]
        losses = [line["loss"] for line in history]
        numbers |= {
            f"{name}: loss left": losses[-1] / losses[0],
            f"{name}: style left": history[-1]["style"] / history[0]["style"],
            f"{name}: rises": float(np.sum(np.diff(losses) > 0)),
        }
        _image(axes[1 + i], style, f"style, {name}")
        _image(axes[4 + i], painted, "painted")
        axes[3].plot([h["step"] for h in history], losses, color=COLOURS[i], label=name)
    axes[3].set(xlabel="iterations of L-BFGS", ylabel="loss")
    log_scale(axes[3])
    caption(axes[3])
    said = (
        f"{steps} iterations take the loss to {numbers['drawn: loss left']:.1%} and "
        f"{numbers['flower: loss left']:.1%} of where it began, and it never rises."
    )
    return Outcome(figure, numbers, said)


def _image(ax: Axes, image: np.ndarray, title: str) -> None:
    ax.imshow(image)
    ax.set(xticks=[], yticks=[], title=title)
    ax.grid(False)
    ax.spines[:].set_visible(False)
