"""Models of pictures."""

from castalia.models.vision.classifiers import (
    AlexNetClassifier,
    ConvNetClassifier,
    GoogLeNetClassifier,
    LeNetClassifier,
    ResNetClassifier,
    VGGClassifier,
)
from castalia.models.vision.frames import smooth_frames
from castalia.models.vision.fully_convolutional import FullyConvolutional
from castalia.models.vision.image_captioner import ImageCaptioner
from castalia.models.vision.segmenters import (
    DilatedSegmenter,
    FCNSegmenter,
    SegNetSegmenter,
    UNetSegmenter,
)
from castalia.models.vision.signals import ConvNet1dClassifier
from castalia.models.vision.style_transfer import StyleTransfer
from castalia.models.vision.synthesis import synthesise
from castalia.models.vision.yolo_detector import YOLODetector
from castalia.nets.transfer import freeze, replace_head, unfreeze
from castalia.nets.vision.weights import load_weights

__all__ = [
    "AlexNetClassifier",
    "ConvNet1dClassifier",
    "ConvNetClassifier",
    "DilatedSegmenter",
    "FCNSegmenter",
    "FullyConvolutional",
    "GoogLeNetClassifier",
    "ImageCaptioner",
    "LeNetClassifier",
    "ResNetClassifier",
    "SegNetSegmenter",
    "StyleTransfer",
    "UNetSegmenter",
    "VGGClassifier",
    "YOLODetector",
    "freeze",
    "load_weights",
    "replace_head",
    "smooth_frames",
    "synthesise",
    "unfreeze",
]
