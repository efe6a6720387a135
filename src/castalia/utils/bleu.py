"""BLEU: how many n-grams of translations stand in the reference translations.

BLEU = 100 B exp(mean over n = 1 … 4 of log p_n), with p_n the share of n-grams found, each counted
at most as often as in one reference, over the whole corpus, and B = exp(1 - r / c) where the
translations' length c is below the references' r. Words are cut, and precisions of zero smoothed,
as sacreBLEU does by default (13a, exp).
References: 2002, Papineni, Roukos, Ward, Zhu, BLEU; 2018, Post, A call for clarity in reporting
BLEU scores, arXiv 1804.08771.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.renamed_arguments import renamed

__all__ = ["Bleu", "bleu", "bleu_of_counts", "count_matches", "tokenize_13a"]

_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">"}
_SIGNS = re.compile(r"([!-&(-+/:-@\[-`{-~ ])")  # punctuation but the apostrophe, comma, dash, stop
_AFTER_NO_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NO_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])(-)")


@dataclass(frozen=True)
class Bleu:
    """A BLEU score and what it is made of.

    Attributes
    ----------
    score
        From 0 to 100.
    precisions
        In percent, for n = 1 … 4, smoothed.
    brevity
        Penalty for translations that are too short, at most 1.
    length, reference_length
        Words of the translations and of the references nearest in length.
    """

    score: float
    precisions: tuple[float, ...]
    brevity: float
    length: int
    reference_length: int

    def __float__(self) -> float:
        return self.score


def tokenize_13a(text: str) -> list[str]:
    """Cut a text into words as NIST's mteval-v13a does, Western languages only.

    Examples
    --------
    >>> tokenize_13a("It costs $1,000.50, he said.")
    ['It', 'costs', '$', '1,000.50', ',', 'he', 'said', '.']
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    for entity, sign in _ENTITIES.items():
        text = text.replace(entity, sign)
    text = _SIGNS.sub(r" \1 ", f" {text} ")
    text = _AFTER_NO_DIGIT.sub(r"\1 \2 ", text)
    text = _BEFORE_NO_DIGIT.sub(r" \1 \2", text)
    return _DASH.sub(r"\1 \2 ", text).split()


@renamed(translations="y_pred", references="y_true")
def bleu(
    y_true: Sequence[str] | Sequence[Sequence[str]],
    y_pred: Sequence[str],
    *,
    order: int = 4,
    smoothing: str = "exp",
    lowercase: bool = False,
) -> Bleu:
    """Score translations against references; sacreBLEU's corpus BLEU with its defaults.

    Parameters
    ----------
    y_true
        N references, or N lists of alternatives.
    y_pred
        N translations.
    order
        Longest n-grams.
    smoothing
        ``"exp"``: the first precision of zero becomes 1/2 of one match, the next 1/4, and so on;
        ``"none"``: the score is then 0.
    lowercase
        Whether capitals do not matter.

    Examples
    --------
    >>> round(bleu(["the cat sat on a mat"], ["the cat sat on the mat"]).score, 2)
    53.73
    """
    if smoothing not in ("exp", "none"):
        raise InvalidParameter(f"bleu: `smoothing` must be `exp` or `none`; got {smoothing!r}.")
    if not isinstance(order, int) or order < 1:
        raise InvalidParameter(
            f"bleu: `order` must be a whole number of at least 1; got {order!r}."
        )
    y_true, y_pred = _in_order(y_true, y_pred)
    _check(y_pred, y_true)
    totals = [0] * (2 * order + 2)
    for text, alternatives in zip(y_pred, y_true, strict=True):
        counts = count_matches(text, alternatives, order=order, lowercase=lowercase)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
    return bleu_of_counts(totals, smoothing)


def count_matches(
    text: str, references: str | Sequence[str], *, order: int = 4, lowercase: bool = False
) -> list[int]:
    """Count what BLEU is made of in one translation; the counts of several texts add up.

    Returns
    -------
    list of int
        n-grams found for n = 1 … order, n-grams there are, words, and words of the reference
        nearest in length.

    Examples
    --------
    >>> count_matches("the cat sat", "the cat ate", order=2)
    [2, 1, 3, 2, 3, 3]
    """
    chosen = [references] if isinstance(references, str) else references
    ours, theirs = _words(text, lowercase), [_words(other, lowercase) for other in chosen]
    found, whole = [], []
    for n in range(1, order + 1):
        counts, most = _ngrams(ours, n), Counter[tuple[str, ...]]()
        for other in theirs:
            most |= _ngrams(other, n)
        found.append((counts & most).total())
        whole.append(counts.total())
    wanted = min((abs(len(other) - len(ours)), len(other)) for other in theirs)[1]
    return [*found, *whole, len(ours), wanted]


def bleu_of_counts(counts: Sequence[int], smoothing: str = "exp") -> Bleu:
    """Return BLEU from the sums of `count_matches` over all texts."""
    order = len(counts) // 2 - 1
    found, whole = counts[:order], counts[order : 2 * order]
    return _score(found, whole, counts[-2], counts[-1], smoothing)


def _score(
    found: Sequence[int], whole: Sequence[int], length: int, wanted: int, smoothing: str
) -> Bleu:
    brevity = 1.0 if length >= wanted else exp(1 - wanted / length) if length else 0.0
    precisions, halves = [], 1.0
    for hits, total in zip(found, whole, strict=True):
        if not hits and total and smoothing == "exp" and any(found):
            halves *= 2
            precisions.append(100 / (halves * total))
        else:
            precisions.append(100 * hits / total if total else 0.0)
    score = 0.0
    if all(precisions):
        score = brevity * exp(sum(map(log, precisions)) / len(precisions))
    return Bleu(score, tuple(precisions), brevity, length, wanted)


def _words(text: str, lowercase: bool) -> list[str]:
    return tokenize_13a(text.lower() if lowercase else text)


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[i:] for i in range(n)), strict=False))


def _in_order(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Take arguments in the order of earlier versions, where alternatives show which is which."""
    if not isinstance(y_pred, str) and any(isinstance(text, list | tuple) for text in y_pred):
        warnings.warn(
            "bleu: `y_true`, the references, now comes before `y_pred`, the translations; the old "
            "order is understood for one version, where there are alternatives.",
            FutureWarning,
            stacklevel=4,
        )
        return y_pred, y_true
    return y_true, y_pred


def _check(translations: Sequence[str], references: Sequence[object]) -> None:
    if isinstance(translations, str) or isinstance(references, str):
        raise InvalidData("bleu: translations and references must be lists of texts; got a text.")
    if len(translations) != len(references):
        raise InvalidData(
            f"bleu: there must be as many references as translations; got {len(references)} and "
            f"{len(translations)}."
        )
    if not len(translations):
        raise InvalidData("bleu: there must be at least one translation; got none.")
    for place, other in enumerate(references):
        if not isinstance(other, str) and not (isinstance(other, Sequence) and len(other)):
            raise InvalidData(
                f"bleu: a reference must be a text or a list of texts; got {other!r} at {place}."
            )
