"""What the method has to know of a kind of data; everything else is the same for all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from castalia.catalog import System, system_for
from castalia.data import Dataset
from castalia.data.table_adapter import TableAdapter
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.fit_plan import FitPlan
from castalia.method.model_settings import find_setting, written
from castalia.method.table_baselines import BASELINES, GUESSES, baseline_name
from castalia.method.task import Task
from castalia.method.train_test_split import Part, RowKeys, hold_validation
from castalia.method.verdict import Verdict
from castalia.utils.text import listing

__all__ = ["Asked", "Kind", "NewRows", "probability_columns", "refuse"]


@dataclass(frozen=True)
class Asked:
    """How the rows of a table are to be read for a saved model.

    Attributes
    ----------
    target
        The column with the truth; None where nobody said, neither now nor in the fit.
    text
        The column with the texts; None likewise.
    header
        Whether a text file starts with column names.
    encoding
        Encoding of a text file; None: found out.
    keep
        Columns of a table to hand on beside the answers.
    drop_missing
        Whether rows without a target are left out.
    formats
        How columns were written in the table of the fit.
    group, time, drop
        Columns of a long table that name the sequence and the time of a row, and those left out.
    """

    target: str | None = None
    text: str | None = None
    header: bool = True
    encoding: str | None = None
    keep: tuple[str, ...] = ()
    drop_missing: bool = False
    formats: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    time: str | None = None
    drop: tuple[str, ...] = ()

    def kept(self, table: Dataset) -> dict[str, np.ndarray]:
        """Return the columns of a table that are handed on."""
        return {name: table.column(name) for name in self.keep}

    def known_target(self) -> str:
        """Return the column with the truth, or refuse to go on without it."""
        if self.target is None:
            raise InvalidParameter(
                "evaluate: the model does not say what it predicts; name the column with --target."
            )
        return self.target


@dataclass(frozen=True)
class NewRows:
    """Rows that a saved model is asked about.

    Attributes
    ----------
    X
        What the model takes.
    names
        Columns that tell the rows apart in the answers, such as their paths.
    notes
        Remarks.
    unseen
        What the model never saw in training, a sentence each.
    target, y
        Name and values of the truth, where it is known.
    unit
        What one of them is called.
    """

    X: Any
    names: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    target: str = ""
    y: np.ndarray | None = None
    unit: str = "row"


class Kind(ABC):
    """The data of one fit: read, its task found, its rows split.

    Building one reads the data and refuses what cannot be fitted.

    Attributes
    ----------
    plan
        What was asked for.
    X
        The rows to learn from; ``X.take(index)`` gives some of them.
    task
        What is to be predicted, with the target of every row.
    target
        What the target is called.
    parts
        How the rows are cut into those trained on and those tested.
    keys
        What the rows are split by: groups, or an order in time.
    notes
        Remarks for people.
    """

    catalog: ClassVar[str]  # kind of input in the catalogue
    other: ClassVar[str] = ""  # another model to try where the network loses
    tries: ClassVar[Mapping[str, tuple[Any, ...]]]  # and settings, the first that differs
    slow: ClassVar[bool] = False  # whether reading takes a while
    searched: ClassVar[bool] = True  # whether rows can be cut into folds to search settings
    checked: ClassVar[bool] = True  # whether there are checks before the training
    metric: ClassVar[str] = ""  # that decides, where it is not the task's usual one
    mistakes: ClassVar[int] = 10  # how many of the worst are shown
    direct: ClassVar[Any] = TableAdapter  # makes numbers for models without a network; or None
    shows_used: ClassVar[bool] = False  # whether sections are about the recommended model
    apart: ClassVar[frozenset[str]] = frozenset()  # baselines that take other inputs
    column: str | None = None  # of a table, which holds texts
    formats: Mapping[str, str] | None = None  # how columns of a table are written

    plan: FitPlan
    X: Any
    task: Task
    target: str
    parts: list[Part]
    notes: list[str]
    keys: RowKeys = RowKeys()
    warnings: Sequence[str] = ()  # what must be known before anything else

    @abstractmethod
    def __init__(self, plan: FitPlan) -> None:
        """Read what the plan names."""

    # -- the data ------------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def holds(plan: FitPlan) -> bool:
        """Whether what a plan names is of this kind."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a mark of the content."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return ``source`` and ``what``: where the data is from and what it holds, in words."""

    def __len__(self) -> int:
        return len(self.task.y)

    def planned(self, plan: FitPlan) -> Kind:
        """Return the same data under a plan with other settings of the model."""
        other = copy(self)
        other.plan = plan
        return other

    def rows(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return some rows and their targets."""
        return self.X.take(index), self.task.y[index]

    def hold_validation(
        self, rows: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Cut validation rows off the training rows; None where chance will do."""
        return hold_validation(rows, share, self.keys, self.plan.seed)

    def cut_validation(self, rows: np.ndarray, share: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the rows to train on and those to validate by, None where chance will do."""
        cut = self.hold_validation(rows, share)
        return (rows, None) if cut is None or not len(cut[1]) else cut

    # -- the contenders ------------------------------------------------------------------

    @property
    def baselines(self) -> dict[str, str]:
        """The baselines, in the order they are fitted: what people call each, by its key."""
        return {key: baseline_name(key, self.task.kind) for key in BASELINES}

    @abstractmethod
    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline; return it, None where it cannot be saved, and its answers on a part."""

    def baseline_note(self, key: str) -> str:
        """Say a few words about a baseline."""
        return GUESSES[self.task.kind] if key == "guess" else ""

    @abstractmethod
    def usual_model(self) -> str:
        """Return the name of the system that suits the data."""

    @abstractmethod
    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted model, sized for so many training rows."""

    @property
    def system(self) -> System:
        """The system that the plan names, or the one that suits the data."""
        return system_for(self.task.kind, self.plan.model or self.usual_model(), self.catalog)

    def hint(self, model: Any) -> str:
        """Return options worth trying, none of them what the model has already."""
        words = [f"--model {self.other}"] if self.other else []
        if type(model).__name__.lower().startswith(self.other or "-"):
            words = []
        for name, values in self.tries.items():
            with suppress(InvalidParameter):  # not a setting of this model
                place, own = find_setting(model, name)
                held = getattr(place.owner, own)
                found = next((v for v in values if v != held), None)
                words += [f"--set {name}={written(found)}"] if found is not None else []
        return ", ".join(words)

    # -- its part of the report ----------------------------------------------------------

    @property
    @abstractmethod
    def title(self) -> str:
        """Heading of the report."""

    @abstractmethod
    def advice(self, verdict: Verdict) -> list[str]:
        """Return what could be done about the data."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return what the report says of the data."""

    @abstractmethod
    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return each row as the list of mistakes shows it: ``row``, perhaps ``image``."""

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Return further fields of the report, about the fitted model and its answers."""
        return {}

    def split_words(self) -> str:
        """Say which rows are tested."""
        plan, unit, parts = self.plan, self.task.unit, len(self.parts)
        share = f"{100 * plan.test:.0f} % of the {unit}s tested"
        how = f"{plan.cv} folds" if plan.cv else share
        if parts > 1 and not plan.cv:
            how = f"{parts} times {share}, each with its own seed"
        if self.keys.groups is not None and plan.group:
            return f"{how}, groups of `{plan.group}` kept together"
        if self.keys.order is not None:
            return f"{how}, always later than those trained on"
        return how

    def split_sizes(self, facts: Mapping[str, Any]) -> dict[str, int]:
        """Return how large each part of the split is, from what the first training left."""
        parts, tested = len(self.parts), len(self.parts[0].test)
        if self.plan.cv:
            return {f"each of {parts} folds tested": tested}
        name = f"test, each of {parts} times" if parts > 1 else "test"
        return {"train": facts["train"], "validation": facts["validation"], name: tested}

    # -- saved models --------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def answered_by(model: Any) -> bool:
        """Whether a saved model takes this kind of data."""

    @staticmethod
    @abstractmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read rows to be predicted."""

    @staticmethod
    @abstractmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read rows whose target is known."""

    @staticmethod
    def known_task(model: Any, rows: NewRows) -> Task:
        """Read the target as the model knows it."""
        y: Any = rows.y
        if not is_classifier(model):
            return Task("regression", "", y, np.array([]))
        classes = model.classes_
        if classes.dtype.kind in "UO":
            y = np.array([str(v) for v in y])
        else:
            with suppress(ValueError):  # words where the model knows numbers: refused below
                y = y.astype(classes.dtype)
        strange = sorted({str(v) for v in y[~np.isin(y, classes)].tolist()})
        if strange:
            raise InvalidData(
                f"evaluate: `{rows.target}` must hold classes the model knows, "
                f"{listing(classes.tolist(), 'and', 6)}; "
                f"got {listing(strange, 'and', 5)}."
            )
        return Task("classification", "", y, np.asarray(classes))

    @staticmethod
    @abstractmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return the columns of the predictions."""


def refuse(plan: FitPlan, names: Sequence[str], what: str) -> None:
    """Refuse settings that a kind of data cannot have."""
    for name in names:
        if getattr(plan, name) is not None:
            raise InvalidParameter(
                f"fit: `{name}` must be None for {what}; got {getattr(plan, name)!r}."
            )


def probability_columns(model: Any, probability: np.ndarray) -> dict[str, np.ndarray]:
    """Return a column ``probability_<class>`` for every class."""
    pairs = zip(model.classes_, probability.T, strict=True)
    return {f"probability_{label}": values.astype(np.float64) for label, values in pairs}
