"""Where to put the nodes of a drawn graph: layers from the inputs down, few crossings, short edges.

The usual four steps: a layer for every node, invisible nodes where an edge spans several layers, an
order inside the layers by the median of the neighbours, and coordinates that pull neighbours
together without letting nodes overlap.
Reference: 1981, Sugiyama, Tagawa, Toda, Methods for visual understanding of hierarchical system
structures, IEEE Transactions on Systems, Man, and Cybernetics 11.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

__all__ = ["Layout", "lay_out"]

SWEEPS = 12
GAP = 0.35  # between neighbours in a layer


@dataclass(frozen=True)
class Layout:
    """Positions: x grows to the right, y is the number of the layer.

    Attributes
    ----------
    place
        Centre of each node.
    bends
        For each edge, the points through which it passes between its ends.
    width, height
        Of the whole.
    """

    place: Mapping[Hashable, tuple[float, float]]
    bends: Mapping[tuple[Hashable, Hashable], list[tuple[float, float]]]
    width: float
    height: int


def lay_out(
    parents: Mapping[Hashable, Sequence[Hashable]],
    widths: Mapping[Hashable, float],
    late: frozenset[Hashable] = frozenset(),
) -> Layout:
    """Place the nodes of an acyclic graph.

    Parameters
    ----------
    parents
        For each node, in topological order, the nodes it reads.
    widths
        Width of each node.
    late
        Nodes that stand right above their first reader, not as high as they could.

    Examples
    --------
    >>> lay_out({"x": [], "y": ["x"]}, {"x": 1.0, "y": 1.0}).place["y"]
    (0.5, 1)
    """
    layer = _layers(parents, late)
    nodes, edges, routes = _with_bends(parents, layer)
    size: dict[Any, float] = {node: widths.get(node, 0.1) for node in nodes}
    rows: list[list[Any]] = [[] for _ in range(1 + max(layer.values()))]
    for node, at in nodes.items():
        rows[at].append(node)
    _order(rows, edges)
    x = _coordinates(rows, edges, size)
    left = min(x[node] - size[node] / 2 for node in nodes)
    place: dict[Any, tuple[float, float]] = {
        node: (x[node] - left, at) for node, at in nodes.items()
    }
    right = max(place[node][0] + size[node] / 2 for node in nodes)
    bends = {edge: [place[bend] for bend in route] for edge, route in routes.items()}
    return Layout({n: place[n] for n in parents}, bends, right, len(rows))


def _layers(parents: Mapping[Any, Sequence[Any]], late: frozenset[Any]) -> dict[Any, int]:
    """Longest way from a source; late nodes then move down to their first reader."""
    layer: dict[Any, int] = {}
    readers: dict[Any, list[Any]] = {}
    for node, above in parents.items():
        layer[node] = 1 + max((layer[p] for p in above), default=-1)
        for parent in above:
            readers.setdefault(parent, []).append(node)
    for node in reversed(list(parents)):
        if node in late and node in readers:
            layer[node] = min(layer[child] for child in readers[node]) - 1
    lowest = min(layer.values())
    return {node: at - lowest for node, at in layer.items()}


def _with_bends(
    parents: Mapping[Any, Sequence[Any]], layer: dict[Any, int]
) -> tuple[dict[Any, int], list[tuple[Any, Any]], dict[Any, list[Any]]]:
    """Cut edges that span several layers into pieces that span one."""
    nodes, edges, routes = dict(layer), [], {}
    for child, above in parents.items():
        for parent in above:
            route = [(parent, child, at) for at in range(layer[parent] + 1, layer[child])]
            nodes.update({bend: bend[2] for bend in route})
            chain = [parent, *route, child]
            edges += list(zip(chain, chain[1:], strict=False))
            routes[parent, child] = route
    return nodes, edges, routes


def _order(rows: list[list[Any]], edges: list[tuple[Any, Any]]) -> None:
    """Sort every layer by the median place of its neighbours, downwards and upwards in turn."""
    above: dict[Any, list[Any]] = {}
    below: dict[Any, list[Any]] = {}
    for parent, child in edges:
        above.setdefault(child, []).append(parent)
        below.setdefault(parent, []).append(child)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        near = above if down else below
        for i in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            fixed = {node: k for k, node in enumerate(rows[i - 1 if down else i + 1])}
            now = {node: k for k, node in enumerate(rows[i])}

            places = {node: [fixed[n] for n in near.get(node, ())] for node in rows[i]}
            wish = {node: median(places[node] or [now[node]]) for node in rows[i]}
            rows[i].sort(key=wish.__getitem__)


def _coordinates(
    rows: list[list[Any]], edges: list[tuple[Any, Any]], size: dict[Any, float]
) -> dict[Any, float]:
    """Move every node towards the mean of its neighbours, and apart where they would overlap."""
    near: dict[Any, list[Any]] = {}
    for parent, child in edges:
        near.setdefault(child, []).append(parent)
        near.setdefault(parent, []).append(child)
    x: dict[Any, float] = {}
    for row in rows:
        at = 0.0
        for node in row:
            x[node] = at + size[node] / 2
            at += size[node] + GAP
        shift = at / 2
        x.update({node: x[node] - shift for node in row})
    for _ in range(4 * SWEEPS):
        for row in rows:
            wish = [
                sum(x[n] for n in near[node]) / len(near[node]) if node in near else x[node]
                for node in row
            ]
            for node, value in zip(row, _apart(row, wish, size), strict=True):
                x[node] = value
    return x


def _apart(row: list[Any], wish: list[float], size: dict[Any, float]) -> list[float]:
    """Return the places nearest to the wishes (least squares) that keep order and distance.

    With s_k the distance of node k from the first when all stand close, wish_k - s_k must not
    fall: pool neighbours that violate it, as isotonic regression does.
    """
    offset = [0.0]
    for left, right in zip(row, row[1:], strict=False):
        offset.append(offset[-1] + (size[left] + size[right]) / 2 + GAP)
    pools: list[list[float]] = []  # sum, count
    for want, away in zip(wish, offset, strict=True):
        pools.append([want - away, 1.0])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1][0] += total
            pools[-1][1] += count
    level = [total / count for total, count in pools for _ in range(int(count))]
    return [at + away for at, away in zip(level, offset, strict=True)]
