"""Networks that label every pixel of an image."""

from castalia.catalog.records import System

__all__ = ["VISION_SEGMENTERS"]

_VGG = {"widths": (64, 128, 256, 512, 512), "depths": (2, 2, 3, 3, 3), "hidden": 4096}

VISION_SEGMENTERS = (
    System(
        name="FCNSegmenter",
        path="castalia.models.vision:FCNSegmenter",
        family="vision",
        tasks=("segmentation",),
        data="image",
        summary="Fully convolutional network that labels every pixel, with finer maps added",
        reference=(
            "2015, Long, Shelhamer, Darrell, Fully convolutional networks for semantic "
            "segmentation, arXiv 1411.4038"
        ),
        small={
            "stride": 8,
            "widths": (8, 8, 16, 16, 16),
            "depths": (1, 1, 1, 1, 1),
            "hidden": 16,
            "dropout": 0.0,
            "epochs": 10,
            "batch_size": 4,
            "lr": 1e-2,
        },
        toy="shapes",
        pass_mark=0.6,
        sizes={f"FCN-{stride}s": {"stride": stride, **_VGG} for stride in (32, 16, 8)},
        rows=("VIS-24", "VIS-26"),
    ),
    System(
        name="SegNetSegmenter",
        path="castalia.models.vision:SegNetSegmenter",
        family="vision",
        tasks=("segmentation",),
        data="image",
        summary="Encoder and decoder that label every pixel and remember the places of maxima",
        reference=(
            "2017, Badrinarayanan, Kendall, Cipolla, SegNet: a deep convolutional encoder-decoder "
            "architecture for image segmentation, arXiv 1511.00561"
        ),
        small={"widths": (8, 16), "depths": (1, 1), "epochs": 15, "batch_size": 4, "lr": 1e-2},
        toy="shapes",
        pass_mark=0.85,
        sizes={"SegNet": {"widths": (64, 128, 256, 512, 512), "depths": (2, 2, 3, 3, 3)}},
        rows=("VIS-25", "VIS-27"),
    ),
    System(
        name="UNetSegmenter",
        path="castalia.models.vision:UNetSegmenter",
        family="vision",
        tasks=("segmentation",),
        data="image",
        summary="Encoder and decoder that label every pixel, joined by skips at every size",
        reference=(
            "2015, Ronneberger, Fischer, Brox, U-Net: convolutional networks for biomedical image "
            "segmentation, arXiv 1505.04597"
        ),
        small={"widths": (8, 16), "depth": 1, "epochs": 12, "batch_size": 4, "lr": 1e-2},
        toy="shapes",
        pass_mark=0.93,
        sizes={"U-Net": {"widths": (64, 128, 256, 512, 1024), "depth": 2}},
        rows=("VIS-24", "VIS-25", "VIS-28", "CNN-47"),
    ),
    System(
        name="DilatedSegmenter",
        path="castalia.models.vision:DilatedSegmenter",
        family="vision",
        tasks=("segmentation",),
        data="image",
        summary="Dilated convolutions that label every pixel from a wide context",
        reference=(
            "2016, Yu, Koltun, Multi-scale context aggregation by dilated convolutions, arXiv "
            "1511.07122"
        ),
        small={
            "widths": (8, 16),
            "depth": 1,
            "stride": 2,
            "hidden": 16,
            "dilations": (1, 2, 4),
            "epochs": 12,
            "batch_size": 4,
            "lr": 1e-2,
        },
        toy="shapes",
        pass_mark=0.8,
        rows=("VIS-29",),
    ),
)
