"""Networks on images."""

from castalia.catalog.records import System

__all__ = ["VISION"]

_LECUN = (
    "1998, LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition,"
    " Proc. IEEE 86"
)

VISION = (
    System(
        name="ConvNetClassifier",
        path="castalia.models.vision:ConvNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="Small convolutional network that says what is on an image",
        reference=_LECUN,
        small={"widths": (8, 16), "convs": 1, "epochs": 10, "lr": 1e-2},
        toy="stripes",
        pass_mark=0.9,
        sizes={"under 100k weights": {"widths": (32, 48, 56)}},
        rows=("VIS-01",),
    ),
    System(
        name="FastConvNetClassifier",
        path="castalia.models.vision:FastConvNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="Convolutional network that is trained in seconds on a GPU",
        reference="2024, Jordan, 94% on CIFAR-10 in 3.29 seconds on a single GPU, arXiv 2404.00498",
        small={"widths": (8, 8), "augment": None, "views": "one"},
        toy="stripes",
        pass_mark=0.9,
        sizes={"large": {"widths": (128, 384, 512), "convs": 3, "shortcut": True, "epochs": 80}},
    ),
    System(
        name="ViTClassifier",
        path="castalia.models.vision:ViTClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="Vision transformer, an image as a sentence of patches",
        reference="2021, Dosovitskiy et al., An image is worth 16x16 words, arXiv 2010.11929",
        small={"dim": 32, "depth": 1, "heads": 2, "epochs": 12, "lr": 1e-2, "augment": None},
        toy="stripes",
        pass_mark=0.9,
        sizes={
            "tiny": {"dim": 192, "heads": 3, "patch": 16},
            "small": {"dim": 384, "heads": 6, "patch": 16},
            "base": {"dim": 768, "heads": 12, "patch": 16},
            "large": {"dim": 1024, "depth": 24, "heads": 16, "patch": 16},
        },
    ),
    System(
        name="ConvNeXtClassifier",
        path="castalia.models.vision:ConvNeXtClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="ConvNeXt, depthwise filters and dense layers over channels",
        reference="2022, Liu et al., A ConvNet for the 2020s, arXiv 2201.03545",
        small={
            "widths": (16,),
            "blocks": (1,),
            "patch": 2,
            "epochs": 11,
            "batch_size": 16,
            "lr": 2e-2,
            "augment": None,
        },
        toy="stripes",
        pass_mark=0.9,
        sizes={
            "tiny": {"widths": (96, 192, 384, 768), "blocks": (3, 3, 9, 3)},
            "small": {"widths": (96, 192, 384, 768), "blocks": (3, 3, 27, 3)},
            "base": {"widths": (128, 256, 512, 1024), "blocks": (3, 3, 27, 3)},
        },
    ),
    System(
        name="LeNetClassifier",
        path="castalia.models.vision:LeNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="LeNet-5, the digit recogniser of 1998",
        reference=_LECUN,
        small={"pooling": "max", "epochs": 15, "lr": 1e-2},
        toy="stripes",
        pass_mark=0.9,
        sizes={
            "LeNet-5 of 1998": {"pooling": "trainable", "activation": "tanh", "partial": True},
        },
        rows=("VIS-01",),
    ),
    System(
        name="AlexNetClassifier",
        path="castalia.models.vision:AlexNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="AlexNet, five convolutions and three dense layers",
        reference=(
            "2012, Krizhevsky, Sutskever, Hinton, ImageNet classification with deep convolutional "
            "neural networks, NeurIPS"
        ),
        small={
            "width": 0.04,
            "dropout": 0.0,
            "image_size": 64,
            "epochs": 6,
            "lr": 3e-3,
            "batch_size": 24,
        },
        toy="stripes",
        pass_mark=0.9,
        sizes={"two towers (2012)": {"towers": 2}, "one tower (2014)": {"towers": 1}},
        rows=("VIS-02",),
    ),
    System(
        name="VGGClassifier",
        path="castalia.models.vision:VGGClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="VGG, 11 to 19 layers of 3x3 convolutions and dense layers",
        reference=(
            "2014, Simonyan, Zisserman, Very deep convolutional networks for large-scale image "
            "recognition, arXiv 1409.1556"
        ),
        small={
            "depth": 11,
            "width": 0.04,
            "dropout": 0.0,
            "image_size": 32,
            "epochs": 6,
            "lr": 3e-3,
            "batch_size": 24,
        },
        toy="stripes",
        pass_mark=0.9,
        sizes={
            "VGG-11": {"depth": 11, "batch_norm": False},
            "VGG-13": {"depth": 13, "batch_norm": False},
            "VGG-16": {"depth": 16, "batch_norm": False},
            "VGG-19": {"depth": 19, "batch_norm": False},
        },
        rows=("VIS-03",),
    ),
    System(
        name="GoogLeNetClassifier",
        path="castalia.models.vision:GoogLeNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="GoogLeNet, inception modules of four branches each",
        reference="2014, Szegedy et al., Going deeper with convolutions, arXiv 1409.4842",
        small={
            "width": 0.06,
            "dropout": 0.0,
            "image_size": 40,
            "epochs": 7,
            "lr": 1e-2,
            "batch_size": 40,
        },
        toy="stripes",
        pass_mark=0.75,
        sizes={
            "of the paper": {"batch_norm": False},
            "with batch norm": {"batch_norm": True, "dropout": 0.2},
        },
        rows=("VIS-04",),
    ),
    System(
        name="ResNetClassifier",
        path="castalia.models.vision:ResNetClassifier",
        family="vision",
        tasks=("classification", "multilabel"),
        data="image",
        summary="Residual network: each block learns what to add to its input",
        reference=(
            "2015, He, Zhang, Ren, Sun, Deep residual learning for image recognition, arXiv "
            "1512.03385"
        ),
        small={"depth": 8, "width": 8, "epochs": 6, "lr": 1e-2, "batch_size": 24},
        toy="stripes",
        pass_mark=0.9,
        sizes={
            f"ResNet-{depth}": {"depth": depth}
            for depth in (18, 20, 32, 34, 44, 50, 56, 101, 110, 152, 200)
        },
        rows=("VIS-05", "VIS-06"),
    ),
)
