"""Scores of answers to questions, and of the benchmarks' predictions by the benchmarks' measures.

An answer counts as its words in small letters, without punctuation and without a, an and the.
Reference: 2016, Rajpurkar, Zhang, Lopyrev, Liang, SQuAD, arXiv 1606.05250.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from castalia.data.text import TextTask, text_task
from castalia.errors import InvalidData, ShapeMismatch
from castalia.utils.renamed_arguments import renamed

__all__ = ["answer_f1", "exact_match", "normal_answer", "task_scores"]

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normal_answer(text: str) -> str:
    """Return an answer as it is compared.

    >>> normal_answer("The  Eiffel Tower!")
    'eiffel tower'
    """
    plain = text.lower().translate(_PUNCTUATION)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


@renamed(prediction="y_pred")
def exact_match(y_true: Any, y_pred: Any) -> float:
    """Return the share of answers that equal one of the right ones.

    Parameters
    ----------
    y_true
        For each question the right answer, or several; empty, or an empty text: there is none.
    y_pred
        One answer a question, an empty text for none.

    Examples
    --------
    >>> exact_match(["Paris", ("the cat", "a cat")], ["paris.", "Cat"])
    1.0
    """
    return _best(y_true, y_pred, lambda a, b: float(a == b), "exact_match")


@renamed(prediction="y_pred")
def answer_f1(y_true: Any, y_pred: Any) -> float:
    """Return the mean F1 over words of each answer and the right one nearest to it.

    F1 = 2 c / (n + m) for c words in common of n and m, each counted as often as it stands there;
    where one is no answer, 1 if both are, else 0.

    Examples
    --------
    >>> answer_f1(["the red cat"], ["red dog"])
    0.5
    """
    return _best(y_true, y_pred, _word_f1, "answer_f1")


def _word_f1(said: str, true: str) -> float:
    one, other = said.split(), true.split()
    if not one or not other:
        return float(one == other)
    return 2 * (Counter(one) & Counter(other)).total() / (len(one) + len(other))


def _best(y_true: Any, y_pred: Any, like: Callable[[str, str], float], owner: str) -> float:
    if len(y_true) != len(y_pred) or not len(y_true):
        raise ShapeMismatch(
            f"{owner}: `y_true` and `y_pred` must have one entry a question; got "
            f"{len(y_true):,} and {len(y_pred):,}."
        )
    pairs = zip(y_true, y_pred, strict=True)
    found = [
        max(like(normal_answer(str(said)), normal_answer(r)) for r in _references(true))
        for true, said in pairs
    ]
    return float(np.mean(found))


def _references(true: Any) -> Sequence[str]:
    if true is None or isinstance(true, str):
        return [true or ""]
    return [str(answer) for answer in true] or [""]


@renamed(prediction="y_pred")
def task_scores(task: TextTask | str, y_true: Any, y_pred: Any) -> dict[str, float]:
    """Score predictions as a benchmark does; the first score is the one that decides.

    Parameters
    ----------
    task
        A record of ``castalia.data.text.TASKS``, or its name.
    y_true
        Labels or numbers; for questions the answers that count as right
        (``TextTask.references``).
    y_pred
        One a row.

    Examples
    --------
    >>> scores = task_scores("mrpc", ["equivalent", "not_equivalent"], ["equivalent"] * 2)
    >>> round(scores["f1"], 3), scores["accuracy"]
    (0.667, 0.5)
    """
    task = text_task(task) if isinstance(task, str) else task
    if len(y_true) != len(y_pred) or not len(y_true):
        raise ShapeMismatch(
            f"task_scores: `y_true` and `y_pred` must have one entry per row; got "
            f"{len(y_true):,} and {len(y_pred):,}."
        )
    positive = task.labels[-1] if task.labels else None
    return {name: _MEASURES[name](y_true, y_pred, positive) for name in task.metrics}


def _accuracy(y: Any, said: Any, positive: Any) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(np.asarray(y), np.asarray(said)))


def _f1(y: Any, said: Any, positive: Any) -> float:
    from sklearn.metrics import f1_score

    truth, guess = (np.asarray(values) == positive for values in (y, said))
    return float(f1_score(truth, guess, zero_division=0))


def _matthews(y: Any, said: Any, positive: Any) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(np.asarray(y), np.asarray(said)))


def _correlation(kind: str) -> Callable[[Any, Any, Any], float]:
    def measure(y: Any, said: Any, positive: Any) -> float:
        from scipy import stats

        one, other = np.asarray(y, dtype=float), np.asarray(said, dtype=float)
        if len(one) < 2:
            raise InvalidData("task_scores: a correlation needs at least two rows; got one.")
        if np.ptp(one) == 0 or np.ptp(other) == 0:
            return 0.0  # a constant says nothing
        return float(getattr(stats, kind)(one, other).statistic)

    return measure


_MEASURES: dict[str, Callable[[Any, Any, Any], float]] = {
    "accuracy": _accuracy,
    "f1": _f1,
    "matthews": _matthews,
    "pearson": _correlation("pearsonr"),
    "spearman": _correlation("spearmanr"),
    "f1_of_answers": lambda y, said, positive: answer_f1(y, said),
    "exact_match": lambda y, said, positive: exact_match(y, said),
}
