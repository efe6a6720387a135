"""Images that a model draws, gives back or walks through, on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate.displays.display import Display
from castalia.evaluate.displays.drawn_images import as_images
from castalia.utils.figure_style import INK, label, start

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["SampleGrid", "image_grid"]

PIXELS = 400  # of a grid's longer side at least, so that small images can be seen


def image_grid(images: Any, across: int | None = None, *, gap: int = 1) -> np.ndarray:
    """Return images side by side as one, of bytes, (H, W) or (H, W, 3).

    Parameters
    ----------
    images
        (N, H, W) or (N, H, W, 3), bytes or values between 0 and 1.
    across
        How many stand in a row; None: about as many as rows.
    gap
        White pixels between them. Small images are enlarged by a whole factor.

    Examples
    --------
    >>> image_grid(np.zeros((6, 28, 28)), across=3).shape
    (283, 424)
    """
    tiles = _bytes(images)
    count, height, width = tiles.shape[:3]
    across = min(count, across or int(np.ceil(np.sqrt(count))))
    down = -(-count // across)
    zoom = max(1, -(-PIXELS // max(down * (height + gap), across * (width + gap))))
    tiles = tiles.repeat(zoom, axis=1).repeat(zoom, axis=2)
    high, wide = zoom * height + gap, zoom * width + gap
    whole = np.full((down * high + gap, across * wide + gap, *tiles.shape[3:]), 255, np.uint8)
    for i, tile in enumerate(tiles):
        top, left = gap + high * (i // across), gap + wide * (i % across)
        whole[top : top + zoom * height, left : left + zoom * width] = tile
    return whole


def _bytes(images: Any) -> np.ndarray:
    found = as_images("SampleGrid", np.asarray(images))
    if found is None or not len(found):
        raise InvalidData(
            "SampleGrid: there must be images, (n, H, W) or (n, H, W, 3); got shape "
            f"{np.shape(images)}."
        )
    if found.dtype == np.uint8:
        return found
    return np.round(255 * np.clip(found, 0, 1)).astype(np.uint8)


@dataclass
class SampleGrid(Display):
    """Images in rows: samples, images and what comes back of them, or walks through codes.

    Samples that look alike speak of collapsed modes; blurred ones of a model that averages. What
    comes back without its details was not in the code. Along a walk each image should be one that
    could be real.

    Parameters
    ----------
    images
        (N, H, W) or (N, H, W, 3), row by row.
    across
        How many stand in a row.
    names
        What each row is; empty where that goes without saying.
    title
        What is shown.

    Attributes
    ----------
    ax_, figure_
        What was drawn on.

    Examples
    --------
    >>> from castalia import VariationalAutoencoder
    >>> X = np.random.default_rng(0).uniform(size=(40, 8, 8))
    >>> model = VariationalAutoencoder(code=2, width=4, epochs=1, random_state=0).fit(X)
    >>> SampleGrid.from_estimator(model, 16).images.shape
    (16, 8, 8)
    >>> SampleGrid.from_reconstructions(model, X[:5]).names
    ('given', 'come back')
    """

    images: np.ndarray
    across: int
    names: tuple[str, ...] = ()
    title: str = ""

    @classmethod
    def from_estimator(
        cls, estimator: Any, n: int = 64, *, y: Any = None, random_state: Any = None
    ) -> SampleGrid:
        """Draw images with a fitted model.

        Parameters
        ----------
        estimator
            A model with ``sample``.
        n
            How many.
        y
            For conditional models: a class, or one for each.
        random_state
            Seed; None takes the model's.
        """
        _able(estimator, "sample")
        drawn = _bytes(estimator.sample(n, y, random_state=random_state))
        return cls(drawn, int(np.ceil(np.sqrt(n))), title=f"drawn by {type(estimator).__name__}")

    @classmethod
    def from_reconstructions(cls, estimator: Any, X: Any) -> SampleGrid:
        """Show images above what comes back of their codes."""
        _able(estimator, "reconstruct")
        given, back = _bytes(X), _bytes(estimator.reconstruct(X))
        return cls(np.concatenate([given, back]), len(given), ("given", "come back"))

    @classmethod
    def from_interpolations(cls, estimator: Any, a: Any, b: Any, steps: int = 8) -> SampleGrid:
        """Show, for each pair of images of a and b, the images between their codes."""
        _able(estimator, "interpolate")
        pairs = zip(np.asarray(a), np.asarray(b), strict=True)
        walks = [_bytes(estimator.interpolate(*pair, steps)) for pair in pairs]
        return cls(np.concatenate(walks), steps, title="from one image to another")

    @classmethod
    def from_traversals(
        cls, estimator: Any, dimensions: Sequence[int], row: Any = None, steps: int = 8
    ) -> SampleGrid:
        """Show what each of some dimensions of the code changes, from -2 to 2."""
        _able(estimator, "traverse")
        walks = [_bytes(estimator.traverse(d, row=row, steps=steps)) for d in dimensions]
        names = tuple(f"code {d}" for d in dimensions)
        return cls(np.concatenate(walks), steps, names, "one dimension from −2 to 2")

    def plot(self, ax: Axes | None = None) -> SampleGrid:
        """Draw the grid."""
        shown = image_grid(self.images, self.across)
        tall = 4.7 * shown.shape[0] / shown.shape[1]
        self.ax_, self.figure_ = start(ax, (4.7, min(max(tall, 0.8), 9) + 0.4), grid="none")
        limits: dict[str, Any] = {} if shown.ndim == 3 else {"cmap": "gray", "vmin": 0, "vmax": 255}
        self.ax_.imshow(shown, interpolation="nearest", **limits)
        rows = -(-len(self.images) // self.across)
        places = (np.arange(rows) + 0.5) * shown.shape[0] / rows
        named = len(self.names) == rows
        self.ax_.set_xticks([])
        self.ax_.set_yticks(
            places if named else [], [label(n) for n in self.names] if named else []
        )
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set_title(label(self.title, 60), color=INK)
        return self


def _able(estimator: Any, method: str) -> None:
    if not hasattr(estimator, method):
        raise InvalidParameter(
            f"SampleGrid: the model must have `{method}`; {type(estimator).__name__} has not."
        )
