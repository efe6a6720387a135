"""Gated cells: the state is kept, changed or shown as far as gates let it.

LSTM   i, f, o = s(U x + W h- + p * c),  c = f c- + i tanh(U x + W h-),  h = o tanh(c)
       peepholes p are diagonal; the input and forget gates see c-, the output gate sees c
GRU    r, z = s(U x + W h-)
       n = tanh(U x + r (W h-)) or, reset before, tanh(U x + W (r h-))
       h = z h- + (1 - z) n or, where z replaces, (1 - z) h- + z n

All have biases. Shapes: B batch, I inputs, H hidden.
References: 1997, Hochreiter, Schmidhuber, Long short-term memory; 2002, Gers, Schraudolph,
Schmidhuber, Learning precise timing with LSTM; 2017, Greff et al., LSTM: a search space odyssey,
arXiv 1503.04069; 2014, Cho et al., Learning phrase representations, arXiv 1406.1078.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.recurrent.peephole_scan import peephole_scan
from castalia.nn.recurrent.recurrent_cell import Cell, State
from castalia.utils.text import did_you_mean, listing

__all__ = ["GRUCell", "LSTMCell"]

PARTS = {
    "nig": "no input gate: i = 1",
    "nfg": "no forget gate: f = 1",
    "nog": "no output gate: o = 1",
    "niaf": "no input activation: the candidate is not squashed",
    "noaf": "no output activation: h = o c",
}
RESETS = ("after", "before", "none")


class LSTMCell(Cell):
    """Long short-term memory, with peepholes or without some of its parts.

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the state.
    peephole
        Whether gates see the cell.
    without
        Parts left out: ``"nig"``, ``"nfg"``, ``"nog"`` (input, forget, output gate), ``"niaf"``,
        ``"noaf"`` (input, output activation).

    Examples
    --------
    >>> h, (h, c) = LSTMCell(3, 4, peephole=True)(torch.ones(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        peephole: bool = False,
        without: Collection[str] = (),
    ) -> None:
        super().__init__()
        without = (without,) if isinstance(without, str) else tuple(without)
        for part in without:
            if part not in PARTS:
                raise InvalidParameter(
                    f"LSTMCell: `without` must name {listing(PARTS)}; got {part!r}."
                    f"{did_you_mean(part, PARTS)}"
                )
        self.inputs, self.outputs, self.widths = inputs, hidden, (hidden, hidden)
        self.without = frozenset(without)
        # Blocks of rows as in torch: input gate, forget gate, candidate, output gate.
        self.u, self.w = nn.Linear(inputs, 4 * hidden), nn.Linear(hidden, 4 * hidden)
        self.peephole = nn.Parameter(torch.empty(3, hidden)) if peephole else None
        self._start(hidden)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b of the three gates and the candidate, (..., 4 H)."""
        return self.u(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return h and the state (h, c)."""
        h, c = state
        i, f, g, o = (lifted + self.w(h)).chunk(4, dim=-1)
        if self.peephole is not None:
            i, f = i + self.peephole[0] * c, f + self.peephole[1] * c
        candidate = g if "niaf" in self.without else torch.tanh(g)
        kept = c if "nfg" in self.without else torch.sigmoid(f) * c
        c = kept + (candidate if "nig" in self.without else torch.sigmoid(i) * candidate)
        if self.peephole is not None:
            o = o + self.peephole[2] * c
        shown = c if "noaf" in self.without else torch.tanh(c)
        h = shown if "nog" in self.without else torch.sigmoid(o) * shown
        return h, (h, c)

    def scan(self, lifted: Tensor, state: State) -> tuple[Tensor, State] | None:
        """Run the whole peephole LSTM with its gradient written out."""
        if self.peephole is None or self.without or torch.is_autocast_enabled(lifted.device.type):
            return None
        return peephole_scan(lifted, state, self.w.weight, self.w.bias, self.peephole)

    def kernel(self) -> type[nn.RNNBase] | None:
        """Return ``nn.LSTM`` for the plain cell."""
        return None if self.without or self.peephole is not None else nn.LSTM


class GRUCell(Cell):
    """Gated recurrent unit, in torch's form or in the course's.

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the state.
    reset
        Where the reset gate acts: ``"after"`` the matrix, as in torch; ``"before"`` it, as in the
        paper and the course; ``"none"`` leaves the gate out, a unit with one gate.
    replaces
        Whether z = 1 takes the candidate, as in most of the course, instead of keeping the state,
        as in torch. The two are equal under z -> 1 - z.

    Examples
    --------
    >>> h, state = GRUCell(3, 4, reset="before", replaces=True)(torch.ones(2, 3))
    >>> h.shape
    torch.Size([2, 4])
    """

    def __init__(
        self, inputs: int, hidden: int, *, reset: str = "after", replaces: bool = False
    ) -> None:
        super().__init__()
        if reset not in RESETS:
            raise InvalidParameter(
                f"GRUCell: `reset` must be {listing(RESETS)}; got {reset!r}."
                f"{did_you_mean(str(reset), RESETS)}"
            )
        self.inputs, self.outputs, self.widths = inputs, hidden, (hidden,)
        self.reset, self.replaces = reset, replaces
        # Blocks of rows as in torch: reset gate (if any), update gate, candidate.
        blocks = 2 if reset == "none" else 3
        self.u, self.w = nn.Linear(inputs, blocks * hidden), nn.Linear(hidden, blocks * hidden)
        self._start(hidden)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b of the gates and the candidate, (..., 3 H) or (..., 2 H)."""
        return self.u(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return h and the state (h,)."""
        (before,) = state
        *gates, of_x = lifted.chunk(2 if self.reset == "none" else 3, dim=-1)
        hidden = self.outputs
        gates_of_h, of_h = self._from_state(before, len(gates) * hidden)
        opened = torch.sigmoid(torch.cat(gates, dim=-1) + gates_of_h)
        z = opened[..., -hidden:]
        if self.reset == "before":
            r = opened[..., :hidden]
            weight, bias = self.w.weight[2 * hidden :], self.w.bias[2 * hidden :]
            of_h = nn.functional.linear(r * before, weight, bias)
        elif self.reset == "after":
            of_h = opened[..., :hidden] * of_h
        n = torch.tanh(of_x + of_h)
        h = before + z * (n - before) if self.replaces else n + z * (before - n)
        return h, (h,)

    def _from_state(self, before: Tensor, gates: int) -> tuple[Tensor, Tensor]:
        """Return W h- + b of the gates and of the candidate, which waits if reset comes before."""
        if self.reset != "before":
            found = self.w(before)
            return found[..., :gates], found[..., gates:]
        of_gates = nn.functional.linear(before, self.w.weight[:gates], self.w.bias[:gates])
        return of_gates, before

    def kernel(self) -> type[nn.RNNBase] | None:
        """Return ``nn.GRU`` for torch's form."""
        return nn.GRU if self.reset == "after" and not self.replaces else None
