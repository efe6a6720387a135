"""Models of images."""

from castalia.models.vision.convolutional_classifiers import (
    AlexNetClassifier,
    ConvNetClassifier,
    GoogLeNetClassifier,
    LeNetClassifier,
    ResNetClassifier,
    VGGClassifier,
)
from castalia.models.vision.fast_convnet_classifier import FastConvNetClassifier
from castalia.models.vision.fully_convolutional import FullyConvolutional
from castalia.models.vision.image_captioner import ImageCaptioner
from castalia.models.vision.patch_classifiers import ConvNeXtClassifier, ViTClassifier
from castalia.models.vision.segmenters import (
    DilatedSegmenter,
    FCNSegmenter,
    SegNetSegmenter,
    UNetSegmenter,
)
from castalia.models.vision.style_transfer_estimator import StyleTransfer
from castalia.models.vision.synthesis import synthesise
from castalia.models.vision.video_frames import smooth_frames
from castalia.models.vision.yolo_detector import YOLODetector
from castalia.nets.transfer import freeze, replace_head, unfreeze
from castalia.nets.vision.torchvision_weights import load_weights
from castalia.utils.moved_names import moved_names

__all__ = [
    "AlexNetClassifier",
    "ConvNeXtClassifier",
    "ConvNetClassifier",
    "DilatedSegmenter",
    "FCNSegmenter",
    "FastConvNetClassifier",
    "FullyConvolutional",
    "GoogLeNetClassifier",
    "ImageCaptioner",
    "LeNetClassifier",
    "ResNetClassifier",
    "SegNetSegmenter",
    "StyleTransfer",
    "UNetSegmenter",
    "VGGClassifier",
    "ViTClassifier",
    "YOLODetector",
    "freeze",
    "load_weights",
    "replace_head",
    "smooth_frames",
    "synthesise",
    "unfreeze",
]

__getattr__ = moved_names(__name__, {"ConvNet1dClassifier": "castalia.models.sequence"})
