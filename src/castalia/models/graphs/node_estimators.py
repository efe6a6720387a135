"""Estimators of nodes: trained on those whose target is known, for all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from castalia.base import Classifier, Estimator, Regressor, TargetCodec
from castalia.data.adapter_base import Reads
from castalia.data.graphs import NodeAdapter
from castalia.models.graphs.node_task import NodeTask
from castalia.models.graphs.partial_targets import NodeClassCodec, NodeNumberCodec
from castalia.objectives import SquaredError, class_loss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec, Stage
from castalia.train import Training

__all__ = ["NodeClassifier", "NodeRegressor"]

TRAINING = Training(patience=100)


@dataclass(kw_only=True, eq=False, repr=False)
class NodeClassifier(NodeTask, Classifier, Estimator):  # type: ignore[misc]
    """Graph network that classifies the nodes of a graph.

    All nodes pass messages along the edges; the cross-entropy of those whose class is known is
    minimised. Right where neighbours say something about a node; where they do not, a classifier of
    the features alone is simpler and as good.

    Parameters
    ----------
    network
        ``"gcn"``, ``"sage"``, ``"gat"``, ``"gin"``, ``"nn4g"``, ``"chebyshev"``, ``"spectral"``,
        ``"scarselli"``, ``"gated"``, or a module from features (N, D) and
        `castalia.nn.graph.Adjacency` to scores (N, classes).
    hidden
        Width of the states of nodes.
    depth
        Layers, and so hops that a node sees.
    heads
        Attention heads, of ``"gat"``.
    dropout
        Probability of zeroing what a layer is given, in training.
    greedy
        Whether layers of ``"nn4g"`` are added one by one: each is trained, then frozen.
    l2
        Factor of half the sum of squared weights that is added to the loss.
    scaling
        Of features: ``"columns"`` to mean 0 and deviation 1, ``"rows"`` to sum one, None; "auto":
        rows where they are mostly zero and never negative, columns otherwise.
    neighbours
        Neighbours drawn in training for each node of a batch, hop by hop, such as (10, 10): for
        graphs too large for a step. None: the whole graph in every step.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        The classes, sorted.

    Shapes
    ------
    X: a graph (`castalia.data.Graph`, NetworkX, scipy's sparse adjacency matrix, PyTorch
    Geometric's Data), or some of its nodes, ``graph[index]``. y: one class a node; None, NaN, or -1
    among numbers, where it is not known. None: ``graph.y``.

    Notes
    -----
    A step without ``neighbours`` takes time and memory in the number of edges. Without features
    nodes are known by their names, each with a vector of its own: then only nodes of the graph of
    ``fit`` can be predicted. ``predict`` sends the whole graph through the network. Features of
    edges, ``graph.edge_x``, are part of each message, of ``"gat"`` part of the attention;
    ``"chebyshev"`` and ``"spectral"`` know weights only.

    References
    ----------
    2017, Kipf, Welling, Semi-supervised classification with graph convolutional networks, arXiv
    1609.02907; 2018, Veličković et al., Graph attention networks, arXiv 1710.10903.

    See Also
    --------
    GraphClassifier : A class for each of many graphs.
    LinkPredictor : Which edges are missing.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("communities")
    >>> model = NodeClassifier(hidden=8, epochs=20, random_state=0).fit(X[:60], y[:60])
    >>> bool(model.score(X[60:], y[60:]) > 0.8)
    True
    """

    adapter: ClassVar[Any] = Reads(NodeAdapter, "scaling", "neighbours")
    codec: ClassVar[TargetCodec] = NodeClassCodec()
    usual_training: ClassVar[Training] = TRAINING

    def _objective(self, spec: Spec) -> Objective | list[Stage]:
        return self._minimised(class_loss(self.multilabel_))


@dataclass(kw_only=True, eq=False, repr=False)
class NodeRegressor(NodeTask, Regressor, Estimator):  # type: ignore[misc]
    """Graph network that predicts a number for the nodes of a graph.

    As `NodeClassifier`, with squared error.

    Parameters
    ----------
    network
        As for `NodeClassifier`.
    hidden
        Width of the states of nodes.
    depth
        Layers, and so hops that a node sees.
    heads
        Attention heads, of ``"gat"``.
    dropout
        Probability of zeroing what a layer is given, in training.
    greedy
        Whether layers of ``"nn4g"`` are added one by one: each is trained, then frozen.
    l2
        Factor of half the sum of squared weights that is added to the loss.
    scaling
        Of features, as for `NodeClassifier`.
    neighbours
        Neighbours drawn in training, as for `NodeClassifier`.

    Attributes
    ----------
    target_mean_, target_scale_ : ndarray
        What targets are brought to mean 0 and deviation 1 with.

    Shapes
    ------
    X: as for `NodeClassifier`. y: a number a node, NaN where it is not known.

    Notes
    -----
    As for `NodeClassifier`.

    References
    ----------
    2017, Kipf, Welling, Semi-supervised classification with graph convolutional networks, arXiv
    1609.02907.

    See Also
    --------
    NodeClassifier : Classes of nodes.

    Examples
    --------
    >>> from castalia.testing import toy
    >>> X, y = toy("heights")
    >>> model = NodeRegressor(hidden=16, epochs=60, random_state=0).fit(X[:60], y[:60])
    >>> model.predict(X[60:]).shape == y[60:].shape
    True
    """

    adapter: ClassVar[Any] = Reads(NodeAdapter, "scaling", "neighbours")
    codec: ClassVar[TargetCodec] = NodeNumberCodec()
    usual_training: ClassVar[Training] = TRAINING

    def _objective(self, spec: Spec) -> Objective | list[Stage]:
        return self._minimised(SquaredError())
