"""Texts with a class each: a column of a table is read, another one predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from castalia.data import Dataset
from castalia.data.text import DocumentAdapter, NGramAdapter, PairAdapter, TextAdapter
from castalia.data.text.text_inputs import as_texts
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_table import load_table, only_labelled
from castalia.method.kinds.kind import Asked, Kind, NewRows, probability_columns
from castalia.method.table_baselines import answer, table_baseline
from castalia.method.task import find_task
from castalia.method.texts.fit_texts import TEXTS, read_lines
from castalia.method.texts.text_baselines import PlainTexts, word_model
from castalia.method.texts.text_column import (
    choose_column,
    column_texts,
    may_hold_texts,
    others,
    without_copies,
)
from castalia.method.texts.text_model import build_classifier, choose_classifier
from castalia.method.texts.text_panels import word_weights
from castalia.method.train_test_split import LEAST_ROWS, REPEATS, Part, make_parts, row_keys
from castalia.method.verdict import Verdict
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["LabelledTexts"]

FEW = 2_000  # texts
MANY = 500  # texts from which one training takes long enough
NO_TEXT = "none"  # what one says to leave texts aside


class LabelledTexts(Kind):
    """A table with a column of texts, each of one class."""

    catalog = "text"
    other = "attention"
    tries: ClassVar = {"depth": (2, 4), "dim": (128, 256), "lr": (0.001, 0.0003)}
    apart = frozenset({"columns"})

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        data, notes = load_table(
            plan.data,
            target=plan.target,
            header=plan.header,
            encoding=plan.encoding,
            skip_broken=plan.skip_broken,
        )
        if plan.target is None:
            raise InvalidParameter(
                "fit: `target` must name the column with the labels, as in --target "
                f"{data.columns[-1]}; got none. There are {listing(data.columns, 'and', 8)}."
            )
        self.target = plan.target
        data, left_out = only_labelled(data, plan.drop_missing)
        self.column = choose_column(data, plan.text, plan.target)
        rows, empty = column_texts(data, self.column, "fit")
        data = data.take(rows)
        rows, copies = without_copies(data.column(self.column), data.labels())
        self.data = data.take(rows)
        if len(self.data) < LEAST_ROWS:
            raise InvalidData(
                f"fit: {data.source} must have {LEAST_ROWS} different texts at least to train and "
                f"test; got {len(self.data)}."
            )
        self.task = replace(find_task(self.data, plan.task), unit="text")
        if self.task.kind == "regression":
            raise InvalidParameter(
                f"fit: texts are classified; target `{self.target}` is taken as "
                f"numbers, for {self.task.why}. Use --task classification, or --text none to fit "
                "the other columns."
            )
        self.keys = row_keys(self.data, plan)
        repeats = REPEATS if len(self.data) < MANY else 1
        self.parts, more = make_parts(self.data, self.task, plan, self.keys, repeats)
        self.X = np.array(as_texts(self.data.column(self.column), "fit"), dtype=object)
        self.lengths = np.array([len(text.split()) for text in self.X])
        split_by = [name for name in (plan.group, plan.time) if name is not None]
        self.others = others(self.data.schema, [self.target, self.column, *split_by])
        self.notes = [*left_out, *notes, self._taken(), *empty, *copies, *more, *self._read()]
        self._words: dict[bytes, Any] = {}

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names a table with a column of texts."""
        if plan.text is not None:
            return plan.text != NO_TEXT
        return may_hold_texts(plan.data, plan.target, plan.header)

    def _taken(self) -> str:
        """Say which column is read, and what becomes of the others."""
        words = f"Column `{self.column}` is read as text, {self.lengths.mean():.0f} words each"
        if not self.others:
            return f"{words}."
        return (
            f"{words}, and the network learns from it alone; {listing(self.others, 'and', 6)} only "
            f"{'serves' if len(self.others) == 1 else 'serve'} one baseline (--text none fits the "
            "table without its texts)."
        )

    def _read(self) -> list[str]:
        """Say how the network reads, and how many texts are longer than that."""
        model, found = self.build(len(self)), []
        if self.system.name == "FastTextClassifier" and self.plan.model is None:
            found.append(
                "The network weighs words, pairs and pieces of words and not their order, which "
                "pays on more texts or a GPU (--model transformer reads it)."
            )
        context = getattr(model, "context", None)
        cut = 0 if context is None else int((self.lengths > context).sum())
        if cut:
            found.append(
                f"{plural(cut, 'text')} of more than {context} words "
                f"{'is' if cut == 1 else 'are'} cut there (--set context=N for another length)."
            )
        return found

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        return self.data.fingerprint()

    def facts(self) -> dict[str, Any]:
        """Count texts and words."""
        words = int(self.lengths.sum())
        return {"source": self.data.source, "what": f"{plural(len(self), 'text')}, {words:,} words"}

    @property
    def baselines(self) -> dict[str, str]:
        """Guessing, weighed words and, where there are any, the other columns."""
        found = {"guess": "Guessing", "words": "Logistic regression"}
        return found | ({"columns": "Gradient boosting"} if self.others else {})

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline on words, or on the other columns."""
        train, y = self.rows(part.train)
        if key == "columns":
            table = self.data.select(self.others)
            rounds, seed = self.plan.boosting_rounds, self.plan.seed + part.seed
            model = table_baseline("boosting", table, self.task.kind, rounds, seed)
            test = table.take(part.test)
            return model, answer(model, table.take(part.train), y, test, self.task)
        model = word_model(key, len(train))
        found = answer(model, train, y, self.X[part.test], self.task)
        if key == "words":
            self._words[part.train.tobytes()] = model.estimator
        return model, found

    def baseline_note(self, key: str) -> str:
        """Say what a baseline sees."""
        notes = {
            "words": "on words and pairs of words, weighted by tf-idf",
            "columns": f"on the other columns: {', '.join(self.others[:6])}",
        }
        return notes.get(key) or super().baseline_note(key)

    def usual_model(self) -> str:
        """Return weighted n-grams, or a transformer encoder where there is much text."""
        return choose_classifier(len(self), self.plan.device, self.plan.settings)

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted classifier, sized for so many texts."""
        words = int(np.percentile(self.lengths, 98))
        return build_classifier(self.plan, self.system, rows, words, seed)

    @property
    def title(self) -> str:
        """Target and table."""
        return f"{self.target} from texts of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what few texts suggest."""
        if len(self) >= FEW or verdict.outcome == "better":
            return []
        return [
            f"There are only {plural(len(self), 'text')}: networks trained from scratch rarely win "
            "on so few; more texts, or a start from a pretrained BERT in Python, change more than "
            "settings."
        ]

    def described(self) -> dict[str, Any]:
        """Return lengths."""
        low, middle, high = np.percentile(self.lengths, [5, 50, 95])
        return {
            "facts": {
                "Column of texts": self.column,
                "Words of a text": f"{middle:.0f}; nine of ten have {low:.0f} to {high:.0f}",
                "Other columns": ", ".join(self.others[:12]) or "none",
            }
        }

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the texts."""
        return [{"row": {self.column: self.X[row]}} for row in rows]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show the words that speak most for each class."""
        train = self.parts[0].train
        fitted = self._words.get(train.tobytes())
        if fitted is None:  # the baseline was fitted before an interruption
            fitted = word_model("words", len(train)).fit(*self.rows(train)).estimator
        return {"panels": [word_weights(fitted, self.task.classes)]}

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model says what a text is."""
        model = model.first if isinstance(model, Blend) else model
        if isinstance(model, ClassicModel):
            return isinstance(model.features, PlainTexts)
        adapters = (TextAdapter, DocumentAdapter, NGramAdapter, PairAdapter)
        return is_classifier(model) and isinstance(getattr(model, "adapter_", None), adapters)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read a table with a column of texts, or the lines of a text file."""
        if len(data) != 1:
            raise InvalidParameter(
                f"predict: a model of texts takes one table or text file; got {len(data)}."
            )
        if _is_lines(data[0]):
            lines = [line for line in read_lines(data[0], "predict") if line.strip()]
            return NewRows(np.array(lines, dtype=object), {}, unit="text")
        table, notes = load_table(data[0], header=asked.header, encoding=asked.encoding)
        column = _column(table, asked, "predict")
        rows, empty = column_texts(table, column, "predict")
        if empty:
            raise InvalidData(
                f"predict: column `{column}` of {table.source} must hold a text in every row; "
                f"row {int(np.setdiff1d(np.arange(len(table)), rows)[0])} has none. Leave it out."
            )
        return NewRows(table.column(column), asked.kept(table), notes, unit="text")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read a table with texts and their classes."""
        target = asked.known_target()
        table, notes = load_table(data, target=target, header=asked.header, encoding=asked.encoding)
        column = _column(table, asked, "evaluate")
        rows, empty = column_texts(table, column, "evaluate")
        table = table.take(rows)
        X, y = table.column(column), table.labels()
        return NewRows(X, {}, [*notes, *empty], [], target, y, "text")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return ``prediction``, and ``probability_<class>`` for every class."""
        probability = model.predict_proba(X)
        prediction = model.classes_[probability.argmax(axis=1)]
        return {"prediction": prediction, **probability_columns(model, probability)}


def _is_lines(data: Any) -> bool:
    """Whether something is a text file with one text a line."""
    name = Path(data).name.lower().removesuffix(".gz") if isinstance(data, str | Path) else ""
    return name.endswith(TEXTS)


def _column(table: Dataset, asked: Asked, owner: str) -> str:
    """Return the column of texts by its name in the training, or the only one of texts."""
    if asked.text in table.columns:
        return str(asked.text)
    if len(table.columns) == 1:
        return table.columns[0]
    if asked.text is not None:
        raise InvalidData(
            f"{owner}: {table.source} must have the column `{asked.text}` with the texts; it has "
            f"{listing(table.columns, 'and', 8)}. Name another with --text."
            f"{did_you_mean(asked.text, table.columns)}"
        )
    return choose_column(table, None, asked.target or "", owner)
