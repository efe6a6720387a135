"""Networks on signals and sequences."""

from castalia.catalog.records import System

__all__ = ["SEQUENCE"]

SEQUENCE = (
    System(
        name="ConvNet1dClassifier",
        path="castalia.models.sequence:ConvNet1dClassifier",
        family="sequence",
        tasks=("classification", "multilabel"),
        data="sequence",
        summary="Small convolutional network that classifies signals",
        reference=(
            "1989, Waibel, Hanazawa, Hinton, Shikano, Lang, Phoneme recognition using time-delay "
            "neural networks, IEEE ASSP 37"
        ),
        small={"widths": (8, 16), "convs": 1, "epochs": 20, "lr": 1e-2},
        toy="tones",
        pass_mark=0.9,
    ),
)
