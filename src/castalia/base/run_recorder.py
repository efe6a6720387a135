"""Opening the run folder of a fit, under a fingerprint of its settings and data."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from scipy.sparse import issparse
from torch import Tensor

from castalia.base.input_checks import is_frame
from castalia.data import read
from castalia.data.batches import TensorRows
from castalia.data.images import Images
from castalia.train import Recorder, Training
from castalia.utils.tensor_trees import leaves

__all__ = ["content", "described", "open_recorder"]

# Settings that do not change the weights a training ends with, so a run is resumed across them.
_NOT_FINGERPRINTED = {"run", "verbose", "callbacks", "checkpoint_every", "watch"}
_NOT_FINGERPRINTED |= {"workers", "shard", "offload", "recompute"}


def open_recorder(
    est: Any,
    training: Training,
    X: Any,
    y: Any,
    weight: np.ndarray | None,
    seed: int,
    *,
    again: bool = False,
) -> Recorder:
    """Open the run that ``training`` names, if any: a new one, or this fit's own to resume.

    A fit that goes on from weights (``again``) is another one for other weights.
    """
    if training.run is None:
        return Recorder(None, seed)
    own = {k: v for k, v in est.get_params(deep=False).items() if k != "training"}
    loop = {k: v for k, v in training.get_params().items() if k not in _NOT_FINGERPRINTED}
    config = {"estimator": type(est).__name__, "parameters": own, "training": loop}
    text = json.dumps(config, sort_keys=True, default=described)
    mark = hashlib.sha256(text.encode())
    mark.update(content(X).encode())
    for leaf in leaves(y):
        found = leaf.x if isinstance(leaf, TensorRows) else leaf
        mark.update(_bytes(found.numpy()))
    if weight is not None:
        mark.update(weight.tobytes())
    if again:
        mark.update(described(est).encode())
    return Recorder(training.run, seed, mark.hexdigest(), json.loads(text))


def described(value: Any) -> str:
    """Text of a setting, the same in every process: functions by name, data by content."""
    if isinstance(value, np.ndarray | Images) or is_frame(value) or issparse(value):
        return content(value)
    if hasattr(value, "module_"):  # a model that another one starts from: what it has learnt counts
        weights = value.module_.state_dict().values()
        marks = [content(tensor.detach()) for tensor in weights]
        return f"{value!r} {hashlib.sha256(' '.join(marks).encode()).hexdigest()}"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def content(X: Any) -> str:
    """Return a mark of some data: of its bytes, or of the cells of a table."""
    if isinstance(X, Tensor):
        X = X.cpu().numpy()
    if isinstance(X, list | tuple):  # of arrays: rows that differ in size
        return hashlib.sha256(" ".join(map(content, X)).encode()).hexdigest()
    if issparse(X):
        X = X.tocsr()
        X = np.concatenate([X.indptr, X.indices, X.data, X.shape])
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        X = np.frombuffer(repr(X.tolist()).encode(), dtype=np.uint8)
    if isinstance(X, np.ndarray):
        return hashlib.sha256(_bytes(X)).hexdigest()
    own = callable(getattr(X, "fingerprint", None))  # images, blocks of a corpus
    return X.fingerprint() if own else read(X).fingerprint()


def _bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of an array, without a copy of one that is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
