"""In-context learning: a model reads solved examples in its prompt, and no weight changes.

Every text is a list in a dialect of its own: each word has four translations, and the text keeps to
one of them, drawn at random. So nothing about a new dialect can be learnt beforehand; what a model
can learn is to look for the word among the examples before. With k of n words shown, the best
possible share of right answers is k / n + (1 - k / n) / 4. Translations say whose they are, which
makes the search easy enough for one layer of attention and a few hundred steps. All sizes train for
the same number of steps: with more, the middle one gets there as well.

Reference: 2020, Brown et al., Language models are few-shot learners, arXiv 2005.14165.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch.nn.utils import parameters_to_vector

from castalia.data.prompts import Prompt, PromptTemplate
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.language import GPTLanguageModel, answer
from castalia.utils.figure_style import COLOURS, INK, caption, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TEMPLATE", "accuracies", "ask", "best_possible", "run", "trained", "write_texts"]

TEMPLATE = PromptTemplate("{word}: {translation}")
WORDS = ("cheese", "sea", "bread", "house", "dog", "tree")
DIALECTS = 4  # translations of a word
LINES = 12  # of a training text
SIZES = (4, 8, 16)  # widths of the models
SHOTS = (0, 1, 2, 3, 4, 5, 6)


def _dialect(random: np.random.Generator) -> dict[str, str]:
    """Draw a translation of every word."""
    return {word: f"{word}-{random.integers(DIALECTS)}" for word in WORDS}


def write_texts(n: int, seed: int = 0) -> list[str]:
    """Write lists to learn from, each in its own dialect.

    >>> write_texts(1)[0].splitlines()[:2]
    ['cheese: cheese-3', 'cheese: cheese-3']
    """
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        dialect = _dialect(random)
        chosen = random.choice(WORDS, LINES)
        texts.append("\n".join(TEMPLATE.example((word, dialect[word])) for word in chosen))
    return texts


def ask(n: int, shots: int, seed: int = 1) -> tuple[list[Prompt], list[str]]:
    """Return prompts with so many solved examples in a new dialect each, and the answers.

    >>> prompts, answers = ask(1, 2)
    >>> print(prompts[0], answers)
    tree: tree-0
    dog: dog-0
    sea: ['sea-2']
    """
    random = np.random.default_rng(seed)
    prompts, answers = [], []
    for _ in range(n):
        dialect = _dialect(random)
        shown = [(word, dialect[word]) for word in random.permutation(WORDS)[:shots]]
        query = str(random.choice(WORDS))
        prompts.append(TEMPLATE(query, examples=shown))
        answers.append(dialect[query])
    return prompts, answers


def best_possible(shots: int) -> float:
    """Return the share of right answers of one who finds what is shown and guesses the rest."""
    shown = shots / len(WORDS)
    return shown + (1 - shown) / DIALECTS


def trained(dim: int, texts: list[str], epochs: int, seed: int) -> GPTLanguageModel:
    """Train a model of one layer on lists."""
    return GPTLanguageModel(
        dim=dim,
        depth=1,
        heads=1,
        dropout=0.0,
        tied=False,
        context=2 * LINES + 1,  # a list and its end
        tokenizer="whitespace",
        epochs=epochs,
        batch_size=32,
        lr=1e-2,
        random_state=seed,
    ).fit(texts)


def accuracies(model: Any, n: int) -> list[float]:
    """Return the share of right answers for each number of shots."""
    found = []
    for shots in SHOTS:
        prompts, right = ask(n, shots)
        said = answer(model, prompts, tokens=1)
        found.append(float(np.mean([a == b for a, b in zip(said, right, strict=True)])))
    return found


def run(*, quick: bool = False) -> Outcome:
    """Train three sizes of a model on lists, and ask each with more and more examples."""
    texts, asked = write_texts(1000), 200 if quick else 1000
    right = np.zeros((len(SIZES), 1 if quick else 3, len(SHOTS)))
    parameters, moved = [], 0.0
    for size, dim in zip(right, SIZES, strict=True):
        for seed in range(len(size)):
            model = trained(dim, texts, epochs=8, seed=seed)
            before = parameters_to_vector(model.module_.parameters()).detach()
            size[seed] = accuracies(model, asked)
            after = parameters_to_vector(model.module_.parameters()).detach()
            moved = max(moved, float((after - before).abs().max()))
        parameters.append(len(before))
    mean = right.mean(axis=1)  # (sizes, shots)
    figure, (left, other) = panels(2, (9.5, 3.8))
    _draw_shots(left, right, parameters)
    _draw_sizes(other, right[..., -1], parameters)
    numbers = {
        **{
            f"{n:,} weights, {k}-shot": float(mean[i, k])
            for i, n in enumerate(parameters)
            for k in SHOTS
        },
        **{f"best possible, {k}-shot": best_possible(k) for k in SHOTS},
        "largest change of a weight": moved,
    }
    said = (
        f"Of new dialects, {parameters[-1]:,} weights translate {mean[-1, 0]:.0%} right without an "
        f"example and {mean[-1, -1]:.0%} with {SHOTS[-1]} in the prompt; {parameters[0]:,} weights "
        f"stay at {mean[0, -1]:.0%}."
    )
    return Outcome(figure, numbers, said)


def _draw_shots(ax: Axes, right: np.ndarray, parameters: list[int]) -> None:
    """Draw accuracy over shots: the mean over seeds, and between which values they lie."""
    best = [best_possible(k) for k in SHOTS]
    ax.plot(SHOTS, best, "--", color=INK, linewidth=1.2, label="best possible")
    for seeds, count, colour in zip(right, parameters, COLOURS, strict=False):
        ax.fill_between(SHOTS, seeds.min(axis=0), seeds.max(axis=0), color=colour, alpha=0.15)
        ax.plot(SHOTS, seeds.mean(axis=0), "o-", ms=4, color=colour, label=f"{count:,} weights")
    ax.set(xlabel="solved examples in the prompt", ylabel="share right", ylim=(0, 1.03))
    whole_ticks(ax.xaxis)
    caption(ax, 2)


def _draw_sizes(ax: Axes, right: np.ndarray, parameters: list[int]) -> None:
    """Draw accuracy with most shots over size, a point a seed."""
    for seeds, count, colour in zip(right, parameters, COLOURS, strict=False):
        ax.plot([count] * len(seeds), seeds, "o", ms=4, color=colour, alpha=0.7)
    ax.plot(parameters, right.mean(axis=1), "-", color=INK, linewidth=1.2, zorder=1)
    ax.axhline(1 / DIALECTS, color=INK, linewidth=1, linestyle=":")
    ax.text(
        parameters[-1], 1 / DIALECTS - 0.02, "guessing", color=INK, ha="right", va="top", size=9
    )
    ax.set_xscale("log")
    ax.set_xticks(parameters, [f"{count:,}" for count in parameters])
    ax.minorticks_off()
    ax.set(xlabel="weights", ylabel=f"share right with {SHOTS[-1]} examples", ylim=(0, 1.03))
