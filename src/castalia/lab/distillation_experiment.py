"""Distillation: few careless labels, and a teacher that says how likely each class is."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.dense import MLPClassifier
from castalia.models.strategies import Distill
from castalia.testing.toys import moons
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption

__all__ = ["run"]


def run(*, quick: bool = False) -> Outcome:
    """Give the teacher more and more weight against the labels."""
    shares = (0.0, 1.0) if quick else (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
    found = np.array([[_score(share, s) for s in range(1 if quick else 5)] for share in shares])
    student, teacher = found[:, :, 0], found[0, :, 1]
    figure, (ax,) = panels(1, (5.4, 3.8))
    ax.errorbar(shares, student.mean(axis=1), student.std(axis=1), fmt="o-", ms=4, capsize=2,
                color=COLOURS[0], label="student")  # fmt: skip
    ax.axhline(teacher.mean(), color=INK, lw=1, ls=(0, (4, 2)), label="teacher")
    ax.set(xlabel="weight of the teacher against the labels", ylabel="right on other rows")
    caption(ax)
    numbers = {
        "labels alone": float(student[0].mean()),
        "teacher alone": float(student[-1].mean()),
        "the teacher itself": float(teacher.mean()),
    }
    said = (
        f"From 80 labels of which a quarter is wrong the student is right on "
        f"{100 * numbers['labels alone']:.0f} %, from its teacher's view of the same rows on "
        f"{100 * numbers['teacher alone']:.0f} %."
    )
    return Outcome(figure, numbers, said)


def _score(share: float, seed: int) -> tuple[float, float]:
    teacher = RandomForestClassifier(50, min_samples_leaf=3, random_state=seed)
    teacher.fit(*moons(600, 0.2, seed + 1000))
    unseen, (X, y) = moons(1000, 0.2, seed + 2000), moons(80, 0.2, seed)
    y = np.where(np.random.default_rng(seed + 3000).random(80) < 0.25, 1 - y, y)
    net = MLPClassifier(hidden=(16,), epochs=60, lr=0.03, training=Training(validation=0))
    student = Distill(clone(net), teacher=teacher, share=share, random_state=seed).fit(X, y)
    return float(student.score(*unseen)), float(teacher.score(*unseen))
