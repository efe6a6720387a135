"""What the method has to know of a kind of data; everything else is the same for all kinds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from castalia.catalog import System, system_for
from castalia.method.baselines import GUESSES
from castalia.method.compare import Verdict
from castalia.method.plan import FitPlan
from castalia.method.scores import Answers
from castalia.method.split import Part
from castalia.method.task import Task

__all__ = ["Kind", "NewRows"]


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
    notes
        Remarks for people.
    """

    catalog: ClassVar[str]  # kind of input in the catalogue
    hint: ClassVar[str]  # settings to try where the network loses
    slow: ClassVar[bool] = False  # whether reading takes a while
    mistakes: ClassVar[int] = 10  # how many of the worst are shown

    plan: FitPlan
    X: Any
    task: Task
    target: str
    parts: list[Part]
    notes: list[str]

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
        return None

    # -- the contenders ------------------------------------------------------------------

    @abstractmethod
    def baseline(self, key: str, part: Part) -> Answers:
        """Fit a baseline and let it answer the test rows of a part."""

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

    @property
    def seeds(self) -> int:
        """With how many seeds to train: one will do where chance plays no part."""
        if self.plan.seeds is not None:
            return self.plan.seeds
        return 1 if self.plan.cv or not self.system.seeded else 3

    # -- what is told of it --------------------------------------------------------------

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
        """Return each row as the list of mistakes shows it: ``row``, perhaps ``picture``."""

    def sections(self, model: Any, tested: np.ndarray) -> dict[str, Any]:
        """Return further fields of the report, about the fitted model."""
        return {}

    # -- saved models --------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def answered_by(model: Any) -> bool:
        """Whether a saved model takes this kind of data."""

    @staticmethod
    @abstractmethod
    def new_rows(model: Any, data: Sequence[Any], header: bool) -> NewRows:
        """Read rows to be predicted."""

    @staticmethod
    @abstractmethod
    def known_rows(model: Any, data: Any, target: str | None, header: bool) -> NewRows:
        """Read rows whose target is known."""

    @staticmethod
    @abstractmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return the columns of the predictions."""
