"""Finding and loading what a fit saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from castalia.base import load
from castalia.data import Dataset
from castalia.errors import InvalidData
from castalia.method.fit_result import MODEL, RESULT, FitResult
from castalia.utils.text import did_you_mean, listing, plural, shorten

__all__ = ["check_columns", "find_target", "find_text", "load_model", "unseen_categories"]


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a model from its own folder, or from the folder of a run."""
    path = Path(path)
    if (path / MODEL).is_dir() and not (path / "model.json").exists():
        return load(path / MODEL)
    if path.is_dir() and (path / "stages").is_dir():
        raise InvalidData(
            f"predict: `{path}` must be a finished run; its training is not done. Run the same "
            "`castalia fit` again."
        )
    return load(path)


def find_target(path: str | os.PathLike[str]) -> str | None:
    """Return the target's name of the run a model belongs to, or None."""
    found = _result(path)
    return None if found is None else found.report.target


def find_text(path: str | os.PathLike[str]) -> str | None:
    """Return the column of texts of the run a model belongs to, or None."""
    found = _result(path)
    return None if found is None else found.summary.get("text")


def _result(path: str | os.PathLike[str]) -> FitResult | None:
    """Return what is known of the run a model belongs to, or None."""
    path = Path(path)
    for folder in (path, path.parent):
        if (folder / RESULT).is_file():
            return FitResult.load(folder)
    return None


def check_columns(model: Any, data: Dataset) -> None:
    """Refuse a table that lacks columns the model uses; name them and near misses."""
    encoder = model.adapter_.encoder
    absent = [name for name in encoder.used if name not in data.columns]
    if absent:
        raise InvalidData(
            f"predict: {data.source} must have every column the model was trained on; "
            f"{listing(absent, 'and')} {'is' if len(absent) == 1 else 'are'} missing."
            f"{did_you_mean(absent[0], [c for c in data.columns if c not in encoder.used])}"
        )


def unseen_categories(model: Any, data: Dataset) -> list[str]:
    """Return a sentence for each column with values the model never saw."""
    found = []
    for name, words in model.adapter_.encoder.state()["words"]:
        known = set(words)
        new = [str(v) for v in data.column(name) if v is not None and str(v) not in known]
        if new:
            values = listing([shorten(v, 30) for v in dict.fromkeys(new)], "and", 5)
            found.append(
                f"Column `{name}` holds values unseen in training in "
                f"{plural(len(new), 'row')}, taken as missing: {values}."
            )
    return found
