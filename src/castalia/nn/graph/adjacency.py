"""The edges of a graph as a sparse matrix, kept once, with what layers make of it.

A[i, j] is the weight of the edge from j to i, so A h sums over the neighbours of each node.
Shapes: N nodes, E edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from castalia.errors import InvalidData
from castalia.nn.graph.sparse_products import csr_tensor, product, weighted_product

__all__ = ["Adjacency"]


class Adjacency:
    """Sparse adjacency matrix, sorted by target.

    Parameters
    ----------
    pointer
        Where the edges that end in each node begin, (N + 1,).
    source
        Node in which each edge begins, (E,).
    weight
        Of each edge, (E,); None: ones.
    symmetric
        Whether A is its own transpose, which then need not be made.
    mask
        Factor of each edge's message, (E,), which may ask for a gradient; None: ones.
    blocks
        Where the nodes of each graph begin, (B + 1,), when several are packed; None: one graph.
    edge_x
        Features of the edges, (E, K); None: there are none.

    Examples
    --------
    >>> path = Adjacency.of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    >>> path @ torch.tensor([[1.0], [10.0], [100.0]])
    tensor([[ 10.],
            [101.],
            [ 10.]])
    """

    def __init__(
        self,
        pointer: Tensor,
        source: Tensor,
        weight: Tensor | None = None,
        *,
        symmetric: bool = False,
        mask: Tensor | None = None,
        blocks: Tensor | None = None,
        edge_x: Tensor | None = None,
    ) -> None:
        self.pointer, self.source, self.weight = pointer, source, weight
        self.symmetric, self.mask, self.blocks = symmetric, mask, blocks
        self.edge_x = edge_x
        self.features: Tensor | None = None  # that come with it in every step of a training
        self._made: dict[Any, Any] = {}

    @classmethod
    def of(
        cls,
        edges: Tensor,
        nodes: int,
        weight: Tensor | None = None,
        *,
        symmetric: bool | None = None,
        blocks: Tensor | None = None,
        edge_x: Tensor | None = None,
    ) -> Self:
        """Make the matrix of a list of edges.

        Parameters
        ----------
        edges
            Sources and targets, (2, E).
        nodes
            How many nodes there are.
        weight
            Of each edge, (E,).
        symmetric
            Whether every edge has its reverse, of the same weight; None: find out.
        blocks
            Where the nodes of each graph begin, when several are packed.
        edge_x
            Features of the edges, (E, K), in the order of ``edges``.
        """
        if edges.numel() and not 0 <= int(edges.min()) <= int(edges.max()) < nodes:
            raise InvalidData(
                f"Adjacency: nodes of edges must lie between 0 and {nodes - 1}; got "
                f"{int(edges.min())} to {int(edges.max())}."
            )
        counts = torch.bincount(edges[1], minlength=nodes)
        if edge_x is not None:
            edge_x = edge_x[torch.argsort(edges[1] * nodes + edges[0])]
        source, weight = _by_target(edges, nodes, weight)
        pointer = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        made = cls(pointer, source, weight, blocks=blocks, edge_x=edge_x)
        made.symmetric = made._is_symmetric() if symmetric is None else symmetric
        return made

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.pointer) - 1

    @property
    def edges(self) -> int:
        """How many entries of the matrix are kept."""
        return len(self.source)

    @cached_property
    def offsets(self) -> Tensor:
        """Where the edges of each target begin, as segment sums want it."""
        return self.pointer.long()

    @cached_property
    def target(self) -> Tensor:
        """Node in which each edge ends, (E,)."""
        counts = self.pointer.diff()
        numbers = torch.arange(self.nodes, device=self.source.device)
        return numbers.repeat_interleave(counts, output_size=self.edges)

    @cached_property
    def turned(self) -> Tensor:
        """Positions of the edges, sorted by source, (E,): the edges of the transpose."""
        return torch.argsort(self.source * self.nodes + self.target)

    @cached_property
    def transposed(self) -> Adjacency:
        """The matrix with every edge turned round."""
        if self.symmetric:
            return self
        counts = torch.bincount(self.source, minlength=self.nodes)
        weight = None if self.weight is None else self.weight[self.turned]
        return Adjacency(
            torch.cat([counts.new_zeros(1), counts.cumsum(0)]), self.target[self.turned], weight
        )

    @cached_property
    def degree(self) -> Tensor:
        """Sum of the weights of each node's incoming edges, (N,)."""
        if self.weight is None:
            return self.pointer.diff()
        return torch.segment_reduce(self.weight, "sum", offsets=self.offsets)

    def values(self, dtype: torch.dtype) -> Tensor:
        """Return the weights, (E,), in a format."""
        if self.weight is None:
            return torch.ones(self.edges, dtype=dtype, device=self.source.device)
        return self.weight.to(dtype)

    def factors(self, dtype: torch.dtype) -> Tensor:
        """Return what each edge's message is multiplied by, (E,): its weight and its mask."""
        values = self.values(dtype)
        return values if self.mask is None else values * self.mask.to(dtype)

    def matrix(self, dtype: torch.dtype) -> Tensor:
        """Return the matrix as torch's, kept for the next call."""
        return self._kept(("matrix", dtype), lambda: self.weighted_matrix(self.values(dtype)))

    def weighted_matrix(self, weight: Tensor) -> Tensor:
        """Return torch's matrix of these edges with other weights, (E,)."""
        shape = (self.nodes, self.nodes)
        return csr_tensor(self.pointer, self.source, weight, shape)

    def __matmul__(self, x: Tensor) -> Tensor:  # (N, F)
        """Return A x, (N, F), with the masks of the messages."""
        if self.mask is None:
            return product(self, x)
        return weighted_product(self, self.factors(x.dtype), x)

    def beside(self, x: Any) -> Adjacency:
        """Return the same matrix for a training whose steps all have these features, (N, D)."""
        made = self._like(self.weight)
        made.features = x if isinstance(x, Tensor) and not x.requires_grad else None
        return made

    def mixed(self, x: Any) -> Tensor | None:  # (N, D)
        """Return A x, found once, of the features that every step has; None of others."""
        if x is not self.features or x is None or self.mask is not None:
            return None
        found: Tensor = self._kept("mixed", lambda: self @ x)
        return found

    def with_loops(self) -> Adjacency:
        """Return the matrix with an edge from each node to itself, of weight 1 where it is new."""
        return self._kept("loops", self._looped)

    def normalised(self, *, loops: bool = True) -> Adjacency:
        """Return D^-1/2 A D^-1/2, with an edge from each node to itself or without.

        Of a directed graph, D holds the degrees of the targets.
        """
        base = self.with_loops() if loops else self
        return base._kept("normalised", base._scaled)

    def averaged(self) -> Adjacency:
        """Return D^-1 A, which takes the mean over the neighbours."""
        return self._kept("averaged", self._mean)

    def masked(self, mask: Tensor) -> Adjacency:
        """Return the same edges, whose messages are multiplied, (E,), whatever layers do to them.

        Edges from nodes to themselves that a layer adds keep the factor 1.
        """
        made = self._like(self.weight)
        made.mask = mask
        return made

    def described(self, edge_x: Tensor | None) -> Adjacency:
        """Return the same edges with other features, (E, K)."""
        made = self._like(self.weight)
        made.edge_x = edge_x
        return made

    def to(self, device: Any) -> Adjacency:
        """Return the same matrix on a device."""
        if self.pointer.device == torch.device(device):
            return self
        parts = [
            None if part is None else part.to(device)
            for part in (
                self.pointer,
                self.source,
                self.weight,
                self.mask,
                self.blocks,
                self.edge_x,
            )
        ]
        pointer, source, weight, mask, blocks, edge_x = parts
        return Adjacency(
            pointer,  # type: ignore[arg-type]
            source,  # type: ignore[arg-type]
            weight,
            symmetric=self.symmetric,
            mask=mask,
            blocks=blocks,
            edge_x=edge_x,
        )

    def dense(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return the matrix with its zeros, (N, N), for small graphs."""
        found = torch.zeros(self.nodes, self.nodes, dtype=dtype, device=self.source.device)
        return found.index_put((self.target, self.source), self.values(dtype), accumulate=True)

    def _kept(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _like(self, weight: Tensor | None, *, symmetric: bool | None = None) -> Adjacency:
        """Return a matrix of the same edges with other weights."""
        made = Adjacency(
            self.pointer,
            self.source,
            weight,
            symmetric=self.symmetric if symmetric is None else symmetric,
            mask=self.mask,
            blocks=self.blocks,
            edge_x=self.edge_x,
        )
        made.features = self.features
        for name in ("target", "turned", "offsets"):  # found once for all weights
            if name in self.__dict__:
                made.__dict__[name] = self.__dict__[name]
        return made

    def _looped(self) -> Adjacency:
        own = self.source == self.target
        weight = self.values(torch.float64) if self.weight is None else self.weight
        loop = weight.new_ones(self.nodes)
        loop[self.source[own]] = weight[own]
        numbers = torch.arange(self.nodes, device=self.source.device)
        edges = torch.stack(
            [torch.cat([self.source[~own], numbers]), torch.cat([self.target[~own], numbers])]
        )
        order = torch.argsort(edges[1] * self.nodes + edges[0])
        counts = torch.bincount(edges[1], minlength=self.nodes)
        bare = self.weight is None or bool((weight == 1).all())
        mask = self.mask
        if mask is not None:
            mask = torch.cat([mask[~own], mask.new_ones(self.nodes)])[order]
        made = Adjacency(
            torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            edges[0, order],
            None if bare else torch.cat([weight[~own], loop])[order],
            symmetric=self.symmetric,
            mask=mask,
            blocks=self.blocks,
            edge_x=self._looped_features(own, order),
        )
        made.features = self.features
        return made

    def _looped_features(self, own: Tensor, order: Tensor) -> Tensor | None:
        """Return features of edges and new loops; a loop has the mean of those into its node."""
        if self.edge_x is None:
            return None
        others = self.edge_x[~own]
        total = others.new_zeros(self.nodes, others.shape[1])
        total = total.index_add(0, self.target[~own], others)
        count = torch.bincount(self.target[~own], minlength=self.nodes).clamp_min(1)
        loop = total / count[:, None]
        loop = loop.index_copy(0, self.source[own], self.edge_x[own])
        return torch.cat([others, loop])[order]

    def _scaled(self) -> Adjacency:
        kind = torch.float64 if self.weight is None else self.weight.dtype
        root = self.degree.to(kind).clamp_min(0).rsqrt()
        root = root.masked_fill(~root.isfinite(), 0.0)  # a node without edges
        return self._like(root[self.target] * self.values(kind) * root[self.source])

    def _mean(self) -> Adjacency:
        kind = torch.float64 if self.weight is None else self.weight.dtype
        share = self.degree.to(kind).reciprocal()
        share = share.masked_fill(~share.isfinite(), 0.0)
        return self._like(share[self.target] * self.values(kind), symmetric=False)

    def _is_symmetric(self) -> bool:
        same = torch.equal(self.source, self.target[self.turned])
        if not same or self.weight is None:
            return same
        return torch.equal(self.weight, self.weight[self.turned])


def _by_target(
    edges: Tensor, nodes: int, weight: Tensor | None
) -> tuple[Tensor, Tensor | None]:  # (2, E)
    """Return the sources and weights of edges, sorted by target, then source."""
    keys = edges[1] * nodes + edges[0]
    if weight is None and not keys.is_cuda:  # numpy sorts plain numbers several times as fast
        return torch.from_numpy(np.sort(keys.numpy())).remainder_(max(nodes, 1)), None
    order = torch.argsort(keys)
    return edges[0, order], None if weight is None else weight[order]
