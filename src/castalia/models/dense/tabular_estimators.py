"""Ensembles of perceptrons made for tables: what ``castalia fit`` trains by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Classifier, Estimator, Interval, OneOf, Regressor, Sizes, fields_for
from castalia.data.adapter_base import Reads
from castalia.data.tabular_adapter import TabularAdapter
from castalia.nets.dense import MLPEnsemble
from castalia.nn import ACTIVATIONS
from castalia.objectives import MemberLoss, Objective, SquaredError, class_loss
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["TabularClassifier", "TabularRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class Tabular(Estimator):
    """Base of both: the network, and how it is trained."""

    adapter: ClassVar[Any] = Reads(TabularAdapter, "members", "bins")
    usual_training: ClassVar[Training] = Training(
        optimizer="adamw",
        weight_decay=0.01,
        average=("ema", 0.99),
        patience=10,
        validation=0.125,
    )

    epochs: Annotated[int, Interval(1, whole=True)] = 256
    batch_size: Annotated[int, Interval(1, whole=True)] = 128
    lr: Annotated[float, Interval(0, closed="neither")] = 5e-3
    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 64)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    members: Annotated[int, Interval(1, whole=True)] = 8
    bins: Annotated[int, Interval(1, whole=True)] = 8

    def _network(self, spec: Spec) -> nn.Module:
        return MLPEnsemble(
            spec.inputs,
            spec.outputs,
            **fields_for(self, MLPEnsemble),
            categories=spec.categories,
            quantiles=spec.extra["quantiles"],
        )


@dataclass(kw_only=True, eq=False, repr=False)
class TabularClassifier(Classifier, Tabular):
    """Ensemble of perceptrons that classifies the rows of a table, with defaults made for tables.

    Minimises the mean over members of the cross-entropy. Each member leaves some of the rows out,
    and training ends when the members no longer improve on the rows they have left out, so every
    row is learnt from and every row judges. Each member keeps the weights of its own best epoch:
    every second one sees numbers whole, the others also in pieces, and these learn faster. The
    answer is the mean of the members' outputs. The first network to try on a table, and what
    ``castalia fit`` trains; ``MLPClassifier`` is the single network.

    Parameters
    ----------
    hidden
        Widths of the hidden layers of each member.
    activation
        Non-linearity after each hidden layer, a name from ``castalia.nn.ACTIVATIONS``.
    dropout
        Probability of zeroing a hidden unit in training; larger values regularise more.
    members
        Perceptrons that are trained side by side; more are steadier and take longer.
    bins
        Pieces into which each number is cut at its quantiles; more fit sharper steps.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on what members say of rows they have left out.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    module_ : torch.nn.Module
        The trained ``castalia.nets.dense.MLPEnsemble``.
    history_ : list of dict
        Loss and validation loss of every epoch.
    temperature_ : float
        Divides the outputs before the softmax; 1 without calibration.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns of any kind.  y: (n,) classes, or (n, L) of 0
    and 1.

    Notes
    -----
    An epoch costs O(n P) for P weights of all members. Of fewer than 64 rows none is left out, and
    all epochs are done. ``evidence/RESULTS.md`` has the comparison that chose the defaults.

    References
    ----------
    2024, Holzmüller, Grinsztajn, Steinwart, Better by default: strong pre-tuned MLPs and boosted
    trees on tabular data, arXiv 2407.04491.

    See Also
    --------
    MLPClassifier : one network.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> TabularClassifier(random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def _objective(self, spec: Spec) -> Objective:
        return MemberLoss(class_loss(self.multilabel_))


@dataclass(kw_only=True, eq=False, repr=False)
class TabularRegressor(Regressor, Tabular):
    """Ensemble of perceptrons that predicts numbers from the rows of a table.

    Minimises the mean over members of the squared error of the standardised targets, as
    ``TabularClassifier`` does its cross-entropy. Handles several targets at once.

    Parameters
    ----------
    hidden, activation, dropout, members, bins
        As for ``TabularClassifier``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.dense.MLPEnsemble``, whose outputs are in standardised units.
    target_mean_, target_scale_ : ndarray (T,)
        What turns outputs back into the units of y.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns of any kind.  y: (n,) or (n, T).

    Notes
    -----
    An epoch costs O(n P) for P weights of all members.

    References
    ----------
    2024, Holzmüller, Grinsztajn, Steinwart, Better by default: strong pre-tuned MLPs and boosted
    trees on tabular data, arXiv 2407.04491.

    See Also
    --------
    MLPRegressor : one network.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = TabularRegressor(random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    def _objective(self, spec: Spec) -> Objective:
        return MemberLoss(SquaredError())
