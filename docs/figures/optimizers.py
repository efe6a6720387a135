"""Loss against gradient evaluations: draws ``docs/images/optimizers.png``.

``python -m docs.figures.optimizers`` from the project's folder; about a minute. A curvature product
and a loss without gradient count as one evaluation each.
"""

from pathlib import Path

import matplotlib
from benchmarks.second_order import SIZES, curves, problems

OUT = Path(__file__).parents[1] / "images" / "optimizers.png"
COLOURS = ("0.45", "tab:blue", "tab:red", "tab:green")


def main(scale: str = "full") -> None:
    """Run every optimizer on every problem and draw a panel for each."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = SIZES[scale]
    found = {problem.name: curves(problem, size.evaluations) for problem in problems(size)}
    figure, panels = plt.subplots(1, len(found), figsize=(13, 3.9), layout="constrained")
    for panel, (title, lines) in zip(panels, found.items(), strict=True):
        for colour, (name, curve) in zip(COLOURS, lines.items(), strict=True):
            panel.plot(*zip(*curve, strict=True), color=colour, label=name, drawstyle="steps-post")
        panel.set(title=title, xlabel="gradient evaluations", yscale="log")
        panel.title.set_fontsize(10)
        panel.legend(fontsize=8, frameon=False)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("loss")
    figure.savefig(OUT, dpi=110)


if __name__ == "__main__":
    main()
