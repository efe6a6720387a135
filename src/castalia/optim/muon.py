"""Muon: momentum whose matrices are made orthogonal, so that all directions learn at one speed.

B <- mu B + (1 - mu) G,  N = mu B + (1 - mu) G (Nesterov),  W <- (1 - lr lambda) W - lr s U V',
where N = U S V' is the singular value decomposition. Newton-Schulz steps X <- a X + (b A + c A^2) X
with A = X X' push all singular values of X towards 1 without computing them.
Filters (O, C, K, K) are matrices (O, C K K). Biases, scales and what is no matrix of a hidden layer
(embeddings, scores) learn by AdamW or Nesterov momentum in the same optimizer.
References: 2024, Jordan et al., Muon: an optimizer for hidden layers in neural networks; 2025, Liu
et al., Muon is scalable for LLM training, arXiv 2502.16982 (the scale s).
Departs from them: matrices of one shape are treated together, as one batch of products.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from castalia.errors import InvalidParameter
from castalia.optim.vector import check_choice, check_least

__all__ = ["Muon", "orthogonalise"]

A, B, C = 3.4445, -4.7750, 2.0315  # steepest at 0: singular values end between 0.7 and 1.2
SMALL = 1e-7  # norm below which a matrix counts as zero


def orthogonalise(x: Tensor, iterations: int = 5) -> Tensor:  # (…, M, N)
    """Return nearly the U V' of each matrix: its singular values end between about 0.7 and 1.2.

    Parameters
    ----------
    x
        Matrices.
    iterations
        Newton-Schulz steps; each multiplies small singular values by 3.4.

    Examples
    --------
    >>> x = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    >>> values = torch.linalg.svdvals(orthogonalise(x))
    >>> bool((values > 0.6).all() and (values < 1.3).all())
    True
    """
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(SMALL)
    for _ in range(iterations):
        a = x @ x.mT  # the smaller of the two squares
        x = A * x + (B * a + C * a @ a) @ x
    return x.mT if tall else x


class Muon(Optimizer):
    """Orthogonalised momentum for matrices and filters; AdamW or momentum for everything else.

    A group with ``orthogonal`` False is treated as the rest even where it has matrices;
    ``Training(optimizer="muon")`` does so with embeddings and the last layer.

    Parameters
    ----------
    params
        What it updates.
    lr
        Rate. With ``scale="adamw"`` a good one for AdamW is a good one here.
    momentum
        Of the matrices.
    nesterov
        Look ahead along the momentum.
    iterations
        Newton-Schulz steps.
    scale
        s: ``"adamw"`` is 0.2 sqrt(max(M, N)), steps as long as AdamW's; ``"shape"`` is
        sqrt(max(1, M / N)), for rates of their own, around 0.02.
    weight_decay
        lambda, decoupled.
    sphere
        Keep the norm of every matrix at sqrt(M). For layers that a normalisation follows, whose
        length means nothing but slows learning as it grows.
    rest
        ``"adamw"`` or ``"nesterov"``.
    rest_scale
        Factor on the rate of the rest.
    betas, eps
        AdamW's, for the rest; with ``"nesterov"``, the first of the betas is the momentum.

    Examples
    --------
    >>> net = torch.nn.Linear(3, 2)
    >>> optimizer = Muon(net.parameters(), lr=0.1)
    >>> net(torch.ones(1, 3)).sum().backward()
    >>> optimizer.step()
    >>> sorted(optimizer.state[net.weight]), sorted(optimizer.state[net.bias])
    (['momentum_buffer'], ['exp_avg', 'exp_avg_sq', 'step'])
    """

    closure: ClassVar[None] = None
    finds_length: ClassVar[bool] = False

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        *,
        momentum: float = 0.95,
        nesterov: bool = True,
        iterations: int = 5,
        scale: str = "adamw",
        weight_decay: float = 0.0,
        sphere: bool = False,
        rest: str = "adamw",
        rest_scale: float = 1.0,
        betas: tuple[float, float] = (0.9, 0.95),
        eps: float = 1e-8,
    ) -> None:
        check_least(self, "lr", float(lr) if isinstance(lr, Tensor) else lr, 0.0)
        check_least(self, "momentum", momentum, 0.0, below=1.0)
        check_least(self, "iterations", iterations, 1)
        check_least(self, "weight_decay", weight_decay, 0.0)
        check_choice(self, "scale", scale, ("adamw", "shape"))
        check_least(self, "rest_scale", rest_scale, 0.0)
        check_choice(self, "rest", rest, ("adamw", "nesterov"))
        for beta in betas:
            check_least(self, "betas", beta, 0.0, below=1.0)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "nesterov": nesterov,
            "iterations": iterations,
            "scale": scale,
            "weight_decay": weight_decay,
            "sphere": sphere,
            "rest": rest,
            "rest_scale": rest_scale,
            "betas": tuple(betas),
            "eps": eps,
            "orthogonal": True,
            "capturable": True,  # torch then loads counters of steps to the device
        }
        super().__init__(params, defaults)
        if any(hasattr(p, "full_tensor") for group in self.param_groups for p in group["params"]):
            raise InvalidParameter(
                "Muon: a matrix must be whole to be made orthogonal; got sharded parameters. Use "
                "strategy 'ddp', or optimizer 'adamw'."
            )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; the closure is optional.

        Parameters
        ----------
        closure
            Computes the gradients again and returns the loss.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            learnt = [p for p in group["params"] if p.grad is not None]
            matrices = [p for p in learnt if group["orthogonal"] and p.ndim >= 2]
            others = [p for p in learnt if not group["orthogonal"] or p.ndim < 2]
            for alike in _by_shape(matrices):
                self._turn(group, alike)
            if others:
                (self._adamw if group["rest"] == "adamw" else self._momentum)(group, others)
        return loss

    def _turn(self, group: dict[str, Any], matrices: list[Tensor]) -> None:
        """Update matrices of one shape."""
        directions = self._directions(group, matrices, group["momentum"], group["nesterov"])
        flat = torch.stack([d.flatten(1) for d in directions])  # (P, M, N)
        kind = torch.bfloat16 if flat.is_cuda else flat.dtype  # the digits of U V' hardly matter
        turned = orthogonalise(flat.to(kind), group["iterations"]).to(flat.dtype)
        turned *= _scale(group["scale"], *flat.shape[1:])
        moves = [t.view(m.shape) for t, m in zip(turned, matrices, strict=True)]
        _descend(group, matrices, moves, group["lr"])
        if group["sphere"]:
            norms = torch._foreach_norm(matrices)
            torch._foreach_mul_(norms, flat.shape[1] ** -0.5)
            torch._foreach_div_(matrices, norms)

    def _momentum(self, group: dict[str, Any], params: list[Tensor]) -> None:
        beta = group["betas"][0]
        directions = self._directions(group, params, beta, True)
        torch._foreach_mul_(directions, 1 / (1 - beta))  # a sum of gradients, as torch's SGD
        _descend(group, params, directions, group["lr"] * group["rest_scale"])

    def _directions(
        self, group: dict[str, Any], params: list[Tensor], momentum: float, nesterov: bool
    ) -> list[Tensor]:
        """Update the averages of gradients; return where they point."""
        for p in params:
            if not self.state[p]:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        buffers = [self.state[p]["momentum_buffer"] for p in params]
        gradients: list[Any] = [p.grad for p in params]
        torch._foreach_lerp_(buffers, gradients, 1 - momentum)
        ahead = momentum if nesterov else 1.0
        return list(torch._foreach_lerp(gradients, buffers, ahead))

    def _adamw(self, group: dict[str, Any], params: list[Tensor]) -> None:
        for p in params:
            if not self.state[p]:
                self.state[p]["step"] = torch.zeros((), dtype=torch.float32, device=p.device)
                self.state[p]["exp_avg"] = torch.zeros_like(p)
                self.state[p]["exp_avg_sq"] = torch.zeros_like(p)
        states = [self.state[p] for p in params]
        adamw(
            params,
            [p.grad for p in params if p.grad is not None],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [],
            [s["step"] for s in states],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"] * group["rest_scale"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _by_shape(matrices: Iterable[Tensor]) -> Iterable[list[Tensor]]:
    """Group matrices and filters by the shape they have as matrices."""
    groups: dict[Any, list[Tensor]] = {}
    for p in matrices:
        groups.setdefault((len(p), p.numel() // len(p), p.dtype, p.device), []).append(p)
    return groups.values()


def _scale(kind: str, rows: int, columns: int) -> float:
    """Return s: an orthogonal matrix has entries of 1 / sqrt(max(M, N)), AdamW's steps of 0.2."""
    if kind == "adamw":
        return float(0.2 * max(rows, columns) ** 0.5)
    return float(max(1.0, rows / columns) ** 0.5)


def _descend(
    group: dict[str, Any], params: list[Tensor], directions: list[Tensor], rate: Any
) -> None:
    """Shrink parameters by their decay and move them against directions, which are used up."""
    if group["weight_decay"]:
        torch._foreach_mul_(params, 1 - rate * group["weight_decay"])
    torch._foreach_mul_(directions, rate)
    torch._foreach_sub_(params, directions)
