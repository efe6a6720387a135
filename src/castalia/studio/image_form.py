"""An image that is uploaded: its class and where it shows, the classes of its pixels, its boxes.

Everything that lies over an image is sent at the size of the image that is shown.
Shapes: H height, W width.
"""

from __future__ import annotations

import base64
import colorsys
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from castalia.data.images import Boxes, Images
from castalia.errors import CastaliaError, InvalidData
from castalia.evaluate import GradCAM
from castalia.method.images.fit_images import read_unlabelled
from castalia.method.images.thumbnails import thumbnail
from castalia.models.vision.detector_task import Detector
from castalia.models.vision.segmenter_task import Segmenter
from castalia.studio.run_index import RunRow
from castalia.studio.text_form import class_shares
from castalia.studio.uploaded_file import uploaded

__all__ = ["ImageForm", "colour_of"]

SIDE = 640  # pixels of the longer side, shown
GOLDEN = 0.618034  # of the colour circle from one class to the next
HEAT = (216, 67, 21)


def colour_of(place: int) -> tuple[int, int, int]:
    """Return the colour of a class by its place; neighbours differ.

    >>> colour_of(0) != colour_of(1)
    True
    """
    red, green, blue = colorsys.hls_to_rgb((0.58 + GOLDEN * place) % 1, 0.5, 0.7)
    return round(255 * red), round(255 * green), round(255 * blue)


class ImageForm:
    """An image, and what a model of images says of it."""

    takes = "image"

    def __init__(self, row: RunRow, model: Any) -> None:
        if not hasattr(model, "predict"):
            name = type(model).__name__
            raise InvalidData(f"studio: a {name} predicts nothing of an image; use it in Python.")
        self.row, self.model = row, model

    def schema(self) -> dict[str, Any]:
        """Return nothing: any image will do."""
        return {}

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the image as the model's reader sees it, and what lies over it."""
        with uploaded(body, ".png") as path:  # what it is, its content says
            images, _ = read_unlabelled([path])
            return {"image": thumbnail(images, 0, SIDE), **self._said(images)}

    def _said(self, images: Images) -> dict[str, Any]:
        height, width = (int(side) for side in images.sizes[0])
        if isinstance(self.model, Detector):
            return _boxes(self.model.predict(images)[0], height, width)
        if isinstance(self.model, Segmenter):
            return self._mask(np.asarray(self.model.predict(images)[0]))
        if not hasattr(self.model, "predict_proba"):
            return {"prediction": str(self.model.predict(images)[0])}
        shares = class_shares(self.model.classes_, self.model.predict_proba(images)[0])
        return {"prediction": shares[0][0], "classes": shares, **self._heat(images)}

    def _mask(self, mask: np.ndarray) -> dict[str, Any]:  # (H, W)
        """Return a layer of colours, and the share of each class that is there."""
        codes = np.searchsorted(self.model.classes_, mask)
        colours = np.array([colour_of(i) for i in range(len(self.model.classes_))], np.uint8)
        shares = np.bincount(codes.ravel(), minlength=len(colours)) / codes.size
        legend: list[dict[str, Any]] = [
            {"name": str(name), "share": float(share), "colour": _hex(colour)}
            for name, share, colour in zip(self.model.classes_, shares, colours, strict=True)
            if share
        ]
        legend.sort(key=lambda each: -each["share"])
        return {"legend": legend, "layer": _layer(colours[codes], np.full(codes.shape, 255))}

    def _heat(self, images: Images) -> dict[str, Any]:
        """Return a layer of what speaks for the class; nothing where no network has maps."""
        try:
            heat = GradCAM.from_estimator(self.model, images).maps[0]  # (H, W)
        except (CastaliaError, AttributeError):  # a model of shrunk pixels, a blend
            return {}
        if heat.max() <= 0:
            return {}
        colours = np.broadcast_to(np.array(HEAT, np.uint8), (*heat.shape, 3))
        return {"heat": True, "layer": _layer(colours, np.rint(255 * heat / heat.max()))}


def _boxes(found: Boxes, height: int, width: int) -> dict[str, Any]:
    """Return boxes in shares of the image, the surest first."""
    corners = found.corners / np.array([width, height, width, height])
    scores = np.ones(len(found)) if found.scores is None else found.scores
    names = sorted({str(name) for name in found.labels})
    return {
        "boxes": [
            {
                "name": str(name),
                "score": float(score),
                "corners": [float(c) for c in corner],
                "colour": _hex(colour_of(names.index(str(name)))),
            }
            for name, score, corner in zip(found.labels, scores, corners, strict=True)
        ]
    }


def _hex(colour: Any) -> str:
    return "#{:02x}{:02x}{:02x}".format(*(int(part) for part in colour))


def _layer(colours: np.ndarray, cover: np.ndarray) -> str:
    """Return an image that is seen through, of at most the shown size, as a data URI."""
    from PIL import Image

    array = np.dstack([colours, cover.astype(np.uint8)])
    image = Image.fromarray(array)
    scale = min(1.0, SIDE / max(image.size))
    image = image.resize(
        [max(1, round(side * scale)) for side in image.size],  # type: ignore[arg-type]
        Image.Resampling.NEAREST,
    )
    out = io.BytesIO()
    image.save(out, "png")
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"
