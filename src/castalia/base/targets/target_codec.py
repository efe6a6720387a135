"""How a task's targets become tensors, and a network's outputs predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from castalia.base.input_checks import check_target, check_weight, n_rows
from castalia.errors import InvalidParameter
from castalia.protocols import Batch

__all__ = ["NoTarget", "Target", "TargetCodec"]


@dataclass(frozen=True)
class Target:
    """Encoded targets.

    Attributes
    ----------
    y
        A tree of tensors with one row per sample; ``TensorRows`` where they are padded.
    outputs
        Number of network outputs they call for.
    weight
        Row weights after class weights, or None.
    labels
        Class numbers to stratify a split by, or None.
    """

    y: Any
    outputs: int
    weight: np.ndarray | None = None
    labels: np.ndarray | None = None


class TargetCodec:
    """Targets of one task: checked, encoded and decoded.

    One object serves all estimators of a task. It has no state: what it learns become fitted
    attributes of the estimator that each method is given, so they are saved with it.
    """

    required: ClassVar[bool] = True  # whether ``fit`` needs a y
    judges: ClassVar[bool] = False  # whether ``conclude`` wants outputs of the validation rows,
    judges_training: ClassVar[bool] = False  # and without any, those of the rows trained on,
    most_judged: ClassVar[int | None] = None  # of which so many will do

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> Any:
        """Return y checked against the rows X, which the adapter has checked already."""
        return check_target(est, X, y)

    def check_weight(self, est: Any, X: Any, weight: Any) -> np.ndarray | None:
        """Return the sample weights as float64, or None when all count the same."""
        return check_weight(est, X, weight)

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Learn from the checked targets of ``fit`` and encode them."""
        encoded = self.encode(est, y)
        return Target(encoded.y, encoded.outputs, weight)

    def check_classes(self, est: Any, y: Any, classes: Any, *, first: bool) -> None:
        """Refuse ``classes`` of ``partial_fit``: other tasks learn all from the first targets."""
        if classes is not None:
            raise InvalidParameter(
                f"{type(est).__name__}.partial_fit: `classes` must be None for this task; got "
                f"{classes!r}."
            )

    def begin(self, est: Any, y: Any, weight: np.ndarray | None, classes: Any) -> Target:
        """Learn the classes that were given to ``partial_fit``, and encode its first targets."""
        raise NotImplementedError

    def more(self, est: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Encode the checked targets of a fit that goes on, with what was learnt before."""
        encoded = self.encode(est, y)
        return Target(encoded.y, encoded.outputs, weight)

    def encode(self, est: Any, y: Any) -> Target:
        """Encode further targets with what was learnt."""
        raise NotImplementedError

    def truth(self, batch: Batch) -> Any:
        """Return what outputs of a validation batch are judged by."""
        return batch.y

    def conclude(self, est: Any, outputs: Any, targets: Any) -> None:
        """Learn from the outputs of the validation rows after training, None without any."""

    def judged(self, est: Any, batch: Batch) -> Any:
        """Return what ``conclude`` is given of a batch: outputs, by those that left a row out."""
        net: Any = est.module_
        if batch.weight is None or batch.weight.ndim == 1:
            return net(batch.x)
        return net.held_out_outputs(batch.x, batch.weight)

    def outputs(self, est: Any, x: Any) -> Any:
        """Return the network's outputs for a batch of inputs."""
        return est.module_(x)

    def decode(self, est: Any, outputs: Any) -> Any:
        """Turn outputs into predictions."""
        raise NotImplementedError


class NoTarget(TargetCodec):
    """No targets: what is learnt is in the rows."""

    required = False

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return zeros, whatever y is."""
        return np.zeros(n_rows(X), dtype=np.int64)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return them as they are."""
        return Target(torch.from_numpy(y), 0)
