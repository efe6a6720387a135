"""T5's comparisons in small: what pretraining owes to its objective, network, mixture and compute.

An invented language is learnt from sentences, and then a task from twelve labels. Each arm changes
one thing of the baseline: an encoder and a decoder that write damaged sentences whole again and are
then fine-tuned. Parameters and operations are counted, not assumed.
Reference: 2020, Raffel et al., Exploring the limits of transfer learning, arXiv 1910.10683, 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.lab.transfer import Arm, Plan, architectures, objectives, scalings, strategies
from castalia.utils.figure_style import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COMPARISONS", "draw", "run", "summary"]

COMPARISONS: dict[str, Callable[[Plan], list[Arm]]] = {
    "objective": objectives,
    "architecture": architectures,
    "strategy": strategies,
    "scaling": scalings,
}
QUICK = Plan(steps=3, tune=1, batch=4)


def run(*, quick: bool = False) -> Outcome:
    """Train every arm of the four comparisons and draw how well each names topics."""
    plan = QUICK if quick else Plan()
    return summary({name: compare(plan) for name, compare in COMPARISONS.items()})


def summary(arms: Mapping[str, list[Arm]]) -> Outcome:
    """Return figure, numbers and sentence for arms that were trained."""
    base = arms["scaling"][0]
    numbers = {f"{kind}: {arm.name}": arm.score for kind, some in arms.items() for arm in some}
    for arm in arms["architecture"]:
        numbers[f"parameters: {arm.name}"] = float(arm.parameters)
        numbers[f"compute: {arm.name}"] = arm.flops / base.flops
    for arm in arms["scaling"]:
        numbers[f"compute: {arm.name}"] = arm.flops / base.flops
    tried = {arm.name: arm.score for arm in arms["objective"]}
    best = max(arms["scaling"], key=lambda arm: arm.score)
    said = (
        f"From twelve labels alone {tried['labels alone']:.0%} of the topics are named, after "
        f"guessing masked words {tried['masked words']:.0%}; four times the compute does most as "
        f"{best.name} ({best.score:.0%})."
    )
    return Outcome(draw(arms), numbers, said)


def draw(arms: Mapping[str, list[Arm]]) -> Figure:
    """Draw a bar for each arm, the baseline's score as a line."""
    figure, axes = panels(2, (10, 6), rows=2)
    for ax, (kind, some) in zip(axes, arms.items(), strict=True):
        _bars(ax, some, arms["scaling"][0].score)
        ax.set(title=kind, xlim=(0, 1))
    for ax in axes[2:]:
        ax.set_xlabel("topics named right")
    return figure


def _bars(ax: Axes, arms: list[Arm], baseline: float) -> None:
    places = range(len(arms), 0, -1)
    ax.barh(places, [arm.score for arm in arms], color=COLOURS[0], height=0.6)
    ax.axvline(baseline, color=INK, lw=1, ls=(0, (4, 2)))
    ax.set_yticks(list(places), [arm.name for arm in arms])
    ax.grid(visible=False, axis="y")
    for place, arm in zip(places, arms, strict=True):
        ax.annotate(
            f"{arm.score:.0%}",
            (arm.score, place),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color="white",
            fontsize=8,
        )
