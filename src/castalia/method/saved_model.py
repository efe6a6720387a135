"""Finding and loading what a fit saved."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from castalia.base import load
from castalia.data import Dataset
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_result import CONTENDERS, MODEL, RESULT, FitResult
from castalia.method.saved_contender import load_contender
from castalia.method.table_matrix import Matrix
from castalia.utils.text import did_you_mean, listing, plural, shorten

__all__ = [
    "check_columns",
    "column_kinds",
    "find_columns",
    "find_formats",
    "find_metric",
    "find_target",
    "find_text",
    "load_model",
    "reads_columns",
    "unseen_categories",
    "used_columns",
]


def load_model(path: str | os.PathLike[str], name: str | None = None) -> Any:
    """Load a model from its own folder, or the recommended one from the folder of a run.

    Parameters
    ----------
    path
        Folder of a run or of a saved model.
    name
        Another contender of the run, by its key or its name: ``"boosting"``, ``"MLPClassifier"``.
    """
    path = Path(path)
    if (path / RESULT).is_file():
        return load_contender(_contender(FitResult.load(path), name))
    if name is not None:
        raise InvalidParameter(
            f"predict: --model chooses among the models of a run; `{path}` is no finished run."
        )
    if (path / MODEL).is_dir() and not (path / "model.json").exists():
        return load(path / MODEL)
    if path.is_dir() and (path / "stages").is_dir():
        raise InvalidData(
            f"predict: `{path}` must be a finished run; its training is not done. Run the same "
            "`castalia fit` again."
        )
    return load_contender(path)


def _contender(run: FitResult, name: str | None) -> Path:
    """Return the folder of a contender of a run, or say which there are."""
    models: dict[str, str] = run.summary.get("models", {MODEL: MODEL})
    key = run.summary.get("recommended", MODEL) if name is None else _key(models, name)
    places = {k: run.model if k == MODEL else run.folder / CONTENDERS / k for k in models}
    saved = [k for k, place in places.items() if place.is_dir()]
    if key in saved:
        return places[key]
    what = "cannot be saved" if key in models else "is none of them"
    raise InvalidParameter(
        f"predict: --model must be {listing(saved)} of `{run.folder}`; {name or key!r} {what}."
        f"{did_you_mean(name or key, saved)}"
    )


def _key(models: dict[str, str], name: str) -> str:
    """Return the key of a contender by its key, its name, or how one of them begins."""
    names = [(_plain(word), key) for key, shown in models.items() for word in (key, shown)]
    exact = [key for word, key in names if word == _plain(name)]
    return next(iter(exact or [key for word, key in names if word.startswith(_plain(name))]), "")


def _plain(name: str) -> str:
    return name.lower().replace(" ", "").replace("-", "").replace("_", "")


def find_target(path: str | os.PathLike[str]) -> str | None:
    """Return the target's name of the run a model belongs to, or None."""
    found = _result(path)
    return None if found is None else found.report.target


def find_metric(path: str | os.PathLike[str]) -> str | None:
    """Return the measure that decided the run a model belongs to, or None."""
    found = _result(path)
    return None if found is None else found.summary.get("metric")


def find_text(path: str | os.PathLike[str]) -> str | None:
    """Return the column of texts of the run a model belongs to, or None."""
    found = _result(path)
    return None if found is None else found.summary.get("text")


def find_formats(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return how columns were written in the table that a model was trained on."""
    found = _result(path)
    return {} if found is None else found.summary.get("formats", {})


def find_columns(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the columns that the run of a model read sequences by: group, time, those dropped."""
    found = _result(path)
    plan = {} if found is None else found.summary.get("plan") or {}
    named = {name: plan.get(name) for name in ("group", "time")}
    return {**named, "drop": tuple(plan.get("drop") or ())}


def _result(path: str | os.PathLike[str]) -> FitResult | None:
    """Return what is known of the run a model belongs to, or None."""
    path = Path(path)
    for folder in (path, path.parent, path.parent.parent):
        if (folder / RESULT).is_file():
            return FitResult.load(folder)
    return None


def reads_columns(model: Any) -> bool:
    """Whether a model has learnt the columns of a table."""
    found = _reader(model)
    return isinstance(found, Matrix) or hasattr(found, "encoder") or _reads_tables(found)


def used_columns(model: Any) -> list[str]:
    """Return the columns that a model of tables uses."""
    if isinstance(model, Blend):
        names = [name for member in model.members.values() for name in used_columns(member)]
        return list(dict.fromkeys(names))
    found = _reader(model)
    if _reads_tables(found):
        return list(found.feature_names_in_)
    return list(found.used if isinstance(found, Matrix) else found.encoder.used)


def column_kinds(model: Any) -> dict[str, str]:
    """Return the kind of each column that a model uses; ``"any"`` where it knows of numbers only.

    Numbers, booleans and dates are all numbers to a model of scikit-learn.
    """
    found = dict.fromkeys(used_columns(model), "any")
    for member in model.members.values() if isinstance(model, Blend) else [model]:
        encoder = getattr(_reader(member), "encoder", None)
        state = {} if encoder is None else encoder.state()
        found |= dict(zip(state.get("numeric", ()), state.get("kinds", ()), strict=True))
        found |= dict.fromkeys(_known_words(member), "categorical")
    return found


def _reads_tables(model: Any) -> bool:
    """Whether a model takes tables as they are, words and gaps included."""
    return getattr(model, "reads_tables", False) is True


def _reader(model: Any) -> Any:
    """Return what turns rows into the input of a model."""
    if isinstance(model, Blend):
        return _reader(model.first)
    if _reads_tables(model):
        return model
    return model.features if isinstance(model, ClassicModel) else getattr(model, "adapter_", None)


def _known_words(model: Any) -> dict[str, list[str]]:
    found = _reader(model)
    if _reads_tables(found):
        return dict(found.known_words)
    return found.words if isinstance(found, Matrix) else dict(found.encoder.state()["words"])


def check_columns(model: Any, data: Dataset) -> None:
    """Refuse a table that lacks columns the model uses; name them and near misses."""
    used = used_columns(model)
    lacking = [name for name in used if name not in data.columns]
    absent = [name for name in lacking if name.rpartition(" (")[0] not in lacking]  # of a date
    if absent:
        raise InvalidData(
            f"predict: {data.source} must have every column the model was trained on; "
            f"{listing(absent, 'and')} {'is' if len(absent) == 1 else 'are'} missing."
            f"{did_you_mean(absent[0], [c for c in data.columns if c not in used])}"
        )


def unseen_categories(model: Any, data: Dataset) -> list[str]:
    """Return a sentence for each column with values the model never saw."""
    found = []
    for name, words in _known_words(model).items():
        known = set(words)
        new = [str(v) for v in data.column(name) if v is not None and str(v) not in known]
        if new:
            values = listing([shorten(v, 30) for v in dict.fromkeys(new)], "and", 5)
            found.append(
                f"Column `{name}` holds values unseen in training in "
                f"{plural(len(new), 'row')}, taken as missing: {values}."
            )
    return found
