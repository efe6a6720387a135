"""Models of pictures."""

from castalia.models.vision.segmenters import (
    DilatedSegmenter,
    FCNSegmenter,
    SegNetSegmenter,
    UNetSegmenter,
)

__all__ = ["DilatedSegmenter", "FCNSegmenter", "SegNetSegmenter", "UNetSegmenter"]
