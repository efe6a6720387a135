"""Penalties on what a network makes of its inputs: sparse, small or stable representations.

Omega = alpha (1/B) sum_b Omega(h(x_b)).  Shapes: B batch, D inputs, H code.
References: 2011, Rifai, Vincent, Muller, Glorot, Bengio, Contractive auto-encoders, ICML. 2016,
Goodfellow, Bengio, Courville, Deep learning, chapters 7.10 and 14.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import recording
from castalia.objectives.objective import BatchPenalty
from castalia.protocols import Batch, Encodes

__all__ = ["ActivationSparsity", "CodeNorm", "Contractive"]


class ActivationSparsity(BatchPenalty):
    """Alpha times ||h||_1 of the hidden activations, a mean over rows: few units are active.

    Parameters
    ----------
    alpha
        Strength; larger values leave fewer active units.
    modules
        Modules whose outputs are penalised, by their names in ``net.named_modules()``; None takes
        every activation, one at the output included.

    Examples
    --------
    >>> from castalia.objectives import SquaredError
    >>> net = nn.Sequential(nn.ReLU(), nn.Flatten())
    >>> batch = Batch(torch.tensor([[1.0, -2.0]]), torch.zeros(1, 2))
    >>> terms = (SquaredError() + ActivationSparsity(0.1)).terms(net, batch, "train")
    >>> {name: round(value.item(), 4) for name, value in terms.items()}
    {'loss': 0.6, 'sparsity': 0.1}
    """

    name = "sparsity"

    def __init__(self, alpha: float, modules: Sequence[str] | None = None) -> None:
        self.alpha, self.modules = alpha, modules

    @contextmanager
    def watch(self, net: nn.Module) -> Iterator[list[tuple[str, Tensor, Tensor]]]:
        """Record the activations of the objective's own pass."""
        with recording(net, self.modules) as seen:
            yield seen

    def rows(self, net: nn.Module, batch: Batch, seen: list[tuple[str, Tensor, Tensor]]) -> Tensor:
        """Return alpha ||h||_1 of each row."""
        if not seen:
            raise InvalidParameter(
                "ActivationSparsity: the objective must run the modules it penalises; none of "
                f"{list(self.modules or ['the activations'])} ran."
            )
        rows = {len(h) for _, _, h in seen}
        if isinstance(batch.x, Tensor) and rows != {len(batch.x)}:
            raise ShapeMismatch(
                f"ActivationSparsity: activations must have one row for each of {len(batch.x)} "
                f"inputs; got {sorted(rows)}. Name other modules with `modules=`."
            )
        sizes = [h.abs().flatten(1).sum(dim=1) for _, _, h in seen]  # (B,) each
        return self.alpha * torch.stack(sizes).sum(dim=0)


class CodeNorm(BatchPenalty):
    """Alpha times sum_j |h_j|^q of the code h = encode(x), a mean over rows.

    Parameters
    ----------
    alpha
        Strength.
    q
        Exponent, at least 1: 2 keeps codes small, 1 makes them sparse.
    """

    name = "code_norm"

    def __init__(self, alpha: float, *, q: float = 2.0) -> None:
        if q < 1:
            raise InvalidParameter(f"CodeNorm: `q` must be at least 1; got {q}.")
        self.alpha, self.q = alpha, q

    def rows(self, net: nn.Module, batch: Batch, seen: None) -> Tensor:
        """Return alpha sum_j |h_j|^q of each row."""
        code = _encode(self, net, batch.x)
        return self.alpha * code.abs().pow(self.q).flatten(1).sum(dim=1)


class Contractive(BatchPenalty):
    """Alpha times ||d encode(x) / dx||_F^2, a mean over rows: codes that small changes leave alone.

    Parameters
    ----------
    alpha
        Strength; larger values make the code flatter off the data.

    Notes
    -----
    The Jacobian takes a backward pass for each of the H entries of the code, batched over rows and
    entries: memory grows with B H D. Rows must not mix, so batch normalisation in the encoder must
    be in evaluation mode.
    """

    name = "contractive"

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def rows(self, net: nn.Module, batch: Batch, seen: None) -> Tensor:
        """Return alpha times the squared norm of each row's Jacobian."""
        training = torch.is_grad_enabled()
        with torch.enable_grad():  # validation runs without gradients; this needs them by x
            x = batch.x.detach().requires_grad_()
            code = _encode(self, net, x).flatten(1)  # (B, H)
            each = torch.eye(code.shape[1], dtype=code.dtype, device=code.device)
            each = each.unsqueeze(1).expand(-1, len(code), -1)  # (H, B, H): one entry at a time
            (jacobian,) = torch.autograd.grad(
                code, x, each, create_graph=training, is_grads_batched=True
            )  # (H, B, D)
        return self.alpha * jacobian.square().transpose(0, 1).flatten(1).sum(dim=1)


def _encode(owner: BatchPenalty, net: nn.Module, x: Tensor) -> Tensor:
    """Return the codes (B, …) of a network that has them."""
    if not isinstance(net, Encodes):
        raise InvalidParameter(
            f"{type(owner).__name__}: the network must have a method `encode(x)`; got "
            f"{type(net).__name__}."
        )
    code = net.encode(x)
    if len(code) != len(x):
        raise ShapeMismatch(
            f"{type(owner).__name__}: `encode` must give one code for each of {len(x)} rows; got "
            f"{len(code)}."
        )
    return code
