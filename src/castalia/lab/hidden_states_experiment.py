"""Hidden states: what a hidden Markov model finds in noise, and how many states there are.

A machine has three modes that last; readings are their levels in noise. Viterbi's path is compared
with the true modes, and with a mixture that knows no time; BIC chooses the number of states.
Reference: 1989, Rabiner, A tutorial on hidden Markov models, Proceedings of the IEEE 77.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.mixture import GaussianMixture

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.sequence import HiddenMarkovModel
from castalia.utils.figure_style import COLOURS, caption

__all__ = ["agreement", "modes", "run"]

LEVELS = np.array([-1.0, 0.0, 1.0])


def modes(steps: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return readings, (T,), and the mode of each; a mode lasts twenty steps on average."""
    random = np.random.default_rng(seed)
    change = random.random(steps) < 0.05
    drawn = random.integers(0, 3, steps)
    state = drawn[np.maximum.accumulate(np.where(change, np.arange(steps), 0))]
    return LEVELS[state] + noise * random.normal(size=steps), state


def agreement(found: np.ndarray, true: np.ndarray) -> float:
    """Return the share of steps in the same state, under the best renaming of states."""
    counts = np.zeros((found.max() + 1, true.max() + 1))
    np.add.at(counts, (found, true), 1)
    return float(counts[linear_sum_assignment(-counts)].sum() / len(true))


def run(*, quick: bool = False) -> Outcome:
    """Decode modes in more and more noise, and count them."""
    steps, noises = (600, (0.3, 0.7)) if quick else (3000, (0.2, 0.4, 0.6, 0.8, 1.0))
    figure, (left, middle, right) = panels(3, (13, 3.6))
    numbers: dict[str, float] = {}
    shares = []
    for noise in noises:
        x, state = modes(steps, noise, 0)
        model = HiddenMarkovModel(states=3, random_state=0, restarts=3).fit(x)
        alone = GaussianMixture(3, random_state=0, n_init=3).fit(x[:, None])
        shares.append(
            (agreement(model.predict(x), state), agreement(alone.predict(x[:, None]), state))
        )
        numbers[f"path right, noise {noise:g}"], numbers[f"mixture right, noise {noise:g}"] = (
            shares[-1]
        )
    shown = slice(0, 200)
    x, state = modes(steps, noises[len(noises) // 2], 0)
    path = HiddenMarkovModel(states=3, random_state=0, restarts=3).fit(x)
    left.plot(x[shown], ".", color="0.7", ms=4, label="readings")
    left.plot(LEVELS[state[shown]], color="k", lw=1, label="true mode")
    left.plot(
        path.means_[path.predict(x)[shown], 0], color=COLOURS[1], lw=1, label="Viterbi's path"
    )
    left.set(xlabel="step", ylabel="reading")
    caption(left, 3)
    for column, (name, colour) in enumerate(
        zip(("Viterbi's path", "mixture"), COLOURS, strict=False)
    ):
        middle.plot(noises, [pair[column] for pair in shares], "o-", color=colour, label=name)
    middle.set(xlabel="deviation of the noise", ylabel="steps in the right mode", ylim=(0.3, 1.02))
    caption(middle, 2)
    counted = HiddenMarkovModel(states=(1, 2, 3, 4, 5), random_state=0).fit(modes(steps, 0.4, 1)[0])
    right.plot(list(counted.bics_), list(counted.bics_.values()), "o-", color=COLOURS[0])
    right.set(xlabel="states", ylabel="BIC (smaller is better)", xticks=list(counted.bics_))
    numbers["states by BIC"] = float(min(counted.bics_, key=counted.bics_.__getitem__))
    path_right, mixture_right = shares[-1]
    said = (
        f"In noise of {noises[-1]:g} the path is right in {path_right:.0%} of the steps, a mixture "
        f"that knows no time in {mixture_right:.0%}; BIC counts {numbers['states by BIC']:.0f} "
        "states of 3."
    )
    return Outcome(figure, numbers, said)
