"""Target codecs, one a task: targets checked and encoded, outputs decoded."""

from castalia.base.targets.class_codec import ClassCodec, class_weights, encode_classes
from castalia.base.targets.number_codec import NumberCodec, numeric_target
from castalia.base.targets.target_codec import NoTarget, Target, TargetCodec
from castalia.base.targets.text_codec import TextCodec

__all__ = [
    "ClassCodec",
    "NoTarget",
    "NumberCodec",
    "Target",
    "TargetCodec",
    "TextCodec",
    "class_weights",
    "encode_classes",
    "numeric_target",
]
