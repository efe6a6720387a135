"""Which way each setting moves the capacity of a model, for those who tune by hand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["EFFECTS", "Effect"]


@dataclass(frozen=True)
class Effect:
    """What turning one knob does.

    Attributes
    ----------
    raises_capacity
        ``"larger"`` or ``"smaller"``: the direction in which the training error falls.
    because
        Why.
    but
        What it costs.
    """

    raises_capacity: str
    because: str
    but: str


EFFECTS: dict[str, Effect] = {
    "hidden": Effect(
        "larger", "more units can represent more functions", "time and memory grow with each step"
    ),
    "lr": Effect(
        "larger",
        "up to the best rate, more of the capacity is reached in the same epochs",
        "beyond it the training error rises and then diverges",
    ),
    "epochs": Effect("larger", "the weights get farther from their start", "time; overfitting"),
    "dropout": Effect(
        "smaller", "units dropped less often may fit the rows together", "overfitting"
    ),
    "training__weight_decay": Effect("smaller", "weights are free to grow", "overfitting"),
    "alpha": Effect("smaller", "weights are free to grow", "overfitting"),
    "label_smoothing": Effect("smaller", "targets may be met exactly", "overconfidence"),
}
