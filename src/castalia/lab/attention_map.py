"""Attention maps: where a small transformer looks while it reverses words, and while it sorts them.

Backwards is a question of places, sorted one of letters; the same network with two heads learns
both. Each row of a map is a query, its colours the weights on the keys. Between decoder and encoder
a head finds the letter that is to be written next: the place of it runs backwards in the first
task, and jumps in the second.

Reference: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from castalia.evaluate import AttentionMap
from castalia.evaluate.displays.style import INK
from castalia.lab.outcome import Outcome, panels
from castalia.models.language import Transformer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["looks", "run", "write"]

TASKS = ("reversed", "sorted")
LETTERS, HEADS = "abcdefghij", 2
EPOCHS = {"reversed": 14, "sorted": 8}
# The three attentions of a network with one block a half, in the order in which they are called.
ATTENTIONS = ("source to itself", "answer to itself", "answer to source")


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


def looks(model: Transformer, source: str, answer: str) -> list[AttentionMap]:
    """Return the maps of the three attentions; queries of the decoder stand at what they write."""
    read, written = ["<s>", *source.split(), "</s>"], [*answer.split(), "</s>"]
    so_far = ["<s>", *written[:-1]]
    tokenizer: Any = model.adapter_.tokenizer
    ids = tuple(
        torch.tensor([[tokenizer.id_of(word) for word in words]]) for words in (read, so_far)
    )
    words = ((read, read), (written, so_far), (written, read))  # queries and keys
    return [
        AttentionMap.from_network(model.module_, ids, layer, tokens=tokens, keys=keys)
        for layer, (tokens, keys) in enumerate(words)
    ]


def on_next(shown: AttentionMap) -> np.ndarray:
    """Return each head's mean weight on the letter that is written next, (heads,)."""
    places = [shown.keys.index(letter) for letter in shown.queries[:-1]]
    found: np.ndarray = shown.weights[:, range(len(places)), places].mean(axis=1)
    return found


def run(*, quick: bool = False) -> Outcome:
    """Train on both tasks and draw every head for one row of each."""
    length, rows = (5, 600) if quick else (7, 1500)
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
            lr=1e-2,
            random_state=0,
        ).fit(*write(task, rows, length, seed=0))
        X, y = write(task, 100, length, seed=1)
        maps = [looks(model, *pair) for pair in zip(X, y, strict=True)]
        weight = np.mean([on_next(across) for _, _, across in maps], axis=0)
        numbers[f"{task}: right"] = float(np.mean(model.predict(X) == y))
        numbers[f"{task}: on the next letter"] = float(weight.max())
        _draw(axes[down * len(ATTENTIONS) * HEADS :], maps[0], task)
    said = (
        f"While it writes, the better head has {numbers['reversed: on the next letter']:.0%} of its "
        f"weight on the letter that comes next when reversing and "
        f"{numbers['sorted: on the next letter']:.0%} when sorting; alike would be "
        f"{numbers['of all weights alike']:.0%}."
    )
    return Outcome(figure, numbers, said)


def _draw(axes: list[Axes], maps: list[AttentionMap], task: str) -> None:
    """Draw the heads of each attention side by side."""
    for i, (shown, name) in enumerate(zip(maps, ATTENTIONS, strict=True)):
        for head in range(HEADS):
            ax = axes[i * HEADS + head]
            ax.grid(False)
            shown.plot(ax, head=head)
            ax.set_title(f"{name}, head {head}", color=INK, size=9)
    axes[0].set_ylabel(task)
