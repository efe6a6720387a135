"""Analogies by vector arithmetic: Paris - France + Italy is Rome.

Skip-gram reads invented sentences. Each is about a country or its capital: it names the place and
words that go with countries or with capitals, and words that go with both of this pair alone. So a
vector is nearly a sum, kind plus pair, and the step from country to capital is everywhere the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from castalia.data.word_vectors import Projection
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.language import Word2Vec
from castalia.utils.figure_style import COLOURS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CAPITALS", "questions", "run", "write_sentences"]

CAPITALS = {
    "france": "paris",
    "italy": "rome",
    "germany": "berlin",
    "spain": "madrid",
    "greece": "athens",
    "poland": "warsaw",
    "japan": "tokyo",
    "egypt": "cairo",
}
OF_COUNTRIES = ("nation", "border", "president", "parliament", "exports", "army")
OF_CAPITALS = ("city", "mayor", "streets", "suburbs", "underground", "museum")


def write_sentences(n: int, seed: int = 0) -> list[list[str]]:
    """Write sentences of five words in random order.

    >>> write_sentences(1)
    [['japan-1', 'museum', 'city', 'tokyo', 'japan-3']]
    """
    random = np.random.default_rng(seed)
    pairs = list(CAPITALS.items())
    sentences = []
    for _ in range(n):
        country, capital = pairs[random.integers(len(pairs))]
        place, kind = ((country, OF_COUNTRIES), (capital, OF_CAPITALS))[random.integers(2)]
        shared = [f"{country}-{i}" for i in random.choice(4, 2, replace=False)]
        words = [place, *random.choice(kind, 2, replace=False), *shared]
        sentences.append([str(words[i]) for i in random.permutation(5)])
    return sentences


def questions() -> list[tuple[str, str, str, str]]:
    """Return all analogies between countries and capitals."""
    pairs = list(CAPITALS.items())
    return [(a, b, c, d) for a, b in pairs for c, d in pairs if a != c]


def run(*, quick: bool = False) -> Outcome:
    """Train skip-gram on invented sentences, ask all analogies and draw the places on a plane."""
    model = Word2Vec(
        dim=20, window=4, dynamic=False, subsample=0, lr=0.05, epochs=3, random_state=7
    ).fit(write_sentences(3_000 if quick else 10_000))
    asked = model.evaluate_analogies(questions())
    places = [*CAPITALS, *CAPITALS.values()]
    plane = model.project(places)
    countries, capitals = model.embed(list(CAPITALS)), model.embed(list(CAPITALS.values()))
    steps = capitals - countries
    mean = steps.mean(axis=0)
    figure, (ax,) = panels(1, (7, 5))
    _draw(ax, plane)
    numbers = {
        "analogies answered": asked["total"],
        "analogies asked": asked["questions"],
        "explained by two components": float(plane.explained.sum()),
        "how alike the steps are": float(_cosines(steps, mean).mean()),
        "how alike the places are": float(_cosines(countries, countries.mean(axis=0)).mean()),
    }
    answer = model.analogy("france", "paris", "italy")[0][0]
    said = (
        f"paris - france + italy is nearest to {answer}; {asked['total']:.0%} of "
        f"{asked['questions']:.0f} analogies are answered so."
    )
    return Outcome(figure, numbers, said)


def _cosines(vectors: np.ndarray, other: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(other)
    return np.asarray(vectors @ other / lengths)


def _draw(ax: Axes, plane: Projection) -> None:
    at = dict(zip(plane.words, plane.points, strict=True))
    for country, capital in CAPITALS.items():
        ends = np.stack([at[country], at[capital]])
        ax.plot(*ends.T, color=INK, alpha=0.25, linewidth=1, zorder=1)
        for i, name in enumerate((country, capital)):
            right = at[name][0] > 0  # names stand outside, clear of the lines
            ax.scatter(*at[name], color=COLOURS[i], zorder=2)
            ax.annotate(
                name,
                at[name],
                xytext=(7 if right else -7, 0),
                textcoords="offset points",
                ha="left" if right else "right",
                va="center",
                color=COLOURS[i],
            )
    shares = [f"component {i + 1} ({share:.0%})" for i, share in enumerate(plane.explained)]
    ax.set(xlabel=shares[0], ylabel=shares[1], title="countries and their capitals")
    ax.margins(0.25, 0.08)
