"""Attention maps: where a small transformer looks while it reverses words, and while it sorts them.

Backwards is a question of places, sorted one of letters; the same network with two heads learns
both. Each row of a map is a query, its colours the weights on the keys. Between decoder and encoder
a head finds the letter that is to be written next: the place of it runs backwards in the first
task, and jumps in the second.

Reference: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.evaluate import AttentionMap
from castalia.evaluate.attention import attention_weights
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.language import Transformer
from castalia.train import Training
from castalia.utils.figure_style import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Looks", "looks", "run", "write"]

TASKS = ("reversed", "sorted")
LETTERS, HEADS = "abcdefghij", 2
EPOCHS = {"reversed": 14, "sorted": 10}
# The three attentions of a network with one block a half, in the order in which they are called.
ATTENTIONS = ("source to itself", "answer to itself", "answer to source")


class Looks(NamedTuple):
    """One attention for all rows: words of queries and keys, and weights (rows, heads, Q, K)."""

    queries: list[list[str]]
    keys: list[list[str]]
    weights: Tensor


def write(task: str, n: int, length: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Write rows of different letters, and their answers.

    >>> X, y = write("sorted", 1, 5, seed=0)
    >>> X[0], y[0]
    ('c e d g f', 'c d e f g')
    """
    random = np.random.default_rng(seed)
    alphabet = LETTERS[: length + 2]
    X, y = np.empty(n, dtype=object), np.empty(n, dtype=object)
    for i in range(n):
        letters = [alphabet[k] for k in random.permutation(len(alphabet))[:length]]
        X[i] = " ".join(letters)
        y[i] = " ".join(sorted(letters) if task == "sorted" else reversed(letters))
    return X, y


def looks(model: Transformer, X: np.ndarray, y: np.ndarray) -> list[Looks]:
    """Return the words and weights of the three attentions, while the true answers are written."""
    read = [["<s>", *text.split(), "</s>"] for text in X]
    written = [[*text.split(), "</s>"] for text in y]
    so_far = [["<s>", *words[:-1]] for words in written]
    tokenizer: Any = model.adapter_.tokenizer
    ids = tuple(
        torch.tensor([[tokenizer.id_of(word) for word in words] for words in rows])
        for rows in (read, so_far)
    )
    found = [attended.weights for attended in attention_weights(model.module_, ids)]
    # A query of the decoder stands at what it writes, not at what it has read.
    words = ((read, read), (written, so_far), (written, read))
    return [Looks(*both, w) for both, w in zip(words, found, strict=True)]


def on_next(shown: Looks) -> Tensor:
    """Return each head's mean weight on the letter that is written next, (heads,)."""
    places = [[keys.index(q) for q in row[:-1]] for row, keys in zip(*shown[:2], strict=True)]
    at = torch.tensor(places)[:, None, :, None].expand(-1, HEADS, -1, -1)
    return shown.weights[:, :, :-1].gather(3, at).mean(dim=(0, 2, 3))


def run(*, quick: bool = False) -> Outcome:
    """Train on both tasks and draw every head for one row of each."""
    length, rows = (5, 400) if quick else (7, 1500)
    figure, axes = panels(len(ATTENTIONS) * HEADS, (14, 5.4), rows=len(TASKS))
    numbers: dict[str, float] = {"of all weights alike": 1 / (length + 2)}
    for down, task in enumerate(TASKS):
        model = Transformer(
            tokenizer="whitespace",
            dim=32,
            depth=1,
            heads=HEADS,
            hidden=64,
            dropout=0.0,
            label_smoothing=0.0,
            epochs=EPOCHS[task],
            batch_size=20,
            lr=3e-3,
            training=Training(),  # a rate that stays
            random_state=0,
        ).fit(*write(task, rows, length, seed=0))
        X, y = write(task, 100, length, seed=1)
        maps = looks(model, X, y)
        numbers[f"{task}: right"] = float(np.mean(model.predict(X) == y))
        numbers[f"{task}: on the next letter"] = float(on_next(maps[-1]).max())
        _draw(axes[down * len(ATTENTIONS) * HEADS :], maps, task)
    said = (
        f"The better head has {numbers['reversed: on the next letter']:.0%} of its weight on the "
        f"letter that is written next when reversing and "
        f"{numbers['sorted: on the next letter']:.0%} when sorting; alike would be "
        f"{numbers['of all weights alike']:.0%}."
    )
    return Outcome(figure, numbers, said)


def _draw(axes: list[Axes], maps: list[Looks], task: str) -> None:
    """Draw the heads of each attention side by side, for the first row."""
    for i, (looks, name) in enumerate(zip(maps, ATTENTIONS, strict=True)):
        shown = AttentionMap.from_weights(looks.weights[0], looks.queries[0], looks.keys[0])
        for head in range(HEADS):
            ax = axes[i * HEADS + head]
            ax.grid(False)
            shown.plot(ax, head=head)
            ax.set_title(f"{name}, head {head}", color=INK, size=9)
    axes[0].set_ylabel(task)
