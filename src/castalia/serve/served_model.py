"""A model that is served: loaded, warmed up, with the version before it kept for a rollback."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

from castalia.errors import CastaliaError, InvalidParameter
from castalia.method.saved_model import load_model
from castalia.serve.drift_counters import DriftCounters
from castalia.serve.predictors import predictor_of

__all__ = ["LoadedModel", "ServedModel", "system_name", "version_of", "writes_texts"]

WARM = (1, 64)  # rows of the calls that warm a model up


def version_of(folder: str | os.PathLike[str]) -> str:
    """Return a mark of what a folder holds: names, sizes and times of its files."""
    found = hashlib.sha256()
    for file in sorted(Path(folder).rglob("*")):
        if file.is_file():
            facts = file.stat()
            found.update(f"{file.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return found.hexdigest()[:12]


def system_name(model: Any) -> str:
    """Return what kind of model it is."""
    inner = getattr(model, "estimator", None)
    steps = getattr(inner, "steps", None) or [("", model if inner is None else inner)]
    return type(steps[-1][1]).__name__


def writes_texts(model: Any) -> bool:
    """Whether a model goes on with texts."""
    return hasattr(model, "generate") and hasattr(model, "token_log_probabilities")


class LoadedModel:
    """One version of a model, ready to answer.

    Parameters
    ----------
    folder
        Of a run, whose recommended model is taken, or of a saved model.
    contender
        Another model of the run.
    """

    def __init__(self, folder: str | os.PathLike[str], contender: str | None = None) -> None:
        self.version, self.model = version_of(folder), load_model(folder, contender)
        self.writes = writes_texts(self.model)
        self.embeds = hasattr(self.model, "transform") and hasattr(self.model, "module_")
        self.predictor: Any = None
        try:
            self.predictor = predictor_of(self.model)
        except CastaliaError:
            if not (self.writes or self.embeds):
                raise
        self.drift = DriftCounters(self.predictor)
        self.seconds = self._warmed()

    @property
    def system(self) -> str:
        """What kind of model it is."""
        return system_name(self.model)

    def _warmed(self) -> float:
        """Answer made-up rows; return how long the last, full call took."""
        if self.predictor is None:
            return 1.0
        spent = 0.0
        for count in WARM:
            rows = self.predictor.warm_rows(count)
            self.predictor.answer(rows)
            start = time.perf_counter()
            self.predictor.answer(rows)
            spent = time.perf_counter() - start
        return spent


class ServedModel:
    """A name under which versions of a model are served, one at a time.

    Attributes
    ----------
    current
        The version that answers.
    previous
        The one before, or None.
    """

    def __init__(
        self, name: str, folder: str | os.PathLike[str], contender: str | None = None
    ) -> None:
        self.name, self.folder, self.contender = name, Path(folder), contender
        self.current = LoadedModel(folder, contender)
        self.previous: LoadedModel | None = None

    def reload(self) -> LoadedModel:
        """Load what the folder holds now; where that fails, the version before goes on."""
        fresh = LoadedModel(self.folder, self.contender)
        self._check_columns(fresh)
        self.previous, self.current = self.current, fresh
        return fresh

    def rollback(self) -> LoadedModel:
        """Go back to the version before."""
        if self.previous is None:
            raise InvalidParameter(f"serve: `{self.name}` has no version before this one.")
        self.current, self.previous = self.previous, self.current
        return self.current

    def _check_columns(self, fresh: LoadedModel) -> None:
        """Refuse a version that wants columns that today's callers do not send."""
        old, new = (getattr(m.predictor, "columns", {}) for m in (self.current, fresh))
        more = [name for name in new if name not in old]
        if old and more:
            raise InvalidParameter(
                f"serve: a new version of `{self.name}` must take the columns of the one before; "
                f"it wants `{more[0]}` too. Serve it under another name."
            )
