"""ROUGE: how much of reference summaries stands in summaries.

ROUGE-n   n-grams in common c, counted at most as often as in each: P = c / n-grams of the summary,
          R = c / n-grams of the reference
ROUGE-L   the same of words, with c the longest common subsequence
F = 2 P R / (P + R), 0 where nothing is in common.

Words are runs of letters and digits in small letters, without stemming. Of several references the
one of the largest F counts; the scores are means over texts.
Reference: 2004, Lin, ROUGE: a package for automatic evaluation of summaries.
Departs from it: the F of precision and recall is reported beside them, as is usual today.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from castalia.evaluate.text_pairs import text_pairs

__all__ = ["Overlap", "Rouge", "rouge"]

_WORD = re.compile(r"[^\W_]+")


class Overlap(NamedTuple):
    """What summaries and references have in common: shares of both, and the mean of the shares."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class Rouge:
    """The three usual scores, each with precision, recall and F1, from 0 to 1.

    Attributes
    ----------
    rouge1, rouge2
        Of words and of pairs of words.
    rougeL
        Of the longest common subsequence of words.
    """

    rouge1: Overlap
    rouge2: Overlap
    rougeL: Overlap


def rouge(y_true: Any, y_pred: Any) -> Rouge:
    """Score summaries against references.

    Parameters
    ----------
    y_true
        N reference summaries, or N lists of alternatives.
    y_pred
        N summaries.

    Examples
    --------
    >>> found = rouge(["the cat sat on the mat"], ["the cat on the mat"])
    >>> found.rouge1.precision, round(found.rouge2.f1, 3), round(found.rougeL.f1, 3)
    (1.0, 0.667, 0.909)
    """
    pairs = [
        ([words(w) for w in wanted], words(s)) for wanted, s in text_pairs(y_true, y_pred, "rouge")
    ]
    kinds: list[Callable[[list[str], list[str]], Overlap]] = [_grams(1), _grams(2), _subsequence]
    means = [[_best(measure, *pair) for pair in pairs] for measure in kinds]
    return Rouge(*(Overlap(*np.mean(found, axis=0).tolist()) for found in means))


def words(text: str) -> list[str]:
    """Return the words that are compared.

    >>> words("It's 3.5 degrees!")
    ['it', 's', '3', '5', 'degrees']
    """
    return _WORD.findall(text.lower())


def _best(
    measure: Callable[[list[str], list[str]], Overlap], wanted: Sequence[list[str]], said: list[str]
) -> Overlap:
    return max((measure(each, said) for each in wanted), key=lambda overlap: overlap.f1)


def _overlap(common: int, said: int, true: int) -> Overlap:
    if not common:
        return Overlap(0.0, 0.0, 0.0)
    return Overlap(common / said, common / true, 2 * common / (said + true))


def _grams(n: int) -> Callable[[list[str], list[str]], Overlap]:
    def measure(true: list[str], said: list[str]) -> Overlap:
        one, other = (Counter(zip(*(w[i:] for i in range(n)), strict=False)) for w in (true, said))
        return _overlap((one & other).total(), other.total(), one.total())

    return measure


def _subsequence(true: list[str], said: list[str]) -> Overlap:
    return _overlap(common_length(true, said), len(said), len(true))


def common_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest sequence of words that stands in both in this order.

    >>> common_length("police killed the gunman".split(), "the gunman police killed".split())
    2
    """
    row = [0] * (len(other) + 1)  # row[j]: with the words of `one` so far and j of `other`
    for word in one:
        before = 0
        for j, rival in enumerate(other, 1):
            kept = row[j]
            row[j] = before + 1 if word == rival else max(row[j], row[j - 1])
            before = kept
    return row[-1]
