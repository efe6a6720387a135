"""What is made of networks that see: maps of larger images, paintings, captions."""

from castalia.catalog.records import System

__all__ = ["VISION_TOOLS"]

VISION_TOOLS = (
    System(
        name="FullyConvolutional",
        path="castalia.models.vision:FullyConvolutional",
        family="vision",
        tasks=("classification", "multilabel", "class maps"),
        data="image",
        summary="A classifier of small images that looks everywhere in large ones",
        reference="2014, Sermanet et al., OverFeat, ICLR, arXiv 1312.6229",
        small={"pool": "max"},
        toy="stripes",
        pass_mark=0.9,
        rows=("CNN-34", "VIS-12"),
    ),
    System(
        name="StyleTransfer",
        path="castalia.models.vision:StyleTransfer",
        family="vision",
        tasks=("transformation",),
        data="image",
        summary="Paints images in the style of another one",
        reference=(
            "2016, Gatys, Ecker, Bethge, Image style transfer using convolutional neural networks,"
            " CVPR, arXiv 1508.06576"
        ),
        small={"steps": 14, "device": "cpu"},
        toy="textures",
        pass_mark=0.7,
        rows=("VIS-13", "VIS-14", "VIS-15"),
    ),
    System(
        name="ImageCaptioner",
        path="castalia.models.vision:ImageCaptioner",
        family="vision",
        tasks=("captioning",),
        data="image",
        summary="Convolutional and recurrent network that tell images in words",
        reference="2015, Xu et al., Show, attend and tell, arXiv 1502.03044",
        small={
            "widths": (12, 16, 24),
            "convs": 1,
            "dim": 16,
            "hidden": 32,
            "epochs": 5,
            "batch_size": 20,
            "lr": 1e-2,
        },
        toy="captions",
        pass_mark=90.0,
        rows=("VIS-30", "VIS-31"),
    ),
)
