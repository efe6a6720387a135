"""Multi-layer perceptrons: the first network to try on a table."""

from __future__ import annotations

from dataclasses import dataclass

from castalia.base import Classifier, Regressor
from castalia.models.dense.dense_parameters import Dense
from castalia.objectives import Objective, SquaredError, class_loss
from castalia.protocols import Spec

__all__ = ["MLPClassifier", "MLPRegressor"]


@dataclass(kw_only=True, eq=False, repr=False)
class MLPClassifier(Classifier, Dense):
    """Multi-layer perceptron that classifies the rows of a table.

    Minimises the cross-entropy -log softmax(f(x))_y (binary cross-entropy for several labels at
    once), where f is a stack of dense layers. Numbers are standardised, missing values flagged and
    categories embedded. Right for a few thousand rows or more with smooth dependence on many
    columns; on small or very irregular tables gradient boosting is often better.

    Parameters
    ----------
    hidden
        Widths of the hidden layers; more and wider layers fit more complex functions.
    activation
        Non-linearity after each hidden layer, a name from ``castalia.nn.ACTIVATIONS``.
    dropout
        Probability of zeroing a hidden unit in training; larger values regularise more.
    class_weight
        None, ``"balanced"`` or a dict from class to weight.
    calibrate
        Fit one temperature on the validation rows after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    module_ : torch.nn.Module
        The trained ``castalia.nets.dense.MLP``.
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
    An epoch costs O(n P) for P weights. Tables larger than memory are streamed
    (``castalia.data.read``). Where ``training`` is None a tenth of the rows is held out, training
    ends after 20 epochs without a better loss on them, and the best weights are kept;
    ``training=Training()`` does all epochs.

    References
    ----------
    1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors, Nature
    323.

    See Also
    --------
    MLPRegressor : the same network for numbers.
    TabularClassifier : several of them, with defaults made for tables.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MLPClassifier(epochs=50, lr=0.01, random_state=0).fit(X, y).score(X, y) > 0.95
    True
    """

    def _objective(self, spec: Spec) -> Objective:
        return class_loss(self.multilabel_)


@dataclass(kw_only=True, eq=False, repr=False)
class MLPRegressor(Regressor, Dense):
    """Multi-layer perceptron that predicts numbers from the rows of a table.

    Minimises the mean squared error between f(x) and the standardised targets. Handles several
    targets at once.

    Parameters
    ----------
    hidden, activation, dropout
        As for ``MLPClassifier``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.dense.MLP``, whose outputs are in standardised units.
    target_mean_, target_scale_ : ndarray (T,)
        What turns outputs back into the units of y.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (n, D) numbers, or a frame with named columns of any kind.  y: (n,) or (n, T).

    Notes
    -----
    An epoch costs O(n P) for P weights.

    References
    ----------
    1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors, Nature
    323.

    See Also
    --------
    TabularRegressor : several of them, with defaults made for tables.
    DistributionRegressor : when the spread of y matters as well as its mean.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> model = MLPRegressor(epochs=60, lr=0.01, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> model.score(X, np.sin(X[:, 0])) > 0.95
    True
    """

    def _objective(self, spec: Spec) -> Objective:
        return SquaredError()
