"""A recursive network: classes of trees and of all their nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Classifier, Estimator, Interval, OneOf, Target
from castalia.base.targets.class_codec import ClassCodec, class_weights, encode_classes
from castalia.data.adapter_base import Reads
from castalia.data.trees import TreeAdapter
from castalia.errors import InvalidData
from castalia.models.sequence.recurrent_parameters import CLIPPED, ReadsSequences
from castalia.models.sequence.step_targets import checked_steps, is_stepwise, padded
from castalia.nets.sequence import COMPOSITIONS, TreeNetwork
from castalia.objectives import CrossEntropy, NodeCrossEntropy
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.train import Training

__all__ = ["NodeClasses", "RecursiveNetwork"]


class NodeClasses(ClassCodec):
    """A class for each tree, or for each of its nodes: learns ``each_node_``."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> Any:
        """Return the classes of trees, or an array for each of them."""
        if not is_stepwise(y):
            return super().check(est, adapter, X, y)
        found = np.empty(len(y), dtype=object)
        parts = checked_steps(est, X, y, "tree", "node")
        found[:] = [_with_root(est, place, part) for place, part in enumerate(parts)]
        return found

    def fit(self, est: Any, adapter: Any, X: Any, y: Any, weight: np.ndarray | None) -> Target:
        """Learn the classes, and return their numbers."""
        est.each_node_ = is_stepwise(y)
        if not est.each_node_:
            return super().fit(est, adapter, X, y, weight)
        est.multilabel_ = False
        every = np.concatenate(list(y))
        est.classes_, _ = encode_classes(est, _plain(every[~_absent(every)]))
        encoded = self.encode(est, y)
        roots = super().encode(est, _plain(np.array([part[0] for part in y], dtype=object))).y
        weights = class_weights(est, roots.numpy(), weight)
        return Target(encoded.y, encoded.outputs, weights, roots.numpy())

    def encode(self, est: Any, y: Any) -> Target:
        """Return the numbers of classes, (N,), or of nodes (N, T), -1 where there is none."""
        if not is_stepwise(y):
            if not est.each_node_:
                return super().encode(est, y)
            y = [np.array([label], dtype=object) for label in y]  # the root is the first node
        codes = []
        for part in y:
            found = np.full(len(part), -1)
            known = ~_absent(part)
            if known.any():
                found[known] = super().encode(est, _plain(part[known])).y.numpy()
            codes.append(found)
        return Target(padded(codes, -1), len(est.classes_))

    def conclude(self, est: Any, outputs: Tensor | None, targets: Tensor | None) -> None:
        """Learn temperature and confidence from the roots of the validation trees."""
        roots = targets[:, 0] if targets is not None and targets.ndim == 2 else targets
        super().conclude(est, outputs, roots)


def _with_root(est: Any, place: int, part: np.ndarray) -> np.ndarray:
    """Return the classes of a tree's nodes, or refuse a root without one."""
    if part.ndim != 1 or _absent(part)[0]:
        raise InvalidData(
            f"{type(est).__name__}: the root of every tree must have a class; that of tree {place} "
            "has none. Leave the tree out."
        )
    return part


def _absent(part: np.ndarray) -> np.ndarray:
    """Return which nodes have no class: None or NaN."""
    return np.array([label is None or label != label for label in part.tolist()], dtype=bool)


def _plain(labels: np.ndarray) -> np.ndarray:
    """Return labels as numbers or words, not objects."""
    return np.array(labels.tolist())


@dataclass(kw_only=True, eq=False, repr=False)
class RecursiveNetwork(ReadsSequences, Classifier, Estimator):
    """Recursive network that classifies trees, and every node of them.

    The state of a node is made of what stands there and of its children's states, by the same
    weights everywhere; softmax(V h + b) of the root is the tree's class. For parsed sentences,
    formulas, programs, molecules without rings. Cross-entropy of the roots, or of all nodes that
    have a class, is minimised.

    Parameters
    ----------
    composition
        How children become their parent: ``"lstm"`` (Tree-LSTM), or ``"tanh"`` of a linear map.
    hidden
        Width of the state of a node.
    dim
        Width of the vectors of symbols.
    ordered
        Whether the order of children counts; False: they are added up, and there may be any number.
    rare
        Symbols that occur less often than this share one vector with those never seen.
    dropout
        Probability of zeroing a number of a symbol's vector, and before the output.
    class_weight
        None, ``"balanced"`` or a dict from class to weight, by the class of the root.
    calibrate
        Fit one temperature on the validation trees after training.

    Attributes
    ----------
    classes_ : ndarray (K,)
        The classes, in the order of ``predict_proba``.
    each_node_ : bool
        Whether classes of nodes were learnt.
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.TreeNetwork``.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: n trees, ``castalia.data.Tree`` or texts in brackets.  y: (n,); or n arrays of the classes of
    all nodes in the order of ``Tree.nodes``, None where one has none: ``[t.labels for t in X]``.

    Notes
    -----
    All nodes of one depth are computed at once, over the trees of a batch. Gradients are clipped
    at norm 1 unless ``training`` says otherwise.

    References
    ----------
    2013, Socher et al., Recursive deep models for semantic compositionality over a sentiment
    treebank, EMNLP. 2015, Tai, Socher, Manning, arXiv 1503.00075.

    See Also
    --------
    RNNClassifier : sequences without a tree.
    GraphClassifier : graphs with cycles.

    Examples
    --------
    >>> X = ["(0 (- not) (- good))", "(1 (- very) (- good))", "(1 (- good))", "(0 (- bad))"] * 8
    >>> model = RecursiveNetwork(hidden=8, epochs=30, lr=0.05, random_state=0)
    >>> model.fit(X, [0, 1, 1, 0] * 8).predict(["(- good)", "(- (- not) (- good))"])
    array([1, 0])
    """

    adapter: ClassVar[Any] = Reads(TreeAdapter, "rare", "ordered")
    codec: ClassVar[Any] = NodeClasses()
    usual_training: ClassVar[Training] = CLIPPED

    composition: Annotated[str, OneOf(*COMPOSITIONS)] = "lstm"
    hidden: Annotated[int, Interval(1, whole=True)] = 64
    dim: Annotated[int, Interval(1, whole=True)] = 64
    ordered: Annotated[bool, OneOf(True, False)] = True
    rare: Annotated[int, Interval(1, whole=True)] = 1
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0

    def _network(self, spec: Spec) -> nn.Module:
        return TreeNetwork(
            spec.inputs,
            spec.outputs,
            dim=self.dim,
            hidden=self.hidden,
            composition=self.composition,
            arity=int(spec.extra["arity"]) if self.ordered else None,
            dropout=self.dropout,
        )

    def _objective(self, spec: Spec) -> Objective:
        return NodeCrossEntropy(self.adapter_.usual) if self.each_node_ else CrossEntropy()

    def predict_nodes(self, X: Any) -> list[np.ndarray]:
        """Return the classes of all nodes, an array for each tree in the order of ``nodes``."""
        X = self._checked(X)
        net: Any = self.module_.eval()
        device, found = next(net.parameters()).device, []
        for block in self.adapter_.blocks(X, np.float32):
            with torch.inference_mode():
                codes = net.at_nodes(block.to(device)).argmax(dim=2).cpu().numpy()
            found += list(codes)
        return [self.classes_[row[: len(tree)]] for row, tree in zip(found, X, strict=True)]
