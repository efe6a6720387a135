"""Classifiers that begin where another training ended.

Three regimes on the same data: from scratch (no start), feature extraction (a start, and only the
last layer trained) and fine-tuning (a start, and more or all of it trained).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base.params import Interval
from castalia.base.store import load
from castalia.base.warm_start import Start, Trained
from castalia.errors import InvalidParameter
from castalia.nets.transfer import freeze, parts, rate_scales
from castalia.nets.vision.torchvision_weights import load_weights
from castalia.objectives import Layered
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.utils.text import plural

__all__ = ["Transferable"]

STARTS = Start("a fitted classifier, the path of a saved one or of a safetensors file")


@dataclass(kw_only=True, eq=False, repr=False)
class Transferable:
    """Fields and work of classifiers that can start from another one's weights.

    Parameters
    ----------
    start
        What to begin with: a fitted classifier of the same network, the folder of a saved one, or a
        safetensors file of torchvision or timm. The last layer is taken over when the classes are
        the same, and is initialised otherwise. None begins with random weights. A copy made by
        scikit-learn's ``clone`` keeps the start.
    train
        What of it to train: ``"all"`` (fine-tuning), ``"head"`` (the last layer: feature
        extraction), or the number of last parts. The rest keeps every bit, statistics of batch
        normalisation included.
    lr_decay
        Factor on the learning rate from each part to the one before it, above 0 and at most 1;
        smaller values move early layers less.
    """

    start: Annotated[Any, STARTS] = None
    train: Annotated[Any, Trained()] = "all"
    lr_decay: Annotated[float, Interval(0, 1, closed="right")] = 1.0

    def _started(self, net: nn.Module) -> nn.Module:
        """Return the network with the weights to begin with, and frozen where it is not trained."""
        if self._is_being_loaded():
            return net
        if self.start is None:
            if self.train != "all":
                raise InvalidParameter(
                    f"{type(self).__name__}: `train` must be 'all' without a `start`, or random "
                    f"weights would be kept; got {self.train!r}. Give a `start`."
                )
            return net
        self._copy_start(net)
        found = len(parts(net))
        trained = {"all": found, "head": 1}.get(self.train, self.train)
        if trained > found:
            raise InvalidParameter(
                f"{type(self).__name__}: `train` must be at most {found}, for the network has "
                f"{plural(found, 'part')}; got {self.train!r}. 'all' trains all of them."
            )
        return freeze(net, found - trained)

    def _is_being_loaded(self) -> bool:
        """Whether a saved model is put together: it has a past but no network yet."""
        return hasattr(self, "n_iter_") and not hasattr(self, "module_")

    def _copy_start(self, net: nn.Module) -> None:
        start = self.start
        if isinstance(start, str | os.PathLike):
            if not (Path(start) / "model.json").exists():
                load_weights(net, start)
                return
            start = load(start)
        check_is_fitted(start, "module_")
        if type(start.module_) is not type(net):
            raise InvalidParameter(
                f"{type(self).__name__}: `start` must hold a {type(net).__name__}; got a "
                f"{type(start).__name__} with a {type(start.module_).__name__}."
            )
        same = np.array_equal(start.classes_, self.classes_)  # type: ignore[attr-defined]
        net.to(next(start.module_.parameters()).dtype)  # no bit is lost on the way
        load_weights(net, start.module_.state_dict(), head=None if same else False)

    def _objective(self, spec: Spec) -> Objective:
        objective: Objective = super()._objective(spec)  # type: ignore[misc]
        decay = self.lr_decay
        return objective if decay == 1 else Layered(objective, lambda net: rate_scales(net, decay))

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy
