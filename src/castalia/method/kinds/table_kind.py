"""Tables: columns to learn from and one to predict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from castalia.data.tables.calendar_columns import with_calendar
from castalia.data.tables.schema import Column
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.fit_plan import METRICS, FitPlan
from castalia.method.fit_table import load_table, only_labelled, usable_columns
from castalia.method.kinds.kind import Asked, Kind, NewRows, probability_columns
from castalia.method.leakage import find_leaks, leak_words
from castalia.method.report.column_importance import column_importance
from castalia.method.saved_model import (
    check_columns,
    reads_columns,
    unseen_categories,
    used_columns,
)
from castalia.method.table_baselines import answer, table_baseline
from castalia.method.table_model import DEFAULT, build_model
from castalia.method.task import find_task
from castalia.method.time_column import find_time
from castalia.method.train_test_split import Part, RowKeys, make_parts, row_keys
from castalia.method.verdict import Verdict
from castalia.utils.text import listing, plural

__all__ = ["Table", "column_row"]

FEW = 500  # rows


class Table(Kind):
    """A table; its target decides between classification and regression."""

    catalog = "table"
    shows_used = True
    tries: ClassVar = {"hidden": ((256, 256), (512, 512)), "lr": (0.001, 0.0003)}

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        self.data, notes = load_table(
            plan.data,
            target=plan.target,
            header=plan.header,
            encoding=plan.encoding,
            skip_broken=plan.skip_broken,
        )
        if plan.target is None:
            raise InvalidParameter(
                "fit: `target` must name the column of the table to predict, as in --target "
                f"{self.data.columns[-1]}; got none. There are "
                f"{listing(self.data.columns, 'and', 8)}."
            )
        self.target, self.formats = plan.target, self.data.formats
        self.data, left_out = only_labelled(self.data, plan.drop_missing)
        self.task = find_task(self.data, plan.task)
        self.data = with_calendar(self.data)
        apart = [name for name in (plan.target, plan.group, *plan.drop) if name is not None]
        self.used, remarks = usable_columns(self.data.schema, apart)
        more = self._split()
        self.warnings = leak_words(find_leaks(self.data, self.used, self.task), plan.target)
        self.notes = [*left_out, *notes, *remarks, *more]
        if plan.group is not None:
            self.notes.append(f"Column `{plan.group}` serves to split and is not learnt from.")
        self.X = self.data.select(self.used)

    def _split(self) -> list[str]:
        """Cut the rows, forwards in time where a column says so; return remarks."""
        plan, data = self.plan, self.data
        self.keys = row_keys(data, plan)
        found = find_time(data, plan.target) if plan.time is None and plan.group is None else None
        if found is not None:
            try:
                self.keys = RowKeys(order=data.column(found))
                self.parts, more = make_parts(data, self.task, plan, self.keys)
                return [_forwards(found), *more]
            except InvalidData:  # the rows before have one class only
                self.keys = RowKeys()
        self.parts, more = make_parts(data, self.task, plan, self.keys)
        return more

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whatever is nothing else is read as a table."""
        return True

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        return self.data.fingerprint()

    def facts(self) -> dict[str, Any]:
        """Count rows and columns."""
        used = f"{len(self.used)} of {len(self.data.columns) - 1} columns to learn from"
        return {"source": self.data.source, "what": f"{plural(len(self), 'row')}, {used}"}

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline on the columns."""
        model = table_baseline(
            key, self.X, self.task.kind, self.plan.boosting_rounds, self.plan.seed + part.seed
        )
        return model, answer(model, *self.rows(part.train), self.X.take(part.test), self.task)

    def usual_model(self) -> str:
        """Return a dense network."""
        return DEFAULT[self.task.kind]

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted model, sized for so many training rows."""
        return build_model(self.plan, self.task, rows, seed)

    @property
    def title(self) -> str:
        """Target and table."""
        return f"{self.target} from {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what missing values, free text and few rows suggest."""
        schema, found = self.data.schema, []
        inputs = [c for c in schema if c.name != self.target]
        empty = [c.name for c in inputs if c.used and c.missing > 0.3 * schema.rows]
        if empty:
            found.append(
                f"More than 30 % of {listing(empty, 'and', 5)} is missing; filling in those values "
                "may help more than any model."
            )
        text = [c.name for c in inputs if c.kind == "text"]
        if text:
            found.append(
                f"Free text is not used ({listing(text, 'and', 5)}); columns made from it, such as "
                f"a title or a length, may help. --text {text[0]} learns from it instead of the "
                "other columns."
            )
        return [*found, *_rows(len(self), verdict, not self.plan.cv and self.keys.order is None)]

    def described(self) -> dict[str, Any]:
        """Return the columns."""
        return {"columns": [column_row(c) for c in self.data.schema]}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the values of rows by column."""
        taken = self.data.take(rows)
        columns = {name: taken.column(name) for name in taken.columns if name != self.target}
        return [
            {"row": {name: _cell(values[i]) for name, values in columns.items()}}
            for i in range(len(rows))
        ]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show which columns the model uses, on the rows of the first part that are tested."""
        metric = self.task.scorer or METRICS[self.task.kind][0]
        X, y = self.rows(self.parts[0].test)
        return {"importance": column_importance(model, X, y, metric)}

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model has learnt columns."""
        return reads_columns(model)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read one table; columns are found by name, others are ignored."""
        if len(data) != 1:
            raise InvalidParameter(
                f"predict: a model of tables takes one table; got {len(data)}. Call it once for "
                "each."
            )
        table, notes = load_table(
            data[0], header=asked.header, encoding=asked.encoding, formats=asked.formats
        )
        table = with_calendar(table, every=True)
        check_columns(model, table)
        unseen = unseen_categories(model, table)
        return NewRows(table.select(used_columns(model)), asked.kept(table), notes, unseen)

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read a table with its target."""
        target = asked.known_target()
        table, notes = load_table(
            data,
            target=target,
            header=asked.header,
            encoding=asked.encoding,
            formats=asked.formats,
        )
        table, left_out = only_labelled(table, asked.drop_missing)
        table = with_calendar(table, every=True)
        check_columns(model, table)
        X = table.select(used_columns(model))
        y = table.labels() if is_classifier(model) else find_task(table, "regression").y
        return NewRows(X, {}, [*left_out, *notes], unseen_categories(model, X), target, y)

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return ``prediction``, and ``probability_<class>`` for every class."""
        columns = {"prediction": model.predict(X)}
        if is_classifier(model) and hasattr(model, "predict_proba"):
            columns |= probability_columns(model, model.predict_proba(X))
        return columns


def _forwards(name: str) -> str:
    return (
        f"Column `{name}` puts the rows in order in time, so models are tested on rows later than "
        "those they were trained on, as they will be used (--time none splits at random)."
    )


def _rows(rows: int, verdict: Verdict, folds: bool) -> list[str]:
    if rows >= FEW:
        return []
    act = (
        ""
        if verdict.outcome == "better"
        else "; networks rarely win on so few, and more rows change more than settings"
    )
    more = " Use castalia fit --cv 5 to test on all of them." if folds else ""
    return [f"The table has only {plural(rows, 'row')}{act}.{more}"]


def column_row(column: Column) -> dict[str, Any]:
    """Return what the report says of a column."""
    return {
        "name": column.name,
        "kind": column.kind,
        "missing": column.missing,
        "unique": column.unique,
        "detail": column.values(),
        "note": column.note,
    }


def _cell(value: Any) -> Any:
    """Return a value, or None where it is missing."""
    return None if value is None or value != value else value
