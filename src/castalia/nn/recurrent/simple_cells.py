"""Simple recurrent cells: what is fed back is the hidden state, a context, or the output.

Elman       h = g(U x + W h- + b)
context     h = g(U x + W c- + b),  c = g(U' x + W' c- + b')
output      h = g(U x + W y- + b),  y = V h + c
Jordan      h = g(U x + W k- + b),  y = V h + c,  k = a k- + y
leaky       h = (1 - a) h- + a g(U x + W h- + b)

The minus marks the step before. Shapes: B batch, I inputs, H hidden, O outputs.
References: 1990, Elman, Finding structure in time; 1986, Jordan, Serial order; 2007, Jaeger et al.,
Optimization and applications of echo state networks with leaky-integrator neurons.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn.activations import activation as make_activation
from castalia.nn.recurrent.recurrent_cell import Cell, State

__all__ = ["ContextCell", "ElmanCell", "JordanCell", "LeakyIntegratorCell", "OutputRecurrentCell"]


class ElmanCell(Cell):
    """The hidden state is fed back: h = g(U x + W h- + b).

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the state.
    activation
        The function g.
    through_time
        Whether gradients go through the state before. Without, the state before is a copied input,
        as in Elman's network, where only forward weights are learnt.

    Examples
    --------
    >>> h, state = ElmanCell(3, 4)(torch.ones(2, 3))
    >>> h.shape
    torch.Size([2, 4])
    """

    def __init__(
        self, inputs: int, hidden: int, *, activation: str = "tanh", through_time: bool = True
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.widths = inputs, hidden, (hidden,)
        self.u, self.w = nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)
        self.activation, self.through_time = make_activation(activation), through_time
        self._start(hidden)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b, (..., H)."""
        return self.u(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return h and the state (h,)."""
        (before,) = state
        h = self.activation(lifted + self.w(before if self.through_time else before.detach()))
        return h, (h,)

    def kernel(self) -> type[nn.RNNBase] | None:
        """Return ``nn.RNN`` for tanh and relu."""
        fits = isinstance(self.activation, nn.Tanh | nn.ReLU) and self.through_time
        return nn.RNN if fits else None


class ContextCell(Cell):
    """Hidden state and context are two maps of the input and the context before.

    With equal weights the context is the hidden state, and the cell is Elman's.

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the output.
    context
        Width of the context; None: ``hidden``.
    activation
        The function g.

    Examples
    --------
    >>> h, state = ContextCell(3, 4, context=2)(torch.ones(2, 3))
    >>> h.shape, state[0].shape
    (torch.Size([2, 4]), torch.Size([2, 2]))
    """

    def __init__(
        self, inputs: int, hidden: int, *, context: int | None = None, activation: str = "tanh"
    ) -> None:
        super().__init__()
        context = context or hidden
        self.inputs, self.outputs, self.widths = inputs, hidden, (context,)
        self.u, self.w = nn.Linear(inputs, hidden), nn.Linear(context, hidden, bias=False)
        self.u_context = nn.Linear(inputs, context)
        self.w_context = nn.Linear(context, context, bias=False)
        self.activation = make_activation(activation)
        self._start(hidden)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b and U' x + b', (..., H + C)."""
        return torch.cat([self.u(x), self.u_context(x)], dim=-1)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return h and the state (c,)."""
        (before,) = state
        of_h, of_c = lifted.split([self.outputs, self.widths[0]], dim=-1)
        h = self.activation(of_h + self.w(before))
        return h, (self.activation(of_c + self.w_context(before)),)


class OutputRecurrentCell(Cell):
    """The output is fed back: h = g(U x + W y- + b), y = V h + c.

    Weaker than feeding the hidden state back, as the output must hold all that is remembered. But
    where the outputs of training are known, they can stand for y- (teacher forcing), and all steps
    are computed at once.

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the hidden layer.
    outputs
        Width of the output; None: ``hidden``.
    activation
        The function g.

    Examples
    --------
    >>> y, state = OutputRecurrentCell(3, 4, outputs=2)(torch.ones(5, 3))
    >>> y.shape
    torch.Size([5, 2])
    """

    def __init__(
        self, inputs: int, hidden: int, *, outputs: int | None = None, activation: str = "tanh"
    ) -> None:
        super().__init__()
        outputs = outputs or hidden
        self.inputs, self.outputs, self.widths = inputs, outputs, (outputs,)
        self.u, self.w = nn.Linear(inputs, hidden), nn.Linear(outputs, hidden, bias=False)
        self.v = nn.Linear(hidden, outputs)
        self.activation = make_activation(activation)
        self._start(hidden)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b, (..., H)."""
        return self.u(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return y and the state (y,)."""
        y = self.v(self.activation(lifted + self.w(state[0])))
        return y, (y,)

    def forced(self, x: Tensor, targets: Tensor) -> Tensor:  # (B, T, I), (B, T, O)
        """Return all outputs at once, each fed with the true output before it, (B, T, O)."""
        if targets.shape[:-1] != x.shape[:-1] or targets.shape[-1] != self.outputs:
            raise ShapeMismatch(
                f"OutputRecurrentCell: `targets` must be {(*x.shape[:-1], self.outputs)}; got "
                f"{tuple(targets.shape)}."
            )
        before = torch.cat([torch.zeros_like(targets[:, :1]), targets[:, :-1]], dim=1)
        return self.v(self.activation(self.u(x) + self.w(before)))


class JordanCell(Cell):
    """Outputs are fed back through units that forget slowly: k = a k- + y.

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the hidden layer.
    outputs
        Width of the output; None: ``hidden``.
    memory
        The factor a from 0 to below 1; with 0 the cell is ``OutputRecurrentCell``.
    activation
        The function g.

    Examples
    --------
    >>> y, state = JordanCell(3, 4, outputs=2)(torch.ones(5, 3))
    >>> y.shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        outputs: int | None = None,
        memory: float = 0.5,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        if not 0 <= memory < 1:
            raise InvalidParameter(f"JordanCell: `memory` must be from 0 to below 1; got {memory}.")
        self.inner = OutputRecurrentCell(inputs, hidden, outputs=outputs, activation=activation)
        self.inputs, self.outputs, self.memory = inputs, self.inner.outputs, memory
        self.widths = (self.outputs,)

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b, (..., H)."""
        return self.inner.lift(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return y and the state (k,)."""
        y, _ = self.inner.step(lifted, state)
        return y, (self.memory * state[0] + y,)


class LeakyIntegratorCell(Cell):
    """A state that changes slowly: h = (1 - a) h- + a g(U x + W h- + b).

    Parameters
    ----------
    inputs, hidden
        Widths of the input and of the state.
    leak
        The factor a, above 0 and at most 1; with 1 the cell is Elman's.
    scaled
        Whether g is multiplied by a; without, a constant drive d settles at d / a.
    activation
        The function g.

    Examples
    --------
    >>> h, state = LeakyIntegratorCell(3, 4)(torch.ones(2, 3))
    >>> h.shape
    torch.Size([2, 4])
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        *,
        leak: float = 0.1,
        scaled: bool = True,
        activation: str = "tanh",
    ) -> None:
        super().__init__()
        if not 0 < leak <= 1:
            raise InvalidParameter(
                f"LeakyIntegratorCell: `leak` must be above 0 and at most 1; got {leak}."
            )
        self.inner = ElmanCell(inputs, hidden, activation=activation)
        self.inputs, self.outputs, self.widths = inputs, hidden, (hidden,)
        self.leak, self.scaled = leak, scaled

    def lift(self, x: Tensor) -> Tensor:
        """Return U x + b, (..., H)."""
        return self.inner.lift(x)

    def step(self, lifted: Tensor, state: State) -> tuple[Tensor, State]:
        """Return h and the state (h,)."""
        drive, _ = self.inner.step(lifted, state)
        h: Any = (1 - self.leak) * state[0] + (self.leak if self.scaled else 1.0) * drive
        return h, (h,)
