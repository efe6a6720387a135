"""A recurrent network: a cell along time, stacked, and in both directions.

Where torch has a fused kernel for the cell (Elman with tanh or relu, plain LSTM, torch's GRU), the
whole stack is one call of it; other cells run step by step, with the weights of the input applied
to all steps at once.
Shapes: B batch, T time, I inputs, H outputs of the cell, L depth times directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.recurrent.gated_cells import GRUCell, LSTMCell
from castalia.nn.recurrent.recurrent_cell import Cell, State
from castalia.nn.recurrent.simple_cells import (
    ContextCell,
    ElmanCell,
    JordanCell,
    LeakyIntegratorCell,
    OutputRecurrentCell,
)
from castalia.utils.text import did_you_mean, listing

__all__ = ["CELLS", "Recurrent"]

CELLS: dict[str, Callable[[int, int], Cell]] = {
    "elman": ElmanCell,
    "context": ContextCell,
    "jordan": JordanCell,
    "output": OutputRecurrentCell,
    "leaky": LeakyIntegratorCell,
    "lstm": LSTMCell,
    "gru": GRUCell,
}
MERGES = ("concat", "sum", "mean")
LONGEST = 1 << 15  # steps of one call of a kernel; cuDNN refuses more than 65,535


class Recurrent(nn.Module):
    """A cell along time.

    Parameters
    ----------
    cell
        A name of ``CELLS``, or what makes a cell from the widths of input and state, such as
        ``LSTMCell`` or ``partial(LSTMCell, peephole=True)``.
    inputs, hidden
        Widths of the input and of the state.
    depth
        Layers; each reads the outputs of the one below.
    bidirectional
        Whether a second cell of each layer reads from the end.
    merge
        How the two directions of the last layer become one: ``"concat"``, ``"sum"`` or ``"mean"``.
    dropout
        Probability for the outputs of all layers but the last.
    learned_state
        Whether the first state is learnt instead of zero.
    fused
        Whether torch's kernel is used where there is one, and gradients that are written out (the
        peephole LSTM's, of sequences without padding).

    Examples
    --------
    >>> net = Recurrent("lstm", 3, 4, depth=2, bidirectional=True)
    >>> y, state = net(torch.ones(2, 5, 3))
    >>> y.shape, [part.shape for part in state]
    (torch.Size([2, 5, 8]), [torch.Size([4, 2, 4]), torch.Size([4, 2, 4])])
    """

    def __init__(
        self,
        cell: str | Callable[[int, int], Cell],
        inputs: int,
        hidden: int,
        *,
        depth: int = 1,
        bidirectional: bool = False,
        merge: str = "concat",
        dropout: float = 0.0,
        learned_state: bool = False,
        fused: bool = True,
    ) -> None:
        super().__init__()
        make = _maker(cell)
        if merge not in MERGES:
            raise InvalidParameter(f"Recurrent: `merge` must be {listing(MERGES)}; got {merge!r}.")
        if depth < 1:
            raise InvalidParameter(
                f"Recurrent: `depth` must be a whole number from 1; got {depth}."
            )
        first = make(inputs, hidden)
        self.inputs, self.depth, self.merge, self.dropout = inputs, depth, merge, dropout
        self.directions = 2 if bidirectional else 1
        self.widths, self.width = first.widths, first.outputs  # of the state, of an output
        self.outputs = first.outputs * (self.directions if merge == "concat" else 1)
        self.fused = fused
        kernel: Any = first.kernel() if fused else None
        self.kernel: nn.RNNBase | None = None
        self.cells = nn.ModuleList()
        if kernel is not None:
            relu = isinstance(getattr(first, "activation", None), nn.ReLU)
            kind = {"nonlinearity": "relu"} if relu else {}
            self.kernel = kernel(
                inputs,
                hidden,
                depth,
                batch_first=True,
                dropout=dropout if depth > 1 else 0.0,
                bidirectional=bidirectional,
                **kind,
            )
        else:
            above = first.outputs * self.directions
            for layer in range(depth):
                for _ in range(self.directions):
                    fresh = (
                        first if not len(self.cells) else make(above if layer else inputs, hidden)
                    )
                    self.cells.append(fresh)
        self.first_state: nn.ParameterList | None = None
        if learned_state:
            rows = depth * self.directions
            self.first_state = nn.ParameterList(torch.zeros(rows, 1, w) for w in self.widths)

    def forward(
        self, x: Tensor, state: State | None = None, *, lengths: Tensor | None = None
    ) -> tuple[Tensor, State]:  # (B, T, I)
        """Return outputs, (B, T, outputs), and the last state, parts of (L, B, width).

        Parameters
        ----------
        x
            Sequences.
        state
            To go on from; None: the first state. Layer by layer, forwards before backwards.
        lengths
            Steps of each row, (B,), from 1; None: all. Outputs after the end are zero, and the last
            state is that of the last step.
        """
        if x.ndim != 3 or x.shape[-1] != self.inputs:
            raise ShapeMismatch(
                f"Recurrent: `x` must be (B, T, {self.inputs}); got {tuple(x.shape)}."
            )
        state = self.start(x) if state is None else tuple(state)
        run = self._steps if self.kernel is None else self._kernel
        out, state = run(x, state, lengths)
        if self.directions == 1 or self.merge == "concat":
            return out, state
        both = out.unflatten(-1, (2, self.width))
        return (both.sum(dim=-2) if self.merge == "sum" else both.mean(dim=-2)), state

    def start(self, x: Tensor) -> State:
        """Return the first state for the rows of x, parts of (L, B, width)."""
        rows = self.depth * self.directions
        if self.first_state is None:
            return tuple(x.new_zeros(rows, len(x), width) for width in self.widths)
        return tuple(part.expand(-1, len(x), -1).contiguous() for part in self.first_state)

    def _kernel(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """Run torch's kernel."""
        net: Any = self.kernel
        given: Any = state if len(state) > 1 else state[0]
        if lengths is not None:
            packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            out, last = net(packed, given)
            out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
        elif self.directions == 2 or x.shape[1] <= LONGEST:
            out, last = net(x, given)
        else:
            parts, last = [], given
            for some in x.split(LONGEST, dim=1):
                part, last = net(some, last)
                parts.append(part)
            out = torch.cat(parts, dim=1)
        return out, last if isinstance(last, tuple) else (last,)

    def _steps(self, x: Tensor, state: State, lengths: Tensor | None) -> tuple[Tensor, State]:
        """Run the cells step by step."""
        last: list[State] = []
        for layer in range(self.depth):
            parts = []
            for way in range(self.directions):
                row = layer * self.directions + way
                begin = tuple(part[row] for part in state)
                cell: Any = self.cells[row]
                run = _scanned if self.fused and lengths is None else _along
                out, end = run(cell, x, begin, lengths, backwards=way == 1)
                parts.append(out)
                last.append(end)
            x = torch.cat(parts, dim=-1)
            if self.dropout and layer < self.depth - 1:
                x = nn.functional.dropout(x, self.dropout, self.training)
        return x, tuple(torch.stack(part) for part in zip(*last, strict=True))


def _along(
    cell: Cell, x: Tensor, state: State, lengths: Tensor | None, *, backwards: bool
) -> tuple[Tensor, State]:
    """Run one cell along time, (B, T, I) to (B, T, H); backwards begins at each row's end."""
    steps = x.shape[1]
    lifted = cell.lift(x)
    going = None if lengths is None else lengths.to(x.device)[:, None]  # (B, 1)
    order = range(steps - 1, -1, -1) if backwards else range(steps)
    out: list[Any] = [None] * steps
    for t in order:
        y, new = cell.step(lifted[:, t], state)
        if going is not None:
            inside = t < going
            y = torch.where(inside, y, 0.0)
            new = tuple(torch.where(inside, a, b) for a, b in zip(new, state, strict=True))
        out[t], state = y, new
    return torch.stack(out, dim=1), state


def _scanned(
    cell: Cell, x: Tensor, state: State, lengths: Tensor | None, *, backwards: bool
) -> tuple[Tensor, State]:
    """Run a cell with its gradient written out, where it has that; else step by step."""
    lifted = cell.lift(x.flip(1) if backwards else x)
    found = cell.scan(lifted, state)
    if found is None:
        return _along(cell, x, state, lengths, backwards=backwards)
    out, last = found
    return (out.flip(1) if backwards else out), last


def _maker(cell: str | Callable[[int, int], Cell]) -> Callable[[int, int], Cell]:
    if callable(cell):
        return cell
    if cell not in CELLS:
        raise InvalidParameter(
            f"Recurrent: `cell` must be {listing(CELLS)}, or what makes a cell; got {cell!r}."
            f"{did_you_mean(str(cell), CELLS)}"
        )
    return CELLS[cell]
