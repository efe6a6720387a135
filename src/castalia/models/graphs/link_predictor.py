"""Link prediction: which pairs of nodes belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from castalia.base import Estimator, Interval, OneOf, Target, TargetCodec
from castalia.base.input_checks import check_target
from castalia.data.adapter_base import Reads
from castalia.data.graphs import GraphPairs, LinkAdapter, as_graph
from castalia.errors import InvalidData
from castalia.models.graphs.link_ranks import ranks
from castalia.models.graphs.network_choice import GraphFields
from castalia.nets.graphs import SCORES, LinkHead
from castalia.objectives import LinkLoss
from castalia.objectives.objective import Objective
from castalia.protocols import Spec, Stage
from castalia.train import Training

__all__ = ["LinkPredictor"]


class LinkCodec(TargetCodec):
    """Pairs with a link, 1, and without, 0; without any y all are links."""

    required: ClassVar[bool] = False

    def check(self, est: Any, adapter: Any, X: GraphPairs, y: Any) -> np.ndarray:
        """Return y as zeros and ones."""
        if y is None:
            return np.ones(len(X))
        found = check_target(est, X, y)
        if found.dtype.kind not in "biuf" or not np.isin(found, (0, 1)).all():
            raise InvalidData(
                f"{type(est).__name__}: y must hold 1 for links and 0 for pairs without; got "
                f"{np.unique(found)[:3].tolist()}."
            )
        if not found.any():
            raise InvalidData(
                f"{type(est).__name__}: y must hold links, 1, beside pairs without; got one class, "
                "0."
            )
        return found.astype(np.float64)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return the targets as they are."""
        est.classes_ = np.array([0, 1])
        return Target(torch.from_numpy(y), 1)


@dataclass(kw_only=True, eq=False, repr=False)
class LinkPredictor(ClassifierMixin, GraphFields, Estimator):
    """Graph network that scores pairs of nodes by how likely they are linked.

    States of nodes are trained so that links score higher than pairs drawn at random. Right for
    recommending and completing; common neighbours are a baseline that is hard to beat on small,
    dense graphs.

    Parameters
    ----------
    network
        As for `GraphClassifier`: a network of states.
    hidden
        Width of the states of nodes.
    depth
        Layers, and so hops that a node sees.
    heads
        Attention heads, of ``"gat"``.
    link
        How two states are scored: ``"dot"``, ``"bilinear"`` or ``"mlp"``.
    negatives
        Pairs without a link that are drawn for every link.
    dropout
        Probability of zeroing what a layer is given, in training.
    greedy
        Whether layers of ``"nn4g"`` are added one by one: each is trained, then frozen.
    l2
        Factor of half the sum of squared weights that is added to the loss.
    scaling
        Of features, as for `NodeClassifier`.

    Attributes
    ----------
    classes_ : ndarray (2,)
        0 and 1, no link and link.

    Shapes
    ------
    X: a graph, whose edges are links to learn; or pairs of its nodes, ``graph.pairs(…)``, with y 1
    or 0.

    Notes
    -----
    Pairs that are held out to validate are taken out of the graph that passes messages. Without
    features nodes are known by their names: then only nodes of the graph of ``fit`` can be scored.

    References
    ----------
    2016, Kipf, Welling, Variational graph auto-encoders, arXiv 1611.07308.

    See Also
    --------
    NodeClassifier : A class for each node.

    Examples
    --------
    >>> from castalia.data import Graph
    >>> graph = Graph([(i, j) for i in range(6) for j in range(i)] + [(6, 7), (7, 8), (6, 8)])
    >>> model = LinkPredictor(hidden=8, epochs=40, dropout=0.0, random_state=0).fit(graph)
    >>> inside, across = model.predict_proba(graph, [(0, 1), (0, 7)])[:, 1]
    >>> bool(inside > across)
    True
    """

    adapter: ClassVar[Any] = Reads(LinkAdapter, "scaling")
    codec: ClassVar[TargetCodec] = LinkCodec()
    usual_training: ClassVar[Training] = Training(patience=50)

    hidden: Annotated[int, Interval(1, whole=True)] = 32
    link: Annotated[str, OneOf(*SCORES)] = "dot"
    negatives: Annotated[int, Interval(1, whole=True)] = 1
    l2: Annotated[float, Interval(0)] = 0.0
    epochs: Annotated[int, Interval(1, whole=True)] = 200
    batch_size: Annotated[int | None, Interval(1, whole=True, optional=True)] = None  # type: ignore[assignment]
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2

    def _network(self, spec: Spec) -> nn.Module:
        inputs = self._node_inputs(spec)
        given = isinstance(self.network, nn.Module)  # it says itself how wide its states are
        body = self._body(inputs, None if given else self.hidden, spec)
        return LinkHead(inputs, body, score=self.link)

    def _objective(self, spec: Spec) -> Objective | list[Stage]:
        return self._minimised(LinkLoss(negatives=self.negatives))

    def predict_proba(self, X: Any, pairs: Any = None) -> np.ndarray:
        """Return the probabilities of no link and of a link, (n, 2).

        Parameters
        ----------
        X
            A graph, or pairs of its nodes.
        pairs
            Pairs of names of nodes, (n, 2); None: those of X, or the edges of the graph.
        """
        p = torch.sigmoid(self._scores(X, pairs)).double().numpy()
        return np.stack([1 - p, p], axis=1)

    def predict(self, X: Any, pairs: Any = None) -> np.ndarray:
        """Return 1 for pairs that are probably linked, 0 for others.

        Parameters
        ----------
        X, pairs
            As for ``predict_proba``.
        """
        return (self._scores(X, pairs) > 0).numpy().astype(int)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the area under the ROC curve: how often a link scores above a pair without.

        Parameters
        ----------
        X
            Pairs of nodes; of a graph, its edges against as many pairs drawn at random.
        y
            1 for links, 0 for pairs without.
        sample_weight
            How much each pair counts.
        """
        view: GraphPairs = self._checked(X)
        if y is None:
            drawn = np.random.default_rng(0).integers(len(view.graph), size=view.index.shape)
            y = np.repeat([1, 0], len(view))
            view = GraphPairs(view.graph, np.concatenate([view.index, drawn]))
        scores = self._scores(view).numpy()
        return float(roc_auc_score(np.asarray(y), scores, sample_weight=sample_weight))

    def ranking(self, X: Any, pairs: Any, hits: Sequence[int] = (1, 10)) -> dict[str, float]:
        """Return how high the second node of each link ranks among all nodes for the first.

        Other edges of the graph are left out of the ranking.

        Parameters
        ----------
        X
            The graph.
        pairs
            Links that the graph does not show, (n, 2), by name.
        hits
            For which k the share of links among the first k is counted.

        Returns
        -------
        dict
            ``mrr``, the mean of 1 / rank, and ``hits@k``.
        """
        view = as_graph(X, type(self).__name__).pairs(pairs)
        found = ranks(self.module_, self._states(view), view)
        named = {f"hits@{k}": float((found <= k).mean()) for k in hits}
        return {"mrr": float((1 / found).mean()), **named}

    def embed(self, X: Any) -> np.ndarray:
        """Return the states of all nodes of a graph, (N, F).

        Parameters
        ----------
        X
            The graph.
        """
        return self._states(self._checked(X)).cpu().numpy()

    def _scores(self, X: Any, pairs: Any = None) -> Tensor:
        X = X if pairs is None else as_graph(X, type(self).__name__).pairs(pairs)
        found: Tensor = self._outputs(X)
        return found

    @torch.inference_mode()
    def _states(self, view: GraphPairs) -> Tensor:
        net: Any = self.module_
        parameter = next(net.parameters())
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        found: Tensor = net.eval().encode(
            next(self.adapter_.blocks(view, kind)).to(parameter.device)
        )
        return found
