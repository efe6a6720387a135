"""Checking X and y as scikit-learn does, for arrays, and by column names, for frames and files."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_array,
    validate_data,
)
from torch import Tensor

from castalia.data import Dataset, read
from castalia.data.graphs import Graph, GraphRowsView, Graphs
from castalia.data.images import Images, decodable
from castalia.data.sequences import Sequences, SeriesWindows
from castalia.data.table_adapter import TableAdapter
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, public

__all__ = [
    "check_X",
    "check_matrix",
    "check_rows",
    "check_target",
    "check_weight",
    "drop_weightless",
    "is_frame",
    "n_rows",
    "named_target",
    "same_rows",
    "split_target",
    "take_rows",
]

LARGEST = 1e150


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns: pandas, polars, Arrow or a ``Dataset``."""
    return isinstance(X, Dataset) or (
        hasattr(X, "columns") and hasattr(X, "shape") and not isinstance(X, np.ndarray)
    )


def n_rows(X: Any) -> int:
    """Return how many rows there are; a sparse matrix has no length."""
    return int(X.shape[0]) if issparse(X) else len(X)


def named_target(estimator: Any, X: Any, y: Any, target: str) -> Any:
    """Read X, whose column ``target`` is to be predicted."""
    if y is not None:
        raise InvalidParameter(
            f"{type(estimator).__name__}: `y` must be None where `target` names a column of X; "
            "got both. Leave one out."
        )
    return read(X, target=target)


def split_target(X: Any, y: Any, *, required: bool = True) -> tuple[Any, Any]:
    """Take y out of a ``Dataset`` when it is named there, or named by ``y``."""
    if isinstance(X, Images) and y is None and X.target is not None:
        X = decodable(X)  # files that cannot be decoded go, with their targets
        return X.features(), X.target
    if isinstance(X, Graph | Graphs | GraphRowsView) and y is None:
        return X, X.y if required else None  # links need none, whatever nodes have
    if isinstance(X, Sequences) and y is None and X.target is not None:
        return X.features(), X.target
    if not isinstance(X, Dataset):
        return X, y
    if isinstance(y, str):
        X = read(X, target=y)
    if y is None or isinstance(y, str):
        if X.target is None and not required:
            return X, None
        if X.target is None:
            raise InvalidData(
                "fit: `y` must be given when the data set names no target; use read(path, "
                "target=…)."
            )
        return X.features(), X.column(X.target)
    return X, y


def check_rows(
    estimator: Any, adapter: Any, X: Any, *, reset: bool, y: Any = "no_validation"
) -> Any:
    """Return X checked as the kind of data that the adapter reads.

    Parameters
    ----------
    estimator
        Whose data it is, for messages and for what scikit-learn wants to know of a table.
    adapter
        Reads the data; tables are checked as scikit-learn does it, other kinds by the adapter.
    X
        Rows.
    reset
        True in ``fit``.
    y
        The target, only to report its absence.
    """
    if isinstance(adapter, TableAdapter) and adapter.tabular(X):
        return check_X(estimator, X, reset=reset, y=y)
    if y is None:
        raise InvalidData(
            f"{type(estimator).__name__}: requires y to be passed, but the target y is None."
        )
    return adapter.check(X, type(estimator).__name__)


def take_rows(data: Any, index: np.ndarray) -> Any:
    """Return some rows of an array, a table, a list, or any set with a ``take`` of its own."""
    if isinstance(data, np.ndarray | Tensor) or issparse(data):
        return data[index]
    if isinstance(data, list | tuple):
        return [data[i] for i in index]
    own = isinstance(data, Images | Sequences | SeriesWindows | Graphs | GraphRowsView)
    return data.take(index) if own else read(data).take(index)


def check_X(estimator: Any, X: Any, *, reset: bool, y: Any = "no_validation") -> Any:
    """Return X as a float array, as CSR or as the frame it is, after scikit-learn's checks."""
    if is_frame(X):
        if not isinstance(X, Dataset):
            _check_feature_names(estimator, X, reset=reset)
            _check_n_features(estimator, X, reset=reset)
        elif reset:
            estimator.n_features_in_ = len(X.columns)
            estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        if y is None:
            raise InvalidData(
                f"{type(estimator).__name__}: requires y to be passed, but the target y is None."
            )
        return X
    if isinstance(X, str | PathLike):
        raise InvalidData(
            f"{type(estimator).__name__}: X must be rows; got the address '{public(X)}'. Use "
            "fit(address, target=…), and castalia.read(address) elsewhere."
        )
    X = X.detach().cpu() if isinstance(X, Tensor) else X
    dtype = "numeric" if getattr(X, "dtype", None) != np.float32 else np.float32
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=dtype,
        accept_sparse="csr",
        ensure_all_finite="allow-nan",
        **({"y": y} if y is None else {}),
    )
    return _moderate(estimator, X if X.dtype.kind == "f" else X.astype(np.float64))


def _moderate(estimator: Any, X: Any) -> Any:
    """Return X, or say that its numbers are too large: their squares would be infinite."""
    values = (X.data if issparse(X) else X).ravel()
    if X.dtype.itemsize <= 4 or not values.size:
        return X
    if max(-np.fmin.reduce(values), np.fmax.reduce(values)) > LARGEST:  # NaN aside
        raise InvalidData(
            f"{type(estimator).__name__}: X must hold numbers below {LARGEST:g}, whose squares can "
            "be computed with. Divide the columns by a power of ten."
        )
    return X


def check_matrix(estimator: Any, X: Any, *, reset: bool, sparse: bool = False) -> Any:
    """Return X as a matrix of finite numbers, float32 or float64.

    Frames become arrays; a tensor stays the tensor it is, where it is; a scipy matrix becomes CSR.
    """
    if isinstance(X, Tensor):
        return _check_tensor(estimator, X, reset=reset)
    accepted = ("csr",) if sparse else False
    dtypes = (np.float64, np.float32)
    try:
        if isinstance(X, Dataset):
            X = _used(estimator, X, reset=reset)
            columns = np.column_stack([X.column(name) for name in X.columns])
            return check_array(columns, dtype=dtypes, estimator=estimator, input_name="X")
        found = validate_data(estimator, X, reset=reset, dtype=dtypes, accept_sparse=accepted)
        return _moderate(estimator, found)
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        word = str(error).partition(": ")[2]
        raise InvalidData(
            f"{type(estimator).__name__}: X must hold numbers only; got {word}{_where(X)}. Encode "
            "words as numbers first, with scikit-learn's OneHotEncoder for instance."
        ) from error


def _used(estimator: Any, X: Dataset, *, reset: bool) -> Dataset:
    """Return the columns an estimator uses: all but the target in ``fit``, later those of then."""
    known = getattr(estimator, "feature_names_in_", None)
    if reset or known is None:
        X = X.features()
    else:
        missing = [name for name in known if name not in X.columns]
        if missing:
            raise InvalidData(
                f"{type(estimator).__name__}: the data set must have every column used in fit; "
                f"`{missing[0]}` is missing.{did_you_mean(missing[0], X.columns)}"
            )
        X = X.select(list(known))
    if reset:
        estimator.feature_names_in_ = np.array(X.columns, dtype=object)
        estimator.n_features_in_ = len(X.columns)
    else:
        _check_n_features(estimator, np.empty((1, len(X.columns))), reset=False)
    return X


def _where(X: Any) -> str:
    """Name the first column with words in it, of a table that names its columns."""
    if not is_frame(X):
        return ""
    data = read(X)
    for name in data.columns:
        try:
            data.column(name).astype(np.float64)
        except (TypeError, ValueError):
            return f" in column `{name}`"
    return ""


def _check_tensor(estimator: Any, X: Tensor, *, reset: bool) -> Tensor:
    X = X.detach() if X.is_floating_point() else X.detach().to(torch.float32)
    name = type(estimator).__name__
    if X.ndim != 2 or not X.numel():
        raise InvalidData(
            f"{name}: a tensor X must have rows and columns; got shape {tuple(X.shape)}."
        )
    if not X.isfinite().all():
        raise InvalidData(f"{name}: X must hold no NaN or infinity. Fill them in or drop the rows.")
    _check_n_features(estimator, X, reset=reset)
    return X if X.dtype in (torch.float32, torch.float64) else X.to(torch.float32)


def same_rows(owner: str, X: Any, y: Any) -> None:
    """Refuse targets that are missing or not as many as the rows."""
    if y is None:
        raise InvalidData(f"{owner}: requires y to be passed, but the target y is None.")
    if n_rows(X) != len(y):
        raise InvalidData(
            f"{owner}: X and y must have the same number of rows; got {n_rows(X):,} and {len(y):,}."
        )


def drop_weightless(
    X: Any, y: Any, weight: np.ndarray | None
) -> tuple[Any, Any, np.ndarray | None]:
    """Leave out rows of weight 0: they are as good as absent."""
    if weight is None or weight.all():
        return X, y, weight
    kept = np.flatnonzero(weight)
    return take_rows(X, kept), take_rows(y, kept), weight[kept]


def check_target(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return y as an array with as many rows as X, without missing values."""
    if y is None:
        raise InvalidData(
            f"{type(estimator).__name__}: requires y to be passed, but the target y is None."
        )
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    y = y.detach().cpu().numpy() if isinstance(y, Tensor) else _as_array(y)
    if not y.ndim:
        raise InvalidData(
            f"{type(estimator).__name__}: y must hold a value for each row of X; got "
            f"{y.item()!r}. A column is named in read(X, target=…)."
        )
    if len(y) != n:
        raise InvalidData(
            f"{type(estimator).__name__}: X and y must have the same number of rows; got {n:,} "
            f"and {len(y):,}."
        )
    if y.dtype.kind == "c":
        raise InvalidData(
            f"{type(estimator).__name__}: y must hold real numbers; got {y.dtype}. Give its real "
            "and imaginary parts as two columns."
        )
    missing = _missing(y)
    if missing.any():
        rows = np.flatnonzero(missing)
        raise InvalidData(
            f"{type(estimator).__name__}: the target y must hold no NaN, infinity or missing "
            "value; "
            f"got {len(rows):,} of {n:,}, first in row {rows[0]}. Drop those rows or fill them in."
        )
    return y


def _as_array(y: Any) -> np.ndarray:
    """Return y as an array; numpy would make a word of a NaN that stands beside words."""
    found = np.asarray(y)
    if found.dtype.kind != "U" or not found.ndim or isinstance(y, np.ndarray):
        return found
    values = np.array(y, dtype=object)
    return values if _missing(values).any() else found


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        bad = ~np.isfinite(y)
    elif y.dtype.kind == "O":
        bad = np.array(
            [_absent(v) or (isinstance(v, float) and not np.isfinite(v)) for v in y.ravel()]
        ).reshape(y.shape)
    else:
        bad = np.zeros(y.shape, dtype=bool)
    return bad.reshape(len(y), -1).any(axis=1)


def _absent(value: Any) -> bool:
    """Whether a value is None, or pandas' NA or NaT, known by name: pandas may not be installed."""
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def check_weight(estimator: Any, X: Any, weight: Any) -> np.ndarray | None:
    """Return the sample weights as float64, or None when all count the same."""
    if weight is None:
        return None
    if is_frame(X) or isinstance(X, Tensor | Images):
        found = np.asarray(weight, dtype=np.float64)
        if found.shape != (len(X),):
            raise InvalidData(
                f"{type(estimator).__name__}: `sample_weight` must have shape ({len(X)},); got "
                f"{found.shape}."
            )
        if not np.isfinite(found).all():
            raise InvalidData(
                f"{type(estimator).__name__}: `sample_weight` must hold no NaN or infinity; got "
                f"{found[~np.isfinite(found)][0]}. Give rows that should not count the weight 0."
            )
    else:
        found = _check_sample_weight(weight, X, dtype=np.float64)
    if (found < 0).any() or not found.any():
        raise InvalidData(
            f"{type(estimator).__name__}: `sample_weight` must be at least 0, and above 0 "
            f"somewhere; got {found.min():g} as the smallest and {found.max():g} as the largest."
        )
    return found
