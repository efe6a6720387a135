"""Columns that cannot help: constant, missing, identifier-like, or there twice."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.outcomes import Outcome, saw, skipped
from castalia.diagnose.examination.table_models import columns_of
from castalia.diagnose.finding_record import Evidence, Finding, finding
from castalia.diagnose.thresholds import limit
from castalia.utils.text import plural

__all__ = ["columns", "some"]

NAME = "columns"
SHOWN = 8
MOST_COLUMNS = 1000  # whose pairs are compared
LEAST_ROWS = 10  # fewer rows show the same value by chance


def columns(subject: Subject) -> Outcome:
    """Look for degenerate columns of the inputs."""
    if subject.tokens or len(subject.x) < LEAST_ROWS:
        why = "inputs are tokens" if subject.tokens else "there are too few rows"
        return skipped(NAME, f"{why}, so columns were not checked.")
    whole = subject.rows.all_x
    X = columns_of(whole, False) if whole.numel() <= 20_000_000 else subject.table
    missing = np.flatnonzero(~np.isfinite(X).all(axis=0))
    spread = np.nanmax(X, axis=0, initial=-np.inf) - np.nanmin(X, axis=0, initial=np.inf)
    constant = np.flatnonzero(~(spread > 0))
    # An input of one column has nothing to fall back on, and images repeat their borders.
    tabular = subject.x.ndim == 2 and X.shape[1] > 1
    again = _repeated(X, constant) if tabular else np.array([], dtype=int)
    names = _identifiers(X) if tabular and not subject.images else np.array([], dtype=int)
    plain = subject.images or not tabular or float((X == 0).mean()) > limit("examine.sparse")
    numbers = {
        "columns": X.shape[1],
        "missing": len(missing),
        "constant": len(constant),
        "repeated": len(again),
        "identifiers": len(names),
    }
    findings = [
        _missing(X, missing),
        _constant(X, constant, plain),
        _again(again, plain),
        _identifier(names, len(X)),
    ]
    return saw(NAME, numbers, findings)


def some(found: Iterable[int]) -> str:
    """Name a few columns by their numbers."""
    wanted = [str(int(i)) for i in found]
    shown = ", ".join(wanted[:SHOWN])
    more = f" and {len(wanted) - SHOWN} more" if len(wanted) > SHOWN else ""
    return f"column{'s' if len(wanted) > 1 else ''} {shown}{more}"


def _repeated(X: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return columns that equal an earlier one up to shift and scale."""
    kept = np.setdiff1d(np.arange(X.shape[1]), constant)
    if not 2 <= len(kept) <= MOST_COLUMNS:
        return np.array([], dtype=int)
    Z = np.nan_to_num(X[:, kept])
    same = np.abs(np.corrcoef(Z, rowvar=False)) > 1 - limit("rounding.constant")
    return kept[np.triu(same, 1).any(axis=0)]


def _identifiers(X: np.ndarray) -> np.ndarray:
    """Return columns of whole numbers, each once, that fill their range like a count of rows."""
    n = len(X)
    with np.errstate(invalid="ignore"):
        whole = np.flatnonzero((np.round(X) == X).all(axis=0))
    found = []
    for column in whole:
        values = np.unique(X[:, column])
        if len(values) == n and values[-1] - values[0] < 3 * n:
            found.append(column)
    return np.array(found, dtype=int)


def _missing(X: np.ndarray, found: np.ndarray) -> Finding | None:
    if len(found) == 0:
        return None
    share = float((~np.isfinite(X[:, found])).mean())
    empty = bool((~np.isfinite(X[:, found])).all())
    return finding(
        "CST203",
        "error",
        0.97,
        f"{some(found).capitalize()} {'has' if len(found) == 1 else 'have'} missing or infinite "
        "values: one of them makes the loss not a number.",
        f"{'Drop' if empty else 'Impute or drop'} {some(found)}.",
        Evidence("share of missing values there", share, 0.0),
        where=some(found),
    )


def _constant(X: np.ndarray, found: np.ndarray, plain: bool) -> Finding | None:
    found = np.array([c for c in found if np.isfinite(X[:, c]).all()], dtype=int)
    if len(found) == 0:
        return None
    intercept = len(found) == 1 and X[0, found[0]] == 1
    return finding(
        "CST203",
        "info" if plain or intercept else "warning",
        0.6 if plain else 0.9,
        f"{plural(len(found), 'column')} of {X.shape[1]} {'has' if len(found) == 1 else 'have'} "
        "the same value in every row.",
        f"Drop {some(found)}." if not plain else "Nothing, if these are empty borders or words.",
        Evidence("constant columns", len(found), 0),
        where=some(found),
    )


def _again(found: np.ndarray, plain: bool) -> Finding | None:
    if len(found) == 0:
        return None
    return finding(
        "CST203",
        "info" if plain else "warning",
        0.85,
        f"{some(found).capitalize()} {'repeats' if len(found) == 1 else 'repeat'} an earlier "
        "column, up to shift and scale.",
        f"Drop {some(found)}.",
        Evidence("repeated columns", len(found), 0),
        where=some(found),
    )


def _identifier(found: np.ndarray, rows: int) -> Finding | None:
    if len(found) == 0:
        return None
    return finding(
        "CST203",
        "warning",
        0.85,
        f"{some(found).capitalize()} {'numbers' if len(found) == 1 else 'number'} the rows: "
        f"{rows:,} whole numbers, each once.",
        f"Drop {some(found)}: a network can memorise rows by it.",
        Evidence("different values over rows", 1.0, limit("columns.serial")),
        where=some(found),
    )
