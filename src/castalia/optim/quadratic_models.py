"""A loss near a point: f(w + d) ~ f + g d + d B d / 2, with B known by its products.

Hessian: B = H, by differentiating the gradient once more (Pearlmutter 1994).
Gauss-Newton: B = J^T H_L J + H_R for a loss L(outputs(w)) + R(w), where J is the Jacobian of the
outputs and R a penalty on the weights: the Hessian without the outputs' own curvature, and positive
semi-definite whenever L and R are convex (Schraudolph 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidParameter

__all__ = ["GaussNewtonModel", "HessianModel", "build_model", "loss_of_answer"]

ROWS = 64  # products taken at once when a whole matrix is built


class HessianModel:
    """Quadratic model of a loss by its Hessian.

    Parameters
    ----------
    loss
        A number with its graph.
    parameters
        What it is differentiated by.

    Attributes
    ----------
    loss, gradient
        At the point; without graph.

    Examples
    --------
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> HessianModel((w[0] ** 2 * w[1]).sum(), [w]).product(torch.tensor([1.0, 0.0]))
    tensor([4., 2.])
    """

    def __init__(self, loss: Tensor, parameters: Sequence[Tensor]) -> None:
        self.parameters = list(parameters)
        self.loss = loss.detach()
        self._slope = _pull(loss, self.parameters, None, graph=True)  # (n,), with graph
        self.gradient = self._slope.detach()

    def product(self, vector: Tensor) -> Tensor:
        """Return H v."""
        return _pull(self._slope, self.parameters, vector)

    def products(self, vectors: Tensor) -> Tensor:  # (k, n)
        """Return H v for every row v."""
        return _pull(self._slope, self.parameters, vectors, batched=True)

    def matrix(self) -> Tensor:
        """Return H, (n, n)."""
        return _matrix(self)


class GaussNewtonModel:
    """Quadratic model of a loss by the generalised Gauss-Newton matrix.

    Parameters
    ----------
    outputs
        What the network computed, with graph.
    loss_of
        From outputs to the loss; it may add a penalty on the parameters.
    parameters
        What is differentiated by.

    Attributes
    ----------
    loss, gradient
        At the point; without graph.

    Examples
    --------
    >>> w = torch.tensor([3.0], requires_grad=True)
    >>> model = GaussNewtonModel(w**2, lambda z: (z**2).sum() / 2, [w])
    >>> model.product(torch.ones(1))  # J = 2 w = 6, H_L = 1
    tensor([36.])
    """

    def __init__(
        self,
        outputs: Tensor,
        loss_of: Callable[[Tensor], Tensor],
        parameters: Sequence[Tensor],
    ) -> None:
        self.parameters = list(parameters)
        self._outputs = outputs
        self._leaf = outputs.detach().requires_grad_()  # cuts the loss off from the network
        loss = loss_of(self._leaf)
        self.loss = loss.detach()
        self._by_outputs = _pull(loss, [self._leaf], None, graph=True)
        self._rest = _pull(loss, self.parameters, None, graph=True)  # of R; zero without penalty
        pulled = _pull(outputs, self.parameters, self._by_outputs.detach().view_as(outputs))
        self.gradient = pulled + self._rest.detach()
        # J^T u as a function of u: it is linear, and its derivative by u turns v into J v.
        self._u = torch.zeros_like(outputs, requires_grad=True)
        self._transposed = _pull(outputs, self.parameters, self._u, graph=True)

    def product(self, vector: Tensor) -> Tensor:
        """Return J^T H_L J v + H_R v."""
        return self._apply(vector, batched=False)

    def products(self, vectors: Tensor) -> Tensor:  # (k, n)
        """Return the product for every row v."""
        return self._apply(vectors, batched=True)

    def matrix(self) -> Tensor:
        """Return the Gauss-Newton matrix, (n, n)."""
        return _matrix(self)

    def _apply(self, v: Tensor, *, batched: bool) -> Tensor:
        pushed = _pull(self._transposed, [self._u], v, batched=batched)  # J v
        bent = _pull(self._by_outputs, [self._leaf], pushed, batched=batched)  # H_L J v
        shape = (len(v), *self._outputs.shape) if batched else self._outputs.shape
        pulled = _pull(self._outputs, self.parameters, bent.view(shape), batched=batched)
        return pulled + _pull(self._rest, self.parameters, v, batched=batched)


def build_model(
    owner: str, closure: Callable[[], Any], parameters: Sequence[Tensor], kind: str
) -> HessianModel | GaussNewtonModel:
    """Evaluate a closure and model its loss.

    Parameters
    ----------
    owner
        Who asks, for messages.
    closure
        Returns the loss, or outputs and the function from them to the loss.
    parameters
        What is differentiated by.
    kind
        ``"hessian"``, ``"gauss_newton"``, or ``"auto"``: the latter where the closure allows.
    """
    with torch.enable_grad():
        answer = closure()
        by_outputs = isinstance(answer, tuple) and len(answer) == 2 and callable(answer[1])
        if kind == "gauss_newton" and not by_outputs:
            raise InvalidParameter(
                f"{owner}.step: `closure` must return (outputs, loss_of): the network's outputs, "
                f"and the function from them to the loss; got {type(answer).__name__}. With a "
                "loss alone, HessianFree uses the Hessian."
            )
        if by_outputs and kind != "hessian":
            return GaussNewtonModel(answer[0], answer[1], parameters)
        loss = loss_of_answer(owner, answer)
        try:
            return HessianModel(loss, parameters)
        except RuntimeError as error:
            if "backward through the graph a second time" not in str(error):
                raise
            raise InvalidParameter(
                f"{owner}.step: `closure` must return the loss without calling `backward()`, which "
                "frees the graph that curvature is computed from."
            ) from error


def loss_of_answer(owner: str, answer: Any) -> Tensor:
    """Return the loss that a closure's answer stands for."""
    loss = answer[1](answer[0]) if isinstance(answer, tuple) and len(answer) == 2 else answer
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        raise InvalidParameter(
            f"{owner}.step: `closure` must return the loss as a tensor of one number, or (outputs, "
            f"loss_of); got {type(loss).__name__}."
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise InvalidParameter(
            f"{owner}.step: `closure` must return a loss that depends on the parameters; got one "
            "without a graph. Return it as it was computed, not detached."
        )
    return loss.reshape(())


def _pull(
    outputs: Tensor,
    inputs: Sequence[Tensor],
    vector: Tensor | None,
    *,
    graph: bool = False,
    batched: bool = False,
) -> Tensor:
    """Pull a vector back: v^T d outputs / d inputs, flat; zero where they do not depend.

    With ``batched`` the vector has a leading axis, and so has the answer.
    """
    rows = (len(vector),) if batched and vector is not None else ()
    found: Sequence[Tensor | None] = [None] * len(inputs)
    if outputs.requires_grad:
        found = torch.autograd.grad(
            outputs,
            inputs,
            vector,
            retain_graph=True,
            create_graph=graph,
            allow_unused=True,
            is_grads_batched=batched,
        )
    pieces = [
        (x.new_zeros(rows + x.shape) if g is None else g).reshape(*rows, -1)
        for g, x in zip(found, inputs, strict=True)
    ]
    return torch.cat(pieces, dim=-1)


def _matrix(model: HessianModel | GaussNewtonModel) -> Tensor:
    """Build a model's matrix row by row, many rows at once; exactly symmetric."""
    identity = torch.eye(
        model.gradient.numel(), dtype=model.gradient.dtype, device=model.gradient.device
    )
    whole = torch.cat([model.products(rows) for rows in identity.split(ROWS)])
    return 0.5 * (whole + whole.T)
