"""scikit-learn's trees in saved models: their arrays, checked, instead of a pickle.

A tree is a list of nodes: node i asks whether feature f_i is at most t_i and goes on to its left or
right child, which come after it; a leaf has children -1 and holds a value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree._tree import Tree

from castalia.base.saved_values import register
from castalia.errors import DamagedFile

__all__ = ["restore_tree", "tree_state"]

LEAF = -1
FITTED = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_")


def tree_state(est: Any) -> dict[str, Any]:
    """Return parameters, fitted attributes and the nodes of a decision tree."""
    state: dict[str, Any] = {"parameters": est.get_params(deep=False)}
    if hasattr(est, "tree_"):
        inner = est.tree_.__getstate__()
        state["fitted"] = {name: getattr(est, name) for name in FITTED if hasattr(est, name)}
        state["max_features"] = int(est.max_features_)
        state["max_depth"] = int(inner["max_depth"])
        state["nodes"] = {
            name: np.ascontiguousarray(inner["nodes"][name]) for name in inner["nodes"].dtype.names
        }
        state["values"] = np.ascontiguousarray(inner["values"])
    return state


def restore_tree(cls: type, state: dict[str, Any]) -> Any:
    """Make a decision tree again; its nodes are checked, so that no descent leaves the arrays."""
    est = cls(**state["parameters"])
    if "nodes" not in state:
        return est
    fitted, values = state["fitted"], state["values"]
    _check(state["nodes"], values, fitted)
    for name in FITTED:
        if name in fitted:
            setattr(est, name, fitted[name])
    est.max_features_ = state["max_features"]
    classes = np.atleast_1d(fitted.get("n_classes_", 1)).astype(np.intp)
    est.tree_ = Tree(int(fitted["n_features_in_"]), classes, int(fitted["n_outputs_"]))
    kinds = est.tree_.__getstate__()["nodes"].dtype
    nodes = np.zeros(len(values), dtype=kinds)
    for name in kinds.names:
        if name in state["nodes"]:
            nodes[name] = state["nodes"][name]
    est.tree_.__setstate__(
        {
            "max_depth": state["max_depth"],
            "node_count": len(nodes),
            "nodes": nodes,
            "values": values,
        }
    )
    return est


def _check(nodes: dict[str, np.ndarray], values: np.ndarray, fitted: dict[str, Any]) -> None:
    """Refuse nodes whose children or features do not exist, and values of another shape."""
    left, right, feature = nodes["left_child"], nodes["right_child"], nodes["feature"]
    count, own = len(left), np.arange(len(left))
    inner = left != LEAF
    widest = int(np.max(fitted.get("n_classes_", 1)))
    sound = (
        count > 0
        and all(column.shape == (count,) for column in nodes.values())
        and values.shape == (count, int(fitted["n_outputs_"]), widest)
        and bool(((right != LEAF) == inner).all())
        and bool(((left > own) & (left < count))[inner].all())
        and bool(((right > own) & (right < count))[inner].all())
        and bool(((feature >= 0) & (feature < int(fitted["n_features_in_"])))[inner].all())
    )
    if not sound:
        raise DamagedFile("castalia.load: the nodes of a decision tree make no sense.")


register(
    DecisionTreeClassifier,
    "sklearn.DecisionTreeClassifier",
    tree_state,
    lambda state: restore_tree(DecisionTreeClassifier, state),
)
register(
    DecisionTreeRegressor,
    "sklearn.DecisionTreeRegressor",
    tree_state,
    lambda state: restore_tree(DecisionTreeRegressor, state),
)
