"""A stack of recurrent layers: plain or residual, one way or both, gradients truncated or not.

Where a layer is residual, h = x + f(x). Truncated, the state goes on and its gradient does not: it
goes back so many steps at most.
Shapes: B batch, T time, I inputs, H outputs.
Reference: 1990, Williams, Peng, An efficient gradient-based algorithm for on-line training of
recurrent network trajectories (truncation); 2016, Wu et al., arXiv 1609.08144 (residual stacks);
2018, Tallec, Ollivier, Can recurrent neural networks warp time?, arXiv 1804.11188 (memory).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.recurrent import (
    Cell,
    ElmanCell,
    GRUCell,
    JordanCell,
    LSTMCell,
    OutputRecurrentCell,
    Recurrent,
)
from castalia.utils.text import did_you_mean, listing

__all__ = ["CELL_NAMES", "RecurrentStack"]

_CELLS: dict[str, Callable[..., Cell]] = {
    "elman": ElmanCell,
    "jordan": JordanCell,
    "output": OutputRecurrentCell,
    "lstm": LSTMCell,
    "peephole": partial(LSTMCell, peephole=True),
    "gru": GRUCell,
}
CELL_NAMES = tuple(_CELLS)
FORGET_BIAS = 1.0  # so that an LSTM begins by keeping what it has (2000, Gers et al.)

States = list[tuple[Tensor, ...]]


class RecurrentStack(nn.Module):
    """Recurrent layers above each other.

    Parameters
    ----------
    inputs
        Width of a step.
    cell
        ``"elman"``, ``"jordan"``, ``"output"``, ``"lstm"``, ``"peephole"`` or ``"gru"``.
    hidden
        Width of the state of each layer and direction.
    depth
        Layers.
    bidirectional
        Whether each layer also reads from the end.
    residual
        Whether each layer but the first adds to what it reads.
    dropout
        Probability between layers.
    without
        Parts that an LSTM is left without: ``"nig"``, ``"nfg"``, ``"nog"``, ``"niaf"``, ``"noaf"``.
    truncate
        Steps that gradients go back; None: all.
    memory
        Steps that the units of an LSTM or GRU begin by remembering, each its own number up to this:
        forget gates start at log(u), u between 1 and memory - 1, input gates at -log(u). None: a
        few.

    Examples
    --------
    >>> net = RecurrentStack(3, cell="gru", hidden=4, depth=2, bidirectional=True)
    >>> y, states = net(torch.ones(2, 5, 3))
    >>> y.shape
    torch.Size([2, 5, 8])
    """

    def __init__(
        self,
        inputs: int,
        *,
        cell: str = "lstm",
        hidden: int = 64,
        depth: int = 1,
        bidirectional: bool = False,
        residual: bool = False,
        dropout: float = 0.0,
        without: Collection[str] = (),
        truncate: int | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__()
        if truncate is not None and bidirectional:
            raise InvalidParameter(
                "RecurrentStack: `truncate` must be None where layers read from the end too; got "
                f"{truncate}."
            )
        self.truncate, self.bidirectional, self.dropout = truncate, bidirectional, dropout
        make = partial(Recurrent, _maker(cell, without), bidirectional=bidirectional)
        above = hidden * (2 if bidirectional else 1)
        if residual:
            widths = [inputs, *[above] * (depth - 1)]
            layers = [make(width, hidden) for width in widths]
        else:
            layers = [make(inputs, hidden, depth=depth, dropout=dropout if depth > 1 else 0.0)]
        self.layers = nn.ModuleList(layers)
        self.outputs = above
        _remember(self, memory)

    def forward(
        self, x: Tensor, states: States | None = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, States]:  # (B, T, I)
        """Return outputs, (B, T, H), and the states after the last step.

        Parameters
        ----------
        x
            Steps.
        states
            To go on from; None: zero.
        lengths
            Real steps of each row, (B,). Only reading from the end needs them: padding comes after
            all that a step may depend on otherwise.
        """
        if self.truncate is None:
            return self._run(x, states, lengths)
        parts = []
        for part in x.split(self.truncate, dim=1):
            out, states = self._run(part, _detached(states), None)
            parts.append(out)
        return torch.cat(parts, dim=1), states or []

    def _run(
        self, x: Tensor, states: States | None, lengths: Tensor | None
    ) -> tuple[Tensor, States]:
        known = lengths if self.bidirectional else None
        last: States = []
        for number, layer in enumerate(self.layers):
            y = nn.functional.dropout(x, self.dropout, self.training) if number else x
            out, state = layer(y, None if states is None else states[number], lengths=known)
            x = x + out if number else out
            last.append(state)
        return x, last


def _detached(states: States | None) -> States | None:
    return None if states is None else [tuple(p.detach() for p in state) for state in states]


def _maker(cell: str, without: Collection[str]) -> Callable[[int, int], Cell]:
    """Return what makes a cell from widths."""
    if cell not in _CELLS:
        raise InvalidParameter(
            f"RecurrentStack: `cell` must be {listing(_CELLS)}; got {cell!r}."
            f"{did_you_mean(str(cell), _CELLS)}"
        )
    if without and cell not in ("lstm", "peephole"):
        raise InvalidParameter(
            f"RecurrentStack: `without` must be empty for the cell {cell!r}, which has no such "
            f"parts; got {tuple(without)!r}. Use cell='lstm'."
        )
    return partial(_CELLS[cell], without=without) if without else _CELLS[cell]


def _remember(net: nn.Module, memory: int | None) -> None:
    """Set the biases of gates, so that cells begin by keeping their state."""
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.LSTM | LSTMCell):
                for bias in _biases(module):
                    _keep(bias.chunk(4)[1], memory)
                    if memory is not None:
                        bias.chunk(4)[0].copy_(-bias.chunk(4)[1])
            elif isinstance(module, nn.GRU | GRUCell) and memory is not None:
                for bias in _biases(module):
                    _keep(bias.chunk(3)[1], memory)


def _biases(module: Any) -> list[Any]:
    """Return the biases of what a cell or kernel reads, one a layer and direction."""
    if isinstance(module, nn.RNNBase):
        return [p for name, p in module.named_parameters() if "bias_ih" in name]
    return [module.u.bias]


def _keep(gate: Tensor, memory: int | None) -> None:
    if memory is None:
        gate.fill_(FORGET_BIAS)
    else:
        gate.uniform_(1, max(memory - 1, 1)).log_()
