"""A small table with words, gaps and a target, and a plan that takes a second."""

import numpy as np

from castalia.method import FitPlan

QUICK = {"epochs": 2, "hidden": (8,)}


def write_table(path, rows=80, seed=0):
    rng = np.random.default_rng(seed)
    length, width = rng.normal(size=(2, rows))
    colour = rng.choice(["red", "blue"], rows)
    kind = np.where(length + 2 * (colour == "red") > 1, "plum", "pear")
    lines = ["length,width,colour,site,when,price,kind"]
    for i in range(rows):
        gap = "" if i % 11 == 3 else f"{width[i]:.3f}"
        lines.append(
            f"{length[i]:.3f},{gap},{colour[i]},s{i % 8},2024-01-{i % 28 + 1:02d},"
            f"{3 * length[i] + width[i]:.3f},{kind[i]}"
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def quick_plan(data, target="kind", **settings):
    quick = {"settings": QUICK, "seeds": 1, "boosting_rounds": 5, "preflight_seconds": 0}
    return FitPlan(data=data, target=target, **(quick | settings))
