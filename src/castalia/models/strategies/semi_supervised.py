"""Semi-supervised learning: few rows with labels, many without.

joint: the trunk h = f(x) serves a classifier and a decoder g, J = J(y) + a ||g(h) - x||^2 / D over
all rows.  consistency: J = J(y) + a ||p(x') - p(x'')||^2, x' and x'' two views of each row.
representation: the trunk is trained without labels (``SelfSupervised``) and kept; only the last
layer is fitted to the labels.  Shapes: B batch, D inputs, H hidden, K classes.
References: 2008, Larochelle, Bengio, Classification using discriminative restricted Boltzmann
machines (shared parameters). 2017, Laine, Aila, Temporal ensembling, arXiv 1610.02242.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Interval, OneOf
from castalia.base.input_checks import n_rows
from castalia.errors import InvalidData
from castalia.models.strategies.hidden_features import (
    WithPart,
    copy_trunk,
    features_of,
    last_layer,
)
from castalia.models.strategies.self_supervised import SelfSupervised
from castalia.models.strategies.strategy_base import Strategy, WithUnlabelled
from castalia.models.strategies.training_changes import Beside, changed, require_rows
from castalia.objectives import Objective, weighted_mean
from castalia.objectives.objective import Wrapped
from castalia.protocols import Batch

__all__ = ["Consistency", "JointReconstruction", "SemiSupervised"]


class PartlyLabelled(Wrapped):
    """A loss on the labelled rows and another on all rows.

    Batches have targets (y, s) with s the weight of each label, 0 where it is unknown; a mean of
    N / N_labelled keeps the loss that of the labelled rows.
    """

    def __init__(self, objective: Objective, factor: float) -> None:
        super().__init__(require_rows("SemiSupervised", objective))
        self.factor = factor

    def outputs_and_rows(self, net: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the outputs that labels are compared with, and the loss of every row."""
        raise NotImplementedError

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the sum and its two parts."""
        y, known = batch.y
        outputs, every = self.outputs_and_rows(net, batch.x)
        inner: Any = self.objective
        labels = weighted_mean(known * inner.rows(outputs, y), batch.weight)
        rows = weighted_mean(every, batch.weight)
        return {"loss": labels + self.factor * rows, "labels": labels, "rows": rows}


class JointReconstruction(PartlyLabelled):
    """The network's last hidden layer also reconstructs the row, by the decoder ``net.part``."""

    def outputs_and_rows(self, net: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs and squared errors of the decoder."""
        h, outputs = features_of(net.net, x)
        return outputs, (net.part(h.flatten(1)) - x.flatten(1)).square().mean(dim=1)


class Consistency(PartlyLabelled):
    """Two views of a row get the same probabilities."""

    def __init__(
        self, objective: Objective, factor: float, view: Callable[[Tensor], Tensor]
    ) -> None:
        super().__init__(objective, factor)
        self.view = view

    def outputs_and_rows(self, net: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return outputs of one view and how far those of another are from them."""
        if not net.training:
            return net(x), torch.zeros(len(x), device=x.device)
        one, other = net(torch.cat([self.view(x), self.view(x)])).chunk(2)
        gap = torch.softmax(one, dim=1) - torch.softmax(other, dim=1)
        return one, gap.square().sum(dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class SemiSupervised(WithUnlabelled, Strategy):
    """A classifier that learns from rows with labels and from rows without.

    Unlabelled rows say where rows lie. They help where the classes lie apart there; otherwise they
    can hurt, and plain training is the baseline to beat.

    Parameters
    ----------
    task
        ``"classification"``: the only one there is.
    method
        ``"joint"``: one trunk classifies and reconstructs; ``"consistency"``: two noisy views of a
        row get the same answer; ``"representation"``: the trunk is learnt without labels, then the
        last layer with them.
    factor
        Weight a of what unlabelled rows say.
    noise
        Standard deviation of the views' noise, in units of the encoded columns.
    share
        Share of a row's inputs that views take from other rows when a representation is learnt.
    view
        Another way to draw views: a transform of ``castalia.data.augment``. For images
        ``Crop(4) | Flip()``, say.

    Attributes
    ----------
    estimator_ : object
        The trained classifier.
    classes_ : ndarray (K,)
        The classes.

    Shapes
    ------
    As those of the wrapped classifier; ``unlabelled``: rows like X.

    Notes
    -----
    An epoch goes over all rows, labelled or not. Where batches hold hardly any label, repeat the
    labelled rows: ``fit(np.tile(X, …), …)``.

    References
    ----------
    2008, Larochelle, Bengio, Classification using discriminative restricted Boltzmann machines,
    ICML. 2017, Laine, Aila, Temporal ensembling for semi-supervised learning, arXiv 1610.02242.

    See Also
    --------
    SelfTraining : labels rows by itself, round by round.
    SelfSupervised : the features alone.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = SemiSupervised(random_state=0).fit(X[:20], y[:20], unlabelled=X[20:])
    >>> model.score(X, y) > 0.8
    True
    """

    _classes_only: ClassVar[bool] = True

    task: Annotated[str | None, OneOf(None, "classification")] = None
    method: Annotated[str, OneOf("joint", "consistency", "representation")] = "joint"
    factor: Annotated[float, Interval(0)] = 0.3
    noise: Annotated[float, Interval(0)] = 0.1
    share: Annotated[float, Interval(0, 1, closed="neither")] = 0.3
    view: Any = None

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        every, n = self._all_rows(X), len(y)
        if self.method == "representation":
            return self._represented(member, every, X, y, weight)
        total = n_rows(every)
        known = np.where(np.arange(total) < n, total / n, 0.0)
        filled = np.concatenate([y, np.resize(self.classes_, total - n)])  # counts for nothing
        more = None if weight is None else np.concatenate([weight, np.ones(total - n)])
        codec = Beside(member.codec, lambda rows: known)
        if isinstance(getattr(member.training, "validation", 0), tuple):
            raise InvalidData("SemiSupervised: `validation` of the training must be a share.")
        if self.method == "consistency":
            with changed(member, objective=self._consistent, codec=codec):
                return self._fit_member(member, every, filled, more)
        with changed(member, objective=self._joint, network=_with_decoder(member), codec=codec):
            self._fit_member(member, every, filled, more)
        member.module_ = member.module_.net
        return member

    def _joint(self, own: Objective) -> Objective:
        return JointReconstruction(own, self.factor)

    def _consistent(self, own: Objective) -> Objective:
        view = self.view
        draw = (lambda x: view(x, None)[0]) if view is not None else self._noisy
        return Consistency(own, self.factor, draw)

    def _noisy(self, x: Tensor) -> Tensor:
        return x + self.noise * torch.randn_like(x)

    def _represented(
        self, member: Any, every: Any, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Any:
        """Fit the last layer to the labels, on a trunk that was learnt from all rows."""
        learnt = SelfSupervised(
            member,
            method="contrastive",
            share=self.share,
            view=self.view,
            random_state=member.random_state,
        ).fit(every)
        trunk = learnt.module_
        with changed(member, network=lambda net: copy_trunk(net, trunk, freeze=True)):
            return self._fit_member(member, X, y, weight)


def _with_decoder(member: Any) -> Callable[[nn.Module], nn.Module]:
    def extended(net: nn.Module) -> nn.Module:
        width = member.adapter_.shape.numel()
        return WithPart(net, nn.Linear(last_layer(net).in_features, width))

    return extended
