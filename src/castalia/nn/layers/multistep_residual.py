"""Linear multi-step stack: a residual network that remembers one state more.

X_{t+1} = (1 - k_t) X_t + k_t X_{t-1} + F_t(X_t), with learned k_t: a two-step scheme for a
differential equation, of which a residual network is Euler's one-step scheme. With one F and one k
the equation is dX/dt = F / (1 + k).
Reference: 2018, Lu, Zhong, Li, Dong, Beyond finite layer neural networks, ICML, arXiv 1710.10121.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["MultistepResidual"]


class MultistepResidual(nn.Module):
    """Stack of blocks F_t, each added to the last two states.

    Parameters
    ----------
    blocks
        The modules F_t; each keeps the shape of its input.
    k
        Start of every k_t; with 0 the stack is a residual network.

    Attributes
    ----------
    k : Tensor (T - 1,)
        Of every block after the first, which has no state before its input and is a plain residual
        block.

    Examples
    --------
    >>> stack = MultistepResidual([nn.Linear(3, 3), nn.Linear(3, 3)])
    >>> stack(torch.zeros(2, 3)).shape, stack.k
    (torch.Size([2, 3]), Parameter containing:
    tensor([0.], requires_grad=True))
    """

    def __init__(self, blocks: Iterable[nn.Module], *, k: float = 0.0) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        if not len(self.blocks):
            raise InvalidParameter("MultistepResidual: `blocks` must hold a module; got none.")
        self.k = nn.Parameter(torch.full((len(self.blocks) - 1,), float(k)))

    def forward(self, x: Tensor) -> Tensor:
        """Return X_T for X_0 = x."""
        before, now = x, x + self._change(0, x)
        for t, k in enumerate(self.k, start=1):
            before, now = now, (1 - k) * now + k * before + self._change(t, now)
        return now

    def _change(self, t: int, x: Tensor) -> Tensor:
        """Return F_t(x)."""
        change: Tensor = self.blocks[t](x)
        if change.shape != x.shape:
            raise ShapeMismatch(
                f"MultistepResidual: block {t} must keep the shape of its input, "
                f"{tuple(x.shape)}; got {tuple(change.shape)}."
            )
        return change
