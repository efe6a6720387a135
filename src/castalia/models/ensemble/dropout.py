"""Monte-Carlo dropout: one network as an ensemble of the sub-networks inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from castalia.base import Estimator, Interval
from castalia.errors import InvalidParameter
from castalia.models.ensemble.averaged import default_member
from castalia.models.ensemble.ensemble import Ensemble, merge_repeats, take
from castalia.train.precision import TINY_TABLE
from castalia.utils.seeds import generator

__all__ = ["DropoutEnsemble"]


@dataclass(kw_only=True, eq=False, repr=False)
class DropoutEnsemble(Ensemble):
    """The sub-networks that dropout trains in one network, averaged when predicting.

    Dropping each of d hidden units or not gives 2^d sub-networks that share one set of weights.
    Dropout trains them all a little; here k of them, drawn at random, are asked and averaged. The
    error of that mean to the mean over all 2^d falls as 1 / sqrt(k).

    Parameters
    ----------
    estimator
        An estimator of ours whose network drops units (``dropout`` above 0). None takes a small
        perceptron.
    members
        Number k of sub-networks; 10 to 20 are usual.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator.
    masks_ : list of ndarray (k, H)
        For each dropout layer, which of its H units each sub-network keeps.
    n_subnetworks_ : int
        2^d, the number of sub-networks there are.
    classes_ : ndarray (K,)
        The classes, of a classifier.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    A sub-network is the same for every row, so a row's answer does not depend on the others.
    Predicting costs k passes through the network.

    References
    ----------
    2014, Srivastava et al., Dropout: a simple way to prevent neural networks from overfitting, JMLR
    15. 2016, Gal, Ghahramani, Dropout as a Bayesian approximation, arXiv 1506.02142.

    See Also
    --------
    DeepEnsemble : members with weights of their own.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = DropoutEnsemble(members=10, random_state=0).fit(X, y)
    >>> model.masks_[0].shape, model.n_subnetworks_ == 2**32
    ((10, 32), True)
    """

    members: Annotated[int, Interval(1, whole=True)] = 20

    def _default(self) -> Any:
        return default_member(self.task, dropout=0.2)

    def _fit_members(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int, codes: np.ndarray | None
    ) -> None:
        member = self._member(seed, 0)
        if not isinstance(member, Estimator):
            raise InvalidParameter(
                "DropoutEnsemble: `estimator` must be one of ours that is trained by gradients; "
                f"got {type(member).__name__}."
            )
        if len(y) <= TINY_TABLE:  # each row draws masks: rows written twice must not draw twice
            X, y, weight = merge_repeats(X, y, weight)
        self.estimator_ = self._fit_member(member, X, y, weight)
        self.masks_ = self._draw(X, seed)
        self.n_subnetworks_ = 2 ** sum(mask.shape[1] for mask in self.masks_)

    def _draw(self, X: Any, seed: int) -> list[np.ndarray]:
        """Draw which units each sub-network keeps, one matrix (k, H) a dropout layer."""
        layers = _dropouts(self.estimator_.module_)
        if not layers:
            raise InvalidParameter(
                "DropoutEnsemble: the estimator's network must drop units; got none that does. Set "
                "`dropout` above 0."
            )
        widths = _widths(self.estimator_, layers, take(X, np.arange(1)))
        return [
            (torch.rand(self.members, width, generator=generator(seed, i)) >= layer.p).numpy()
            for i, (layer, width) in enumerate(zip(layers, widths, strict=True))
        ]

    def _answers(self, X: Any, masks: list[np.ndarray]) -> np.ndarray:
        """Return what each sub-network says: probabilities (k, N, K) or numbers (k, N[, T])."""
        method = self.estimator_.predict_proba if is_classifier(self) else self.estimator_.predict
        found = []
        for kept in zip(*masks, strict=True):  # one vector a layer
            with _subnetwork(self.estimator_.module_, kept):
                found.append(method(X))
        return np.stack(found)

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return self._matrix(X)

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the mean probability of each class over the sub-networks."""
        X = self._checked(X)
        return self._answers(X, self.masks_).mean(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class, or the mean number, of each row."""
        X = self._checked(X)
        mean = self._answers(X, self.masks_).mean(axis=0)
        return self.classes_[mean.argmax(axis=1)] if is_classifier(self) else mean

    def predict_std(self, X: Any) -> np.ndarray:
        """Return how far the sub-networks spread."""
        X = self._checked(X)
        return self._answers(X, self.masks_).std(axis=0)


def _dropouts(net: nn.Module) -> list[nn.Dropout]:
    return [m for m in net.modules() if isinstance(m, nn.Dropout) and m.p > 0]


def _widths(est: Any, layers: list[nn.Dropout], row: Any) -> list[int]:
    """Return how many units each dropout layer sees, by sending a row through."""
    seen: dict[int, int] = {}
    handles = [
        layer.register_forward_hook(lambda module, args, out, i=i: seen.update({i: out[0].numel()}))
        for i, layer in enumerate(layers)
    ]
    try:
        est.predict(row)
    finally:
        for handle in handles:
            handle.remove()
    return [seen[i] for i in range(len(layers))]


@contextmanager
def _subnetwork(net: nn.Module, masks: Sequence[np.ndarray]) -> Iterator[None]:
    """Keep only the units of the masks for a while, scaled as in training."""

    def keep(mask: np.ndarray, p: float) -> Any:
        scale = torch.from_numpy(mask).double() / (1 - p)
        return lambda layer, args, out: out * scale.to(out).reshape(out.shape[1:])

    handles = [
        layer.register_forward_hook(keep(mask, layer.p))
        for layer, mask in zip(_dropouts(net), masks, strict=True)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
