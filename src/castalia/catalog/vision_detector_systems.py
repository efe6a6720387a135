"""Detectors: what is where on an image."""

from castalia.catalog.records import System

__all__ = ["VISION_DETECTORS"]

VISION_DETECTORS = (
    System(
        name="YOLODetector",
        path="castalia.models.vision:YOLODetector",
        family="vision",
        tasks=("detection",),
        data="image",
        summary="Network that finds and names all things on an image in one look",
        reference=(
            "2016, Redmon, Divvala, Girshick, Farhadi, You only look once: unified, real-time "
            "object detection, arXiv 1506.02640"
        ),
        small={
            "strides": (4,),
            "anchors": 1,
            "width": 8,
            "epochs": 10,
            "batch_size": 16,
            "lr": 1e-2,
        },
        toy="scenes",
        pass_mark=0.85,
        sizes={
            "YOLO (paper)": {"design": "paper", "image_size": 448, "boxes": 2},
            "three grids": {"strides": (8, 16, 32), "anchors": 3, "width": 32, "depth": 2},
        },
        rows=("VIS-18", "VIS-19", "VIS-20", "VIS-21"),
    ),
)
