"""Two causes of one effect: knowing one of them explains the other away.

P(burglary | alarm) = P(alarm | burglary) P(burglary) / P(alarm), and with the earthquake known the
alarm has an explanation. The same posteriors are found exactly by elimination and estimated by
likelihood weighting, whose effective size says how many of its rows count.
Reference: 1988, Pearl, Probabilistic reasoning in intelligent systems.
"""

from __future__ import annotations

import numpy as np

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.probabilistic import BayesianNetwork, TableNode
from castalia.models.probabilistic.network_figure import layered_places
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["burglar_alarm", "run"]

YES = ("yes", "no")
CASES: dict[str, dict[str, str]] = {
    "nothing known": {},
    "John calls": {"john": "yes"},
    "John and Mary call": {"john": "yes", "mary": "yes"},
    "alarm": {"alarm": "yes"},
    "alarm, earthquake": {"alarm": "yes", "earthquake": "yes"},
    "alarm, no earthquake": {"alarm": "yes", "earthquake": "no"},
}


def burglar_alarm() -> BayesianNetwork:
    """Return Pearl's network: burglary and earthquake set off an alarm, two neighbours call."""
    return BayesianNetwork.build(
        [
            TableNode("burglary", YES, [0.001, 0.999]),
            TableNode("earthquake", YES, [0.002, 0.998]),
            TableNode(
                "alarm",
                YES,
                [[[0.95, 0.05], [0.94, 0.06]], [[0.29, 0.71], [0.001, 0.999]]],
                ("burglary", "earthquake"),
            ),
            TableNode("john", YES, [[0.9, 0.1], [0.05, 0.95]], ("alarm",)),
            TableNode("mary", YES, [[0.7, 0.3], [0.01, 0.99]], ("alarm",)),
        ]
    )


def run(*, quick: bool = False) -> Outcome:
    """Ask for the burglary under growing evidence, exactly and by sampling."""
    net, n = burglar_alarm(), 20_000 if quick else 500_000
    exact = {name: net.marginals(known)["burglary"]["yes"] for name, known in CASES.items()}
    drawn, worth = {}, {}
    for name, known in CASES.items():
        rows = net.likelihood_weighting(n, known, random_state=0)
        drawn[name] = float(rows.weight @ (rows.columns["burglary"] == 0))
        worth[name] = rows.effective_size / n
    figure, (left, right) = panels(2, (9.6, 3.9))
    place = layered_places(net.parents_)
    left.plot(*zip(*place.values(), strict=True), "o", ms=2, color=INK)  # behind the names
    for parent, child in net.edges_:
        arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 14, "shrinkB": 14}
        left.annotate("", xy=place[child], xytext=place[parent], arrowprops=arrow)
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": INK}
        left.text(x, y, name, ha="center", va="center", fontsize=10, color="#33363a", bbox=box)
    left.set(xlim=(-1.2, 1.2), ylim=(-2.5, 0.5))
    left.axis("off")
    at = np.arange(len(CASES))[::-1]
    right.barh(at, list(exact.values()), color=COLOURS[0], height=0.6, label="exact")
    right.plot(list(drawn.values()), at, "o", color=COLOURS[1], ms=5, label="weighted samples")
    right.set_yticks(at, list(CASES), fontsize=9)
    right.set(xlabel="P(burglary | what is known)", xlim=(0, 0.5))
    caption(right, across=2)
    numbers = {
        **{f"P(burglary), {name}": value for name, value in exact.items()},
        "largest error of weighting": max(abs(exact[name] - drawn[name]) for name in CASES),
        "share of samples that count, John and Mary call": worth["John and Mary call"],
    }
    said = (
        f"The alarm makes a burglary {exact['alarm']:.2f} likely; the earthquake explains it away "
        f"to {exact['alarm, earthquake']:.4f}."
    )
    return Outcome(figure, numbers, said)
