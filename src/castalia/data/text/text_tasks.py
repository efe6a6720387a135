"""The benchmarks of language understanding as records: columns, labels, layouts, metrics, words.

A record turns the rows of a file into what estimators take, X and y, and into what a text-to-text
model reads and writes. Which is which:

| task | X | y | metrics |
|---|---|---|---|
| cola, sst2 | texts | a word | Matthews correlation; accuracy |
| mnli, qnli, rte | pairs | a word | accuracy |
| qqp, mrpc | pairs, in any order | a word | F1 and accuracy |
| stsb | pairs, in any order | a number from 0 to 5 | Pearson and Spearman correlation |
| swag | contexts with four endings | the number of the right one | accuracy |
| squad, squad2 | pairs (question, text) | (beginning, end) or None | F1 and exact match |

References: 2018, Wang et al., GLUE, arXiv 1804.07461; 2016 and 2018, Rajpurkar et al., SQuAD, arXiv
1606.05250 and 1806.03822; 2018, Zellers et al., SWAG, arXiv 1808.05326; 2020, Raffel et al.,
Exploring the limits of transfer learning, arXiv 1910.10683, appendix D (the words of T5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from castalia.data.text.task_rows import find_column, rows_of, spans_of, task_rows
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["TASKS", "TextTask", "text_task", "translation_prompt"]


@dataclass(frozen=True)
class TextTask:
    """One benchmark.

    Attributes
    ----------
    name
        What it is called, as in ``TASKS``; also T5's prefix.
    layout
        ``"text"``, ``"pair"``, ``"similarity"`` (a pair in any order), ``"choice"`` or ``"span"``:
        the first four are those of ``GPTClassifier``.
    columns
        The texts, each by the names that files give it.
    label
        Names of the column of labels.
    metrics
        What is reported, first what decides; see ``castalia.evaluate.task_scores``.
    labels
        Words of the classes in the order of their numbers; empty where y is a number or a stretch.
    words
        Names of the texts in T5's source, in its order.
    headless
        Columns of files that do not name them.

    Examples
    --------
    >>> rte = TASKS["rte"]
    >>> X, y = rte.examples([{"sentence1": "It rains.", "sentence2": "It is wet.", "label": 0}])
    >>> X.tolist(), y.tolist()
    ([['It rains.', 'It is wet.']], ['entailment'])
    >>> rte.sources(X)[0]
    'rte sentence1: It rains. sentence2: It is wet.'
    """

    name: str
    layout: str
    columns: tuple[tuple[str, ...], ...]
    metrics: tuple[str, ...]
    labels: tuple[str, ...] = ()
    label: tuple[str, ...] = ("label", "gold_label")
    words: tuple[str, ...] = ()
    headless: tuple[str, ...] = ()

    # -- rows and files ------------------------------------------------------------------------

    def read(self, path: str | Path) -> tuple[np.ndarray, np.ndarray | None]:
        """Return X and y of a file; y is None where the file has no labels.

        Parameters
        ----------
        path
            The benchmark's own file: ``.tsv`` (GLUE), ``.csv`` (SWAG), ``.json`` (SQuAD); or
            ``.jsonl`` and ``.parquet`` with one example a row.
        """
        return self._split(task_rows(path, self.headless, self.columns[0]), f"{path}")

    def examples(self, rows: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return X and y of examples.

        Parameters
        ----------
        rows
            Mappings from column to value, or a table (pandas, polars, pyarrow, Hugging Face).
        """
        return self._split(rows_of(rows, self.name), self.name)

    def references(self, rows: Any) -> list[tuple[str, ...]]:
        """Return all answers that count as right for each question; none: there is no answer.

        Parameters
        ----------
        rows
            Examples as for ``examples``, or the path of a file.
        """
        if self.layout != "span":
            raise InvalidParameter(
                f"{self.name}: only questions with answers in a text have references; the right "
                "answers of this task are its y."
            )
        is_path = isinstance(rows, str | Path)
        found = task_rows(rows, (), self.columns[0]) if is_path else rows_of(rows, self.name)
        return [tuple(text for text, _ in spans_of(row)) for row in found]

    def _split(
        self, rows: Sequence[Mapping[str, Any]], owner: str
    ) -> tuple[np.ndarray, np.ndarray | None]:
        if not rows:
            raise InvalidData(f"{owner}: there must be at least one example; got none.")
        names = [find_column(rows[0], aliases, owner) for aliases in self.columns]
        texts = [
            [self._text(row, name, place, owner) for name in names]
            for place, row in enumerate(rows)
        ]
        return self._arranged(texts), self._targets(rows, owner)

    def _text(self, row: Mapping[str, Any], name: str, place: int, owner: str) -> str:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            raise InvalidData(
                f"{owner}: `{name}` must be a text; got {shorten(repr(value), 40)} in example "
                f"{place}."
            )
        return value

    def _arranged(self, texts: list[list[str]]) -> np.ndarray:
        """Return texts, (n,), pairs, (n, 2), or contexts with each ending, (n, K, 2)."""
        found = np.array(texts, dtype=object)
        if self.layout == "text":
            return found[:, 0]
        if self.layout != "choice":
            return found
        context, beginning, *endings = found.T
        whole = [[f"{b} {e}" for b, e in zip(beginning, end, strict=True)] for end in endings]
        pairs = [np.stack([context, np.array(end, dtype=object)], axis=1) for end in whole]
        return np.stack(pairs, axis=1)

    def _targets(self, rows: Sequence[Mapping[str, Any]], owner: str) -> np.ndarray | None:
        if self.layout == "span":
            if not any(name in rows[0] for name in ("answers", "is_impossible")):
                return None
            return _objects([_first_span(row, k, owner) for k, row in enumerate(rows)])
        name = next((n for n in self.label if n in rows[0]), None)
        values = [] if name is None else [row.get(name) for row in rows]
        if all(value in (None, "", -1, "-1") for value in values):
            return None  # the labels of a test set are kept back
        found = [self._target(value, place, owner) for place, value in enumerate(values)]
        return np.array(found)

    def _target(self, value: Any, place: int, owner: str) -> Any:
        if value in self.labels:
            return value
        try:
            number = float(value)
            if not self.labels:
                return int(number) if self.layout == "choice" else number
            if number == int(number) >= 0:
                return self.labels[int(number)]
        except (TypeError, ValueError, IndexError):
            pass
        rule = listing(self.labels) if self.labels else "a number"
        raise InvalidData(f"{owner}: the label must be {rule}; got {value!r} in example {place}.")

    # -- text to text --------------------------------------------------------------------------

    def sources(self, X: Any, order: Sequence[int] | None = None) -> list[str]:
        """Return what T5 reads: the task's name, and each text behind its own.

        Parameters
        ----------
        X
            Texts or pairs.
        order
            In which order the texts stand; None: as the published weights learnt them. MNLI's
            hypothesis then comes first; the paper's text shows ``order=(0, 1)``.
        """
        if not self.words:
            raise InvalidParameter(
                f"{self.name}: T5 has no words for this task; choose another of "
                f"{listing([t.name for t in TASKS.values() if t.words], 'and')}."
            )
        rows = [[x] if isinstance(x, str) else list(x) for x in X]
        names = [aliases[0] for aliases in self.columns]
        chosen = [names.index(word) for word in self.words] if order is None else list(order)
        before = "" if self.layout == "span" else f"{self.name} "
        return [before + " ".join(f"{names[k]}: {row[k]}" for k in chosen) for row in rows]

    def answers(self, y: Any) -> list[str]:
        """Return what T5 writes: the label's word, or a number in steps of 0.2."""
        if self.labels or self.layout == "span":
            return [str(value) for value in y]
        return [f"{np.round(float(value) * 5) / 5:.1f}" for value in y]

    def parse(self, answers: Sequence[str]) -> np.ndarray:
        """Return the labels or numbers that answers say; what is no number counts as -1."""
        if self.labels or self.layout == "span":
            return np.array([answer.strip() for answer in answers])
        return np.array([_number(answer) for answer in answers])


def _number(answer: str) -> float:
    try:
        return float(answer)
    except ValueError:
        return -1.0


def _objects(values: list[Any]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _first_span(row: Mapping[str, Any], place: int, owner: str) -> tuple[int, int] | None:
    """Return where the first answer stands in its text, or None."""
    for text, begin in spans_of(row)[:1]:
        said = row["context"][begin : begin + len(text)]
        if said != text:
            raise InvalidData(
                f"{owner}: an answer must stand where it is said to; got {text!r} at {begin}, "
                f"where the text of example {place} has {said!r}."
            )
        return begin, begin + len(text)
    return None


_SENTENCES = (("sentence1", "source1", "#1 String"), ("sentence2", "source2", "#2 String"))
_ENTAILED = ("entailment", "not_entailment")
_QUESTION = (("question",), ("context",))

TASKS: dict[str, TextTask] = {
    task.name: task
    for task in (
        TextTask(
            "cola",
            "text",
            (("sentence",),),
            ("matthews",),
            ("unacceptable", "acceptable"),
            words=("sentence",),
            headless=("source", "label", "mark", "sentence"),
        ),
        TextTask(
            "sst2",
            "text",
            (("sentence",),),
            ("accuracy",),
            ("negative", "positive"),
            words=("sentence",),
        ),
        TextTask(
            "mrpc",
            "similarity",
            _SENTENCES,
            ("f1", "accuracy"),
            ("not_equivalent", "equivalent"),
            label=("label", "Quality"),
            words=("sentence1", "sentence2"),
        ),
        TextTask(
            "qqp",
            "similarity",
            (("question1",), ("question2",)),
            ("f1", "accuracy"),
            ("not_duplicate", "duplicate"),
            label=("label", "is_duplicate"),
            words=("question1", "question2"),
        ),
        TextTask(
            "stsb",
            "similarity",
            (("sentence1",), ("sentence2",)),
            ("pearson", "spearman"),
            label=("label", "score"),
            words=("sentence1", "sentence2"),
        ),
        TextTask(
            "mnli",
            "pair",
            (("premise", "sentence1"), ("hypothesis", "sentence2")),
            ("accuracy",),
            ("entailment", "neutral", "contradiction"),
            words=("hypothesis", "premise"),
        ),
        TextTask(
            "qnli",
            "pair",
            (("question",), ("sentence",)),
            ("accuracy",),
            _ENTAILED,
            words=("question", "sentence"),
        ),
        TextTask(
            "rte",
            "pair",
            (("sentence1", "premise"), ("sentence2", "hypothesis")),
            ("accuracy",),
            _ENTAILED,
            words=("sentence1", "sentence2"),
        ),
        TextTask(
            "swag",
            "choice",
            (("sent1",), ("sent2",), *((f"ending{k}",) for k in range(4))),
            ("accuracy",),
        ),
        TextTask(
            "squad",
            "span",
            _QUESTION,
            ("f1_of_answers", "exact_match"),
            words=("question", "context"),
        ),
        TextTask(
            "squad2",
            "span",
            _QUESTION,
            ("f1_of_answers", "exact_match"),
            words=("question", "context"),
        ),
    )
}


def text_task(name: str) -> TextTask:
    """Return a task by its name, in any spelling: ``"SST-2"`` is ``"sst2"``.

    >>> text_task("STS-B").metrics
    ('pearson', 'spearman')
    """
    plain = "".join(letter for letter in str(name).lower() if letter.isalnum())
    plain = {"squad11": "squad", "squad20": "squad2"}.get(plain, plain)
    if plain not in TASKS:
        raise InvalidParameter(
            f"text_task: `name` must be {listing(TASKS)}; got {name!r}.{did_you_mean(plain, TASKS)}"
        )
    return TASKS[plain]


def translation_prompt(text: str, source: str = "English", target: str = "German") -> str:
    """Return what T5 reads in order to translate.

    >>> translation_prompt("That is good.")
    'translate English to German: That is good.'
    """
    return f"translate {source} to {target}: {text}"
