"""Training that begins where another one ended: all of it, or the last layer alone.

Image and language models have the same as their fields ``start`` and ``train``, with more choices;
these strategies do it for every estimator whose network ends in a dense layer.
References: 2014, Yosinski, Clune, Bengio, Lipson, How transferable are features in deep neural
networks?, arXiv 1411.1792. 2010, Erhan et al., Why does unsupervised pre-training help deep
learning?, JMLR 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from torch import nn

from castalia.base import Interval, OneOf
from castalia.errors import InvalidParameter
from castalia.models.strategies.hidden_features import copy_trunk, last_layer
from castalia.models.strategies.self_supervised import SelfSupervised
from castalia.models.strategies.strategy_base import Strategy, WithUnlabelled
from castalia.models.strategies.training_changes import changed

__all__ = ["FeatureExtract", "FineTune", "Pretrain", "trunk_shapes"]


def trunk_shapes(net: nn.Module) -> list[tuple[int, ...]]:
    """Return the shapes of all weights but those of the last layer.

    >>> trunk_shapes(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))
    [(3, 2), (3,)]
    """
    head = {id(p) for p in last_layer(net).parameters()}
    return [tuple(p.shape) for p in net.parameters() if id(p) not in head]


class Started:
    """Work of those that begin with the weights of a fitted estimator, ``source``."""

    _freeze: ClassVar[bool] = False
    source: Any

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        fit: Any = self._fit_member  # type: ignore[attr-defined]
        if self.source is None:
            return fit(member, X, y, weight)
        with changed(member, network=self._started):
            return fit(member, X, y, weight)

    def _started(self, net: nn.Module) -> nn.Module:
        source = getattr(self.source, "module_", None)
        found = None if source is None else trunk_shapes(source)
        if source is None or found != trunk_shapes(net):
            raise InvalidParameter(
                f"{type(self).__name__}: `source` must be fitted and have the layers of the "
                f"estimator, {trunk_shapes(net)}; got {found}."
            )
        return copy_trunk(net, source, freeze=self._freeze)

    def __sklearn_clone__(self) -> Any:
        copy: Any = super().__sklearn_clone__()  # type: ignore[misc]
        copy.source = self.source  # a clone of it would have forgotten what it learnt
        return copy


@dataclass(kw_only=True, eq=False, repr=False)
class FineTune(Started, Strategy):
    """A network that goes on from the weights of one that was fitted to other data.

    All layers but the last are taken over, and all are trained on. Pays where rows are few and
    the other task is related; set the estimator's ``lr`` lower than for a start from scratch.

    Parameters
    ----------
    source
        A fitted estimator with a network of the same kind and widths; its last layer is left
        behind. None begins with random weights. A copy made by ``clone`` keeps it.

    Attributes
    ----------
    estimator_ : object
        The trained estimator.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    Image and language models have fields ``start``, ``train`` and ``lr_decay`` for the same.

    References
    ----------
    2014, Yosinski, Clune, Bengio, Lipson, How transferable are features in deep neural networks?,
    arXiv 1411.1792.

    See Also
    --------
    FeatureExtract : trains the last layer alone.
    Pretrain : makes its source of the rows themselves.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(300)
    >>> known = FineTune(random_state=0).fit(X[:200], y[:200]).estimator_
    >>> FineTune(source=known, random_state=0).fit(X[200:], y[200:]).score(X, y) > 0.85
    True
    """

    source: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureExtract(Started, Strategy):
    """A last layer on what a network that was fitted to other data knows.

    All layers but the last are taken over and stay as they are, to the bit. Pays where rows are
    very few and the other task is close; further away ``FineTune`` is better.

    Parameters
    ----------
    source
        A fitted estimator with a network of the same kind and widths; its last layer is left
        behind. None begins with random weights, and trains all. A copy made by ``clone`` keeps it.

    Attributes
    ----------
    estimator_ : object
        The trained estimator.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    A network without a hidden layer has nothing to take over.

    References
    ----------
    2014, Yosinski, Clune, Bengio, Lipson, How transferable are features in deep neural networks?,
    arXiv 1411.1792.

    See Also
    --------
    FineTune : trains all layers.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(300)
    >>> known = FineTune(random_state=0).fit(X[:200], y[:200]).estimator_
    >>> FeatureExtract(source=known, random_state=0).fit(X[200:220], y[200:220]).score(X, y) > 0.9
    True
    """

    _freeze: ClassVar[bool] = True

    source: Any = None


@dataclass(kw_only=True, eq=False, repr=False)
class Pretrain(WithUnlabelled, Strategy):
    """A network that learns from the rows alone first, and from their targets then.

    The first training is that of ``SelfSupervised``, on rows with and without targets; the second
    goes on with all its layers but the last.

    Parameters
    ----------
    method
        What the rows teach: ``"masked"``, ``"contrastive"`` or ``"distorted"``.
    share
        Share of a row's inputs that are hidden, or that a view takes from other rows.

    Attributes
    ----------
    estimator_ : object
        The trained estimator.

    Shapes
    ------
    As those of the wrapped estimator; ``unlabelled``: rows like X.

    Notes
    -----
    ``StackedAutoencoder`` is the greedy, layer-wise form for dense layers.

    References
    ----------
    2010, Erhan, Bengio, Courville, Manzagol, Vincent, Bengio, Why does unsupervised pre-training
    help deep learning?, JMLR 11.

    See Also
    --------
    SemiSupervised : both at once.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> Pretrain(random_state=0).fit(X[:40], y[:40], unlabelled=X[40:]).score(X, y) > 0.8
    True
    """

    method: Annotated[str, OneOf("masked", "contrastive", "distorted")] = "masked"
    share: Annotated[float, Interval(0, 1, closed="neither")] = 0.3

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        seed = member.random_state
        first = SelfSupervised(member, method=self.method, share=self.share, random_state=seed)
        trunk = first.fit(self._all_rows(X)).module_
        with changed(member, network=lambda net: copy_trunk(net, trunk)):
            return self._fit_member(member, X, y, weight)
