"""Targets of nodes, which some nodes lack: those are neighbours, not rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from castalia.base import Target
from castalia.base.input_checks import check_target
from castalia.base.targets import ClassCodec, NumberCodec, TargetCodec
from castalia.data.graphs import GraphNodes
from castalia.errors import InvalidData

__all__ = ["NodeClassCodec", "NodeNumberCodec", "labelled_targets"]


def labelled_targets(
    owner: str, X: Any, y: Any, *, negative: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return targets with stand-ins where there is none, and which nodes have one.

    Parameters
    ----------
    owner
        Whose targets, for messages.
    X
        The rows.
    y
        A value a node; missing where None, NaN, or NA.
    negative
        Whether -1 stands for a missing class number too.
    """
    found = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if found.dtype.kind == "U" and not isinstance(y, np.ndarray):
        found = np.array(list(y), dtype=object)  # a NaN beside words would become a word
    if found.ndim == 0 or len(found) != len(X):
        raise InvalidData(
            f"{owner}: X and y must have the same number of rows; got {len(X):,} nodes and "
            f"{0 if found.ndim == 0 else len(found):,} targets."
        )
    missing: np.ndarray = np.asarray(_missing(found.reshape(len(found), -1)).any(axis=1))
    if negative and found.dtype.kind in "iuf":
        missing |= found.reshape(len(found), -1)[:, 0] == -1
    if missing.all():
        raise InvalidData(f"{owner}: y must have a target for some nodes; got none.")
    if not missing.any():
        return found, ~missing
    filled = found.copy()
    filled[missing] = found[~missing][0]
    if filled.dtype.kind == "O" or (negative and filled.dtype.kind == "f"):
        plain = np.array(filled.tolist())
        whole = plain.dtype.kind == "f" and negative and (plain == plain.round()).all()
        filled = plain.astype(np.int64) if whole else plain
    return filled, ~missing


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind != "O":
        return np.zeros(y.shape, dtype=bool)
    absent = [v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in y.ravel()]
    return np.array(absent, dtype=bool).reshape(y.shape)


class _Partial(TargetCodec):
    """Nodes without a target are left out of the rows, as rows of weight 0 are."""

    partial: ClassVar[bool] = True
    negative: ClassVar[bool] = False

    def check(self, est: Any, adapter: Any, X: GraphNodes, y: Any) -> Any:
        """Return y with stand-ins, and note which nodes have a target."""
        filled, X.labelled = labelled_targets(type(est).__name__, X, y, negative=self.negative)
        return check_target(est, X, filled)

    def check_weight(self, est: Any, X: GraphNodes, weight: Any) -> np.ndarray | None:
        """Return the weights, 0 for nodes without a target."""
        found = super().check_weight(est, X, weight)
        if X.labelled is None or X.labelled.all():
            return found
        return X.labelled * (1.0 if found is None else found)

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Learn from the nodes that have a target."""
        return super().fit(est, adapter, X, y, _plain(weight))

    def more(self, est: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Encode further targets."""
        return super().more(est, y, _plain(weight))


def _plain(weight: np.ndarray | None) -> np.ndarray | None:
    return None if weight is None or (weight == 1).all() else weight


class NodeClassCodec(_Partial, ClassCodec):
    """Classes of nodes; -1 is none."""

    negative: ClassVar[bool] = True


class NodeNumberCodec(_Partial, NumberCodec):
    """Numbers of nodes."""
