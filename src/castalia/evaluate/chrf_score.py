"""chrF: how many character n-grams translations share with references.

Over the whole corpus, P_n = common n-grams / n-grams of the translations and R_n = common / those
of the references, for n = 1 … 6 characters without white space; P and R are their means over the
orders that occur, chrF = 100 (1 + b^2) P R / (b^2 P + R) with b = 2, so that recall counts more.
chrF++ adds the words and pairs of words to the orders, with a punctuation mark at either end of a
word apart from it. Of several references the one of the largest score counts.
References: 2015, Popović, chrF: character n-gram F-score; 2017, Popović, chrF++: words helping
character n-grams; 2018, Post, A call for clarity in reporting BLEU scores, arXiv 1804.08771.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from castalia.errors import InvalidParameter
from castalia.evaluate.text_pairs import text_pairs

__all__ = ["chrf"]

_PUNCTUATION = frozenset(string.punctuation)


def chrf(
    y_true: Any,
    y_pred: Any,
    *,
    order: int = 6,
    word_order: int = 0,
    beta: float = 2.0,
    lowercase: bool = False,
) -> float:
    """Score translations against references, from 0 to 100, as sacreBLEU does.

    Parameters
    ----------
    y_true
        N references, or N lists of alternatives.
    y_pred
        N translations.
    order
        Longest character n-grams.
    word_order
        Longest word n-grams; 0: none, 2: chrF++.
    beta
        How much more recall counts than precision.
    lowercase
        Whether capitals do not matter.

    Examples
    --------
    >>> round(chrf(["the cat sat"], ["the cat ate"]), 2)
    56.01
    """
    for name, value, least in (("order", order, 1), ("word_order", word_order, 0)):
        if not isinstance(value, int) or value < least:
            raise InvalidParameter(
                f"chrf: `{name}` must be a whole number of at least {least}; got {value!r}."
            )
    if not beta > 0:
        raise InvalidParameter(f"chrf: `beta` must be above 0; got {beta!r}.")
    total = np.zeros((order + word_order, 3))
    for wanted, said in text_pairs(y_true, y_pred, "chrf"):
        texts = [text.lower() if lowercase else text for text in (said, *wanted)]
        ours, *theirs = (_grams(text, order, word_order) for text in texts)
        counts = [_counts(ours, other) for other in theirs]
        total += max(counts, key=lambda found: _score(found, beta))
    return _score(total, beta)


def _grams(text: str, order: int, word_order: int) -> list[Counter[Any]]:
    """Count the n-grams of a text: characters, then words."""
    letters, parts = "".join(text.split()), _words(text)
    chars = [Counter(letters[i : i + n] for i in range(len(letters) - n + 1)) for n in _upto(order)]
    pairs = (zip(*(parts[i:] for i in range(n)), strict=False) for n in _upto(word_order))
    return [*chars, *(Counter(some) for some in pairs)]


def _upto(n: int) -> Iterable[int]:
    return range(1, n + 1)


def _words(text: str) -> list[str]:
    """Cut a text into words; one punctuation mark at the end, or else the beginning, is a word."""
    found: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            found += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            found += [word[0], word[1:]]
        else:
            found.append(word)
    return found


def _counts(ours: Sequence[Counter[Any]], theirs: Sequence[Counter[Any]]) -> np.ndarray:
    """Return n-grams of the translation, of the reference and in common, (orders, 3).

    Those of the translation count only where the reference has any of this order.
    """
    return np.array(
        [
            (one.total() if other else 0, other.total(), (one & other).total())
            for one, other in zip(ours, theirs, strict=True)
        ],
        dtype=float,
    )


def _score(counts: np.ndarray, beta: float) -> float:
    said, true, common = counts[(counts[:, :2] > 0).all(axis=1)].T
    if not common.any():
        return 0.0
    precision, recall = (common / said).mean(), (common / true).mean()
    square = beta**2
    return float(100 * (1 + square) * precision * recall / (square * precision + recall))
