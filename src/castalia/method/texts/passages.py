"""A running text cut into passages, which are tested one by one and trained on in one piece."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

__all__ = ["SHORTEST", "Passages", "cut_passages"]

SHORTEST, LONGEST = 80, 1_000  # characters of a passage
WANTED = 200  # passages a text is cut into, where that makes them neither short nor long
_ENDS = re.compile(r"\n+|(?<=[.!?…])\s+|\s+")  # the best places to cut first


@dataclass(frozen=True)
class Passages:
    """Some passages of a text.

    Attributes
    ----------
    pieces
        The passages; put together, all of them are the text.
    places
        Which passage of the text each is, ascending, (n,).

    Examples
    --------
    >>> text = Passages(["a b ", "c d ", "e f "], np.arange(3))
    >>> text.take(np.array([0, 2])).runs()
    [['a b '], ['e f ']]
    """

    pieces: list[str]
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.pieces)

    def take(self, index: np.ndarray) -> Passages:
        """Return the passages at these positions."""
        return Passages([self.pieces[i] for i in index], self.places[index])

    def runs(self) -> list[list[str]]:
        """Return passages that follow each other in the text together."""
        cuts = np.flatnonzero(np.diff(self.places) != 1) + 1
        bounds = [0, *cuts.tolist(), len(self.pieces)]
        return [self.pieces[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True) if b > a]

    def texts(self) -> list[str]:
        """Return each run as one text."""
        return ["".join(run) for run in self.runs()]

    def sizes(self) -> np.ndarray:
        """Return how many characters each passage has, (n,)."""
        return np.array([len(piece) for piece in self.pieces])


def cut_passages(text: str) -> Passages:
    r"""Cut a text at ends of lines, of sentences or of words, whichever is near.

    Examples
    --------
    >>> cut_passages("One line.\n" * 30).pieces[0].count("line")
    8
    """
    size = int(np.clip(len(text) // WANTED, SHORTEST, LONGEST))
    pieces, start = [], 0
    while start < len(text):
        end = _end(text, start + size, start + size + size // 2)
        if len(text) - end < size // 2:
            end = len(text)
        pieces.append(text[start:end])
        start = end
    return Passages(pieces, np.arange(len(pieces)))


def _end(text: str, low: int, high: int) -> int:
    """Return where to cut between two places: behind a line, a sentence or a word."""
    found: dict[int, int] = {}
    for match in _ENDS.finditer(text, low - 1, min(high, len(text))):
        sign = text[match.start() - 1]
        kind = 0 if "\n" in match.group() else 1 if sign in ".!?…" else 2
        found.setdefault(kind, match.end())
    return found[min(found)] if found else min(low, len(text))
