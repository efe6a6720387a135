"""Which keys each head of an attention gives its weight to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate.attention import Attended, attention_weights
from castalia.evaluate.displays.display import Display
from castalia.evaluate.network_probe import encoded
from castalia.utils.figure_style import INK, dress, heat, label, start
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch import nn

__all__ = ["AttentionMap"]

MOST_LABELS = 40  # of one axis


@dataclass
class AttentionMap(Display):
    """Attention weights of one layer for one row: which key each query takes its values from.

    Parameters
    ----------
    weights
        (heads, Q, K); the weights of a query add up to 1.
    queries, keys
        Their words, or their positions.
    name
        The layer.

    Attributes
    ----------
    ax_, figure_
        What was drawn on; ``axes_`` holds the panels, one a head.

    Examples
    --------
    >>> shown = AttentionMap.from_weights([[0.9, 0.1], [0.2, 0.8]], ["a", "robot"])
    >>> shown.of("robot")
    array([[0.2, 0.8]])
    """

    weights: np.ndarray
    queries: list[str]
    keys: list[str]
    name: str = ""
    axes_: list[Axes] = field(init=False, repr=False)

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        tokens: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
        name: str = "",
    ) -> AttentionMap:
        """Build from a matrix of weights.

        Parameters
        ----------
        weights
            (heads, Q, K) or (Q, K), a tensor or an array.
        tokens
            Words of the queries; None numbers them.
        keys
            Words of the keys; None takes those of the queries where there are as many.
        name
            What it is called.
        """
        table = weights.detach().float().cpu().numpy() if hasattr(weights, "detach") else weights
        table = np.asarray(table, dtype=float)
        table = table[None] if table.ndim == 2 else table
        if table.ndim != 3 or not table.size:
            raise ShapeMismatch(
                "AttentionMap: `weights` must be (heads, queries, keys) or (queries, keys); got "
                f"{np.shape(weights)}."
            )
        queries, count = _words("tokens", tokens, table.shape[1]), table.shape[2]
        if keys is None and len(queries) == count:
            return cls(table, queries, queries, name)
        return cls(table, queries, _words("keys", keys, count), name)

    @classmethod
    def from_network(
        cls,
        net: nn.Module,
        x: Any,
        layer: str | int = 0,
        *,
        row: int = 0,
        tokens: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
    ) -> AttentionMap:
        """Run a batch in evaluation mode and catch the weights; the network is left as it was.

        ``nn.MultiheadAttention``, ``F.scaled_dot_product_attention`` and a softmax over (B, heads,
        Q, K) are recorded, in whatever module they are called.

        Parameters
        ----------
        net
            Any module.
        x
            A batch of inputs on the network's device; several inputs come as a tuple.
        layer
            Which attention: its number in the order of the calls, or the name of its module.
        row
            Which row of the batch.
        tokens, keys
            As for ``from_weights``.
        """
        found = _choose(attention_weights(net, x), layer, type(net).__name__)
        rows = len(found.weights)
        if not -rows <= row < rows:
            raise InvalidParameter(
                f"AttentionMap: `row` must be one of the {rows} rows; got {row}."
            )
        return cls.from_weights(found.weights[row], tokens, keys, found.name)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        layer: str | int = 0,
        *,
        row: int = 0,
        tokens: Sequence[Any] | None = None,
    ) -> AttentionMap:
        """Run rows X through the network of a fitted estimator.

        Parameters
        ----------
        estimator
            A fitted estimator whose network has attention.
        X, y
            Rows as for ``predict``; targets are not needed.
        layer, row, tokens
            As for ``from_network``.
        """
        net, x = encoded("AttentionMap", estimator, X)
        return cls.from_network(net, x, layer, row=row, tokens=tokens)

    def of(self, query: str | int) -> np.ndarray:
        """Return the weights of one query, (heads, K).

        Parameters
        ----------
        query
            Its word, if no other has it, or its position.
        """
        if isinstance(query, str):
            if self.queries.count(query) != 1:
                raise InvalidParameter(
                    "AttentionMap: a query must be a position or a word that occurs once; got "
                    f"{query!r}.{did_you_mean(query, self.queries)}"
                )
            query = self.queries.index(query)
        found: np.ndarray = self.weights[:, query]
        return found

    @property
    def entropy(self) -> np.ndarray:
        """Nats of each query's weights, (heads, Q): 0 for one key alone, log K for all alike."""
        logs = np.log(self.weights, where=self.weights > 0, out=np.zeros_like(self.weights))
        found: np.ndarray = -(self.weights * logs).sum(axis=2)
        return found

    def plot(self, ax: Axes | None = None, *, head: int | None = None) -> AttentionMap:
        """Draw a panel a head; on given axes, one head or the mean over all.

        Parameters
        ----------
        ax
            Where to draw.
        head
            Which head alone; None draws all, or on given axes their mean.
        """
        heads = len(self.weights)
        if head is not None and not 0 <= head < heads:
            raise InvalidParameter(
                f"AttentionMap: `head` must be below the number of heads, {heads}; got {head}."
            )
        if ax is not None or head is not None or heads == 1:
            self.ax_, self.figure_ = start(ax, self._size(1, 1), grid="none")
            self.axes_ = [self.ax_]
            table = self.weights.mean(axis=0) if head is None else self.weights[head]
            self._panel(self.ax_, table, "" if heads == 1 else _title(head))
        else:
            self._heads()
        return self

    def _size(self, across: int, down: int) -> tuple[float, float]:
        side = float(np.clip(0.2 * max(self.weights.shape[1:]), 1.5, 4.2))
        longest = max(len(label(w, 14)) for w in (*self.queries, *self.keys))
        return across * side + 0.5 + 0.075 * longest, down * (side + 0.25) + 0.3 + 0.07 * longest

    def _heads(self) -> None:
        heads = len(self.weights)
        across = min(heads, 4)
        down = -(-heads // across)
        self.ax_, self.figure_ = start(None, self._size(across, down), grid="none")
        self.ax_.remove()
        grid = self.figure_.subplots(down, across, squeeze=False)
        self.axes_ = list(grid.ravel())
        for panel in self.axes_[heads:]:
            panel.remove()
        del self.axes_[heads:]
        for i, panel in enumerate(self.axes_):
            dress(panel, grid="none")
            self._panel(panel, self.weights[i], _title(i))
            panel.tick_params(labelleft=i % across == 0, labelbottom=i + across >= heads)
        self.ax_ = self.axes_[0]

    def _panel(self, ax: Axes, table: np.ndarray, title: str) -> None:
        ax.pcolormesh(
            np.arange(table.shape[1] + 1) - 0.5,
            np.arange(table.shape[0] + 1) - 0.5,
            table,
            cmap=heat(),
            vmin=0,
            vmax=max(float(self.weights.max()), 1e-12),
            rasterized=table.size > 2500,
        )
        ax.invert_yaxis()
        ax.set_aspect("equal")
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0, labelsize=8)
        places, words = _ticks(self.keys)
        ax.set_xticks(places, words, rotation=90)
        ax.set_yticks(*_ticks(self.queries))
        ax.set_title(title, color=INK, size=9.5)


def _title(head: int | None) -> str:
    return "mean over heads" if head is None else f"head {head}"


def _ticks(words: list[str]) -> tuple[np.ndarray, list[str]]:
    places = np.arange(len(words))[:: -(-len(words) // MOST_LABELS)]
    return places, [label(words[i], 14) for i in places]


def _words(owner: str, words: Sequence[Any] | None, count: int) -> list[str]:
    if words is None:
        return [str(i) for i in range(count)]
    if len(words) != count:
        raise ShapeMismatch(
            f"AttentionMap: `{owner}` must have one word for each of {count} positions; got "
            f"{len(words)}."
        )
    return [str(word) for word in words]


def _choose(found: list[Attended], layer: str | int, net: str) -> Attended:
    if not found:
        raise InvalidParameter(
            f"AttentionMap: the network must use attention; {net} called none that is "
            "known. Use from_weights."
        )
    if isinstance(layer, int):
        if not -len(found) <= layer < len(found):
            raise InvalidParameter(
                f"AttentionMap: `layer` must be below the number of attentions, {len(found)}; got "
                f"{layer}."
            )
        return found[layer]
    names = [one.name for one in found]
    if layer not in names:
        raise InvalidParameter(
            f"AttentionMap: `layer` must be {listing(dict.fromkeys(names))}; got "
            f"{layer!r}.{did_you_mean(layer, names)}"
        )
    return found[names.index(layer)]
