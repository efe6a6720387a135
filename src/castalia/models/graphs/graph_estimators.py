"""Estimators of whole graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from castalia.base import Classifier, Estimator, Regressor
from castalia.data.adapter_base import Reads
from castalia.data.graphs import GraphSetAdapter
from castalia.models.graphs.graph_task import GraphTask
from castalia.objectives import SquaredError, class_loss
from castalia.objectives.objective import Objective
from castalia.optim.schedules import one_cycle
from castalia.protocols import Spec, Stage
from castalia.train import Training

__all__ = ["GraphClassifier", "GraphRegressor"]

TRAINING = Training(schedule=one_cycle())


@dataclass(kw_only=True, eq=False, repr=False)
class GraphClassifier(GraphTask, Classifier, Estimator):
    """Graph network that classifies whole graphs, such as molecules.

    States of nodes pass along the edges, a readout makes one vector of them, a dense layer the
    classes; cross-entropy is minimised. Graphs of a batch are packed side by side into one.

    Parameters
    ----------
    network
        ``"gin"``, ``"gcn"``, ``"sage"``, ``"gat"``, ``"nn4g"``, ``"chebyshev"``, ``"spectral"``,
        ``"scarselli"``, ``"gated"``, or a module from features (N, D) and
        `castalia.nn.graph.Adjacency` to states (N, ``width``).
    hidden
        Width of the states of nodes.
    depth
        Layers, and so hops that a node sees.
    heads
        Attention heads, of ``"gat"``.
    readout
        ``"sum"``, which knows how large a graph is, ``"mean"``, ``"max"``, ``"attention"`` or
        ``"universal"``.
    dropout
        Probability of zeroing states in training.
    greedy
        Whether layers of ``"nn4g"`` are added one by one: each is trained, then frozen.
    l2
        Factor of half the sum of squared weights that is added to the loss.
    scaling
        Of features, as for `NodeClassifier`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.

    Shapes
    ------
    X: `castalia.data.Graphs`, or a list of graphs of ours, NetworkX's or PyTorch Geometric's. y: a
    class a graph; None: ``graphs.y``.

    Notes
    -----
    Nodes without features are described by the number of their edges. Features of edges are used as
    by `NodeClassifier`. No network here
    separates graphs that the Weisfeiler–Lehman test does not, such as a ring of six and two of
    three.

    References
    ----------
    2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv 1810.00826.

    See Also
    --------
    NodeClassifier : A class for each node of one graph.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("rings")
    >>> model = GraphClassifier(hidden=8, depth=2, epochs=20, random_state=0).fit(X[:60], y[:60])
    >>> bool(model.score(X[60:], y[60:]) > 0.9)
    True
    """

    adapter: ClassVar[Any] = Reads(GraphSetAdapter, "scaling")
    usual_training: ClassVar[Training] = TRAINING

    def _objective(self, spec: Spec) -> Objective | list[Stage]:
        return self._minimised(class_loss(self.multilabel_))


@dataclass(kw_only=True, eq=False, repr=False)
class GraphRegressor(GraphTask, Regressor, Estimator):
    """Graph network that predicts numbers for whole graphs.

    As `GraphClassifier`, with squared error.

    Parameters
    ----------
    network
        As for `GraphClassifier`.
    hidden
        Width of the states of nodes.
    depth
        Layers, and so hops that a node sees.
    heads
        Attention heads, of ``"gat"``.
    readout
        ``"sum"`` for quantities that add up over nodes, ``"mean"`` for others; or ``"max"``,
        ``"attention"``, ``"universal"``.
    dropout
        Probability of zeroing states in training.
    greedy
        Whether layers of ``"nn4g"`` are added one by one: each is trained, then frozen.
    l2
        Factor of half the sum of squared weights that is added to the loss.
    scaling
        Of features, as for `NodeClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : ndarray
        What targets are brought to mean 0 and deviation 1 with.

    Shapes
    ------
    X: as for `GraphClassifier`. y: one number a graph, or several.

    Notes
    -----
    As for `GraphClassifier`.

    References
    ----------
    2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv 1810.00826.

    See Also
    --------
    GraphClassifier : Classes of graphs.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("ring_sizes")
    >>> model = GraphRegressor(hidden=8, depth=2, epochs=5, random_state=0).fit(X[:60], y[:60])
    >>> model.predict(X[60:]).shape
    (60,)
    """

    adapter: ClassVar[Any] = Reads(GraphSetAdapter, "scaling")
    usual_training: ClassVar[Training] = TRAINING

    def _objective(self, spec: Spec) -> Objective | list[Stage]:
        return self._minimised(SquaredError())
