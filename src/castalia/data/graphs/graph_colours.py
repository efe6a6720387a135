"""The test of Weisfeiler and Lehman: nodes get the colours of their neighbourhoods.

A node's next colour is its own with the multiset of its neighbours'. Graphs whose counts of colours
differ are not isomorphic; where they agree, the test cannot say.
Reference: 1968, Weisfeiler, Lehman, A reduction of a graph to a canonical form, NTI 2.
"""

from __future__ import annotations

import hashlib

import numpy as np

from castalia.data.graphs.graph import Graph

__all__ = ["refined_colours"]


def refined_colours(graph: Graph, colours: list[str], rounds: int) -> list[list[str]]:
    """Return the colours of the nodes at first and after every round, the same in all graphs.

    >>> path, ring = Graph([(0, 1), (1, 2)]), Graph([(0, 1), (1, 2), (2, 0)])
    >>> [len(set(refined_colours(graph, ["a"] * 3, 1)[-1])) for graph in (path, ring)]
    [2, 1]
    """
    edges, found = graph.adjacency, [colours]
    lists = np.split(edges.source.numpy(), edges.pointer[1:-1].numpy())
    for _ in range(rounds):
        now = found[-1]
        around = (",".join(sorted(now[u] for u in near)) for near in lists)
        texts = (f"{own}<{others}" for own, others in zip(now, around, strict=True))
        found.append([hashlib.blake2b(text.encode(), digest_size=8).hexdigest() for text in texts])
    return found
