"""Models of pictures."""

from castalia.models.vision.yolo_detector import YOLODetector

__all__ = ["YOLODetector"]
