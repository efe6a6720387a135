"""What every model of images that is trained by gradients has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from castalia.base import Constraint, Estimator
from castalia.data.adapter_base import Reads
from castalia.data.images import ImageAdapter
from castalia.models.vision.image_size import ImageSize

__all__ = ["ImageEstimator", "Transform"]


class Transform(Constraint):
    """A random change of images, None, or one of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def rule(self) -> str:
        """Say so."""
        words = "".join(f"{word!r}, " for word in self.words)
        return f"{words}a transform of castalia.data.augment, such as Flip() | Shift(0.1), or None"

    def holds(self, value: Any) -> bool:
        """Whether it can be called."""
        return value is None or callable(value) or value in self.words


@dataclass(kw_only=True, eq=False, repr=False)
class ImageEstimator(Estimator):
    """Base of networks on images; a task mixin stands to the left of it.

    Parameters
    ----------
    image_size
        Height and width that images are brought to, or one number for both; None keeps the size
        they have.
    augment
        Random changes of the training images, such as ``Flip() | Shift(0.1)``; None: none.
    """

    adapter: ClassVar[Any] = Reads(ImageAdapter, size="image_size")

    image_size: Annotated[Any, ImageSize()] = None
    augment: Annotated[Any, Transform()] = None
