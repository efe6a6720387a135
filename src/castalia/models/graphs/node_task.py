"""What estimators of nodes share: which nodes are rows, their states, reasons of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, Sizes
from castalia.data.graphs import GraphNodes
from castalia.errors import InvalidParameter
from castalia.models.graphs.network_choice import GraphFields
from castalia.models.graphs.node_explanation import METHODS, NodeExplanation, explained
from castalia.models.graphs.partial_targets import labelled_targets
from castalia.nets.graphs import NodeHead
from castalia.protocols import Spec
from castalia.utils.text import did_you_mean, listing

__all__ = ["NodeTask"]


class OptionalSizes(Sizes):
    """Positive whole numbers, or None."""

    def rule(self) -> str:
        """Say so."""
        return f"{super().rule()} or None"

    def holds(self, value: Any) -> bool:
        """Whether it is None or every entry is a positive whole number."""
        return value is None or (super().holds(value) and len(value) > 0)


@dataclass(kw_only=True, eq=False, repr=False)
class NodeTask(GraphFields):
    """Nodes as rows; a mixin."""

    neighbours: Annotated[tuple[int, ...] | None, OptionalSizes()] = None
    epochs: Annotated[int, Interval(1, whole=True)] = 200
    batch_size: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-2

    def _network(self, spec: Spec) -> nn.Module:
        inputs = self._node_inputs(spec)
        return NodeHead(inputs, self._body(inputs, spec.outputs, spec))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return accuracy, or R², on the nodes that have a target.

        Parameters
        ----------
        X
            A graph, or some of its nodes.
        y
            Targets; None: those of the graph.
        sample_weight
            How much each node counts.
        """
        view: GraphNodes = self._checked(X)  # type: ignore[attr-defined]
        y = view.graph.y[view.index] if y is None else y
        codec: Any = self.codec  # type: ignore[attr-defined]
        filled, known = labelled_targets(type(self).__name__, view, y, negative=codec.negative)
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        found: float = super().score(view[known], filled[known], weight)  # type: ignore[misc]
        return found

    def embed(self, X: Any) -> np.ndarray:
        """Return the states of nodes before their scores, (n, F).

        Parameters
        ----------
        X
            A graph, or some of its nodes.
        """
        view: GraphNodes = self._checked(X)  # type: ignore[attr-defined]
        with torch.inference_mode():
            h = self.module_.encode(self._packed(view))  # type: ignore[attr-defined]
        found: np.ndarray = h[torch.from_numpy(view.index).to(h.device)].cpu().numpy()
        return found

    def explain(
        self, X: Any, node: Any, *, method: str = "gradients", steps: int | None = None
    ) -> NodeExplanation:
        """Say which edges and which features made a node's answer.

        Edges are judged by integrated gradients of a mask that lets their messages through: the
        shares of all edges sum to what messages as a whole changed. Or by a mask that is learnt for
        this node, the smallest that keeps the answer. Features are judged by gradient times input.

        Parameters
        ----------
        X
            The graph.
        node
            Name of the node.
        method
            ``"gradients"`` or ``"mask"``.
        steps
            Points of the integral, more are more exact, 20 where None is given; or steps in which
            the mask is learnt, 100.
        """
        if method not in METHODS:
            raise InvalidParameter(
                f"{type(self).__name__}: `method` must be {listing(METHODS)}; got {method!r}."
                f"{did_you_mean(str(method), METHODS)}"
            )
        view: GraphNodes = self._checked(X)  # type: ignore[attr-defined]
        place = int(view.graph.positions([node])[0])
        graph = self._packed(view).asking(torch.tensor([place]))
        return explained(self.module_, graph, view.graph, place, steps, method)  # type: ignore[attr-defined]

    def _packed(self, view: GraphNodes) -> Any:
        parameter = next(self.module_.parameters())  # type: ignore[attr-defined]
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        adapter: Any = self.adapter_  # type: ignore[attr-defined]
        self.module_.eval()  # type: ignore[attr-defined]
        return next(adapter.blocks(view, kind)).to(parameter.device)
