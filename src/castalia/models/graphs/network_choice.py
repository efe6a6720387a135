"""Which network an estimator of graphs trains: one of the library's by name, or any module."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Annotated, Any, ClassVar

from torch import nn

from castalia.base import Amounts, Constraint, Interval, OneOf, Recipe, fields_for
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.graphs.greedy_layers import greedy_stages
from castalia.nets.graphs import (
    GAT,
    GCN,
    GIN,
    NN4G,
    ChebyshevNetwork,
    GatedGraphNetwork,
    GraphSAGE,
    NodeInputs,
    ScarselliNetwork,
    SpectralNetwork,
)
from castalia.objectives import L2
from castalia.objectives.objective import Objective
from castalia.protocols import Spec, Stage
from castalia.utils.text import did_you_mean, listing

__all__ = ["NETWORKS", "GraphFields", "NetworkChoice", "WholeGraphRecipe"]

NETWORKS: Mapping[str, type[nn.Module]] = {
    "gcn": GCN,
    "sage": GraphSAGE,
    "gat": GAT,
    "gin": GIN,
    "nn4g": NN4G,
    "chebyshev": ChebyshevNetwork,
    "spectral": SpectralNetwork,
    "scarselli": ScarselliNetwork,
    "gated": GatedGraphNetwork,
}
SYMMETRIC = ("chebyshev", "spectral")


class NetworkChoice(Constraint):
    """A name of ``NETWORKS``, or a module."""

    def rule(self) -> str:
        """List the names."""
        return f"{listing(NETWORKS)}, or a torch.nn.Module"

    def holds(self, value: Any) -> bool:
        """Whether it is one of them."""
        return isinstance(value, nn.Module) or (isinstance(value, str) and value in NETWORKS)

    def hint(self, value: Any) -> str:
        """Suggest the nearest name."""
        return did_you_mean(str(value), NETWORKS)


class WholeGraphRecipe(Recipe):
    """All rows in one step where no batch size is given: the graph goes through whole anyway."""

    def amounts(self, est: Any) -> Amounts:
        """Return the fields, and the number of rows as the batch size that is not given."""
        return Amounts(est.epochs, est.batch_size or est.spec_.rows, est.lr)


@dataclass(kw_only=True, eq=False, repr=False)
class GraphFields:
    """Fields of estimators over graphs, and the network they make."""

    recipe: ClassVar[Recipe] = WholeGraphRecipe()

    network: Annotated[Any, NetworkChoice()] = "gcn"
    hidden: Annotated[int, Interval(1, whole=True)] = 64
    depth: Annotated[int, Interval(1, whole=True)] = 2
    heads: Annotated[int, Interval(1, whole=True)] = 8
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.5
    greedy: bool = False
    l2: Annotated[float, Interval(0)] = 5e-4
    scaling: Annotated[str | None, OneOf("auto", "columns", "rows", None)] = "auto"

    def _body(self, inputs: NodeInputs, outputs: int | None, spec: Spec) -> nn.Module:
        """Make the network of nodes, with scores or with states only."""
        if isinstance(self.network, nn.Module):
            return _given(type(self).__name__, self.network, outputs)
        made, edges = NETWORKS[self.network], spec.extra.get("edges", 0)
        if spec.extra.get("directed") and self.network in SYMMETRIC:
            raise InvalidData(
                f"{type(self).__name__}: network={self.network!r} needs an undirected graph, as "
                "its Laplacian must be symmetric; got a directed one. Make it with directed=False, "
                "or use network='sage'."
            )
        own = fields_for(self, made)
        if edges and "edges" in signature(made).parameters:
            own["edges"] = edges
        elif edges:
            warnings.warn(
                f"{type(self).__name__}: network={self.network!r} knows edges by their weights "
                f"only; their {edges} features are not used. {listing(_with_edges())} use them.",
                DataWarning,
                stacklevel=2,
            )
        return made(inputs.width, outputs, **own)

    def _minimised(self, objective: Objective) -> Objective | list[Stage]:
        """Return an objective with the penalty on weights, layer by layer where that is asked."""
        found = objective + L2(self.l2) if self.l2 else objective
        if not self.greedy:
            return found
        if not (self.network == "nn4g" or isinstance(self.network, NN4G)):
            raise InvalidParameter(
                f"{type(self).__name__}: `greedy` layers are those of network='nn4g'; got "
                f"{self.network!r}."
            )
        depth = len(self.network.layers) if isinstance(self.network, NN4G) else self.depth
        return greedy_stages(found, depth)

    def _node_inputs(self, spec: Spec) -> NodeInputs:
        return NodeInputs(spec.inputs, spec.categories)


def _with_edges() -> list[str]:
    return [name for name, made in NETWORKS.items() if "edges" in signature(made).parameters]


def _given(owner: str, network: nn.Module, outputs: int | None) -> nn.Module:
    """Return a copy of a user's network, which must say how wide the states are that it gives."""
    if outputs is None and not hasattr(network, "width"):
        raise InvalidParameter(
            f"{owner}: `network` must have an attribute `width`, the width of the states that it "
            f"gives each node; got a {type(network).__name__} without."
        )
    return deepcopy(network)
