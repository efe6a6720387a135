"""Networks for images."""

from castalia.nets.vision.anchor_yolo import AnchorYOLO
from castalia.nets.vision.yolo import YOLO, YOLO_LAYERS, slim_layers

__all__ = ["YOLO", "YOLO_LAYERS", "AnchorYOLO", "slim_layers"]
