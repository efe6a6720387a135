"""What optimizers share that see all parameters as one vector w of R^n."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.optim import Optimizer

from castalia.errors import Diverged, InvalidParameter
from castalia.optim.dynamo import without_dynamo

__all__ = ["VectorOptimizer", "as_float", "check_choice", "check_least", "flatten", "split"]


def flatten(tensors: Iterable[Tensor]) -> Tensor:
    """Join tensors into one vector.

    >>> flatten([torch.ones(2, 1), torch.zeros(1)])
    tensor([1., 1., 0.])
    """
    return torch.cat([t.reshape(-1) for t in tensors])


def split(vector: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Cut a vector into views shaped as the given tensors.

    >>> split(torch.ones(3), [torch.zeros(2, 1), torch.zeros(1)])[0].shape
    torch.Size([2, 1])
    """
    pieces = vector.split([t.numel() for t in like])
    return [piece.view(t.shape) for piece, t in zip(pieces, like, strict=True)]


def as_float(loss: Any) -> float:
    """Return a closure's loss as a plain number."""
    one = loss.numel() == 1 if isinstance(loss, Tensor) else isinstance(loss, int | float)
    if not one:
        got = tuple(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise InvalidParameter(f"step: `closure` must return the loss, one number; got {got}.")
    return float(loss.detach()) if isinstance(loss, Tensor) else float(loss)


class VectorOptimizer(Optimizer):
    """An optimizer whose step is one vector: it takes one parameter group and needs a closure.

    Its memory between steps is kept in the state of the first parameter, so ``state_dict`` holds
    all of it.

    Attributes
    ----------
    closure
        What its closure does. ``"gradients"``: as torch's LBFGS has it, sets the gradients and
        returns the loss. ``"loss"``: returns the loss with its graph, without ``backward()``.
        ``"outputs"``: returns ``(outputs, loss_of)``, the network's outputs and the function from
        them to the loss. ``"either"``: one of the last two.
    finds_length
        Whether it finds the length of its steps, so that ``lr`` is naturally 1.
    """

    closure: ClassVar[str] = "gradients"
    finds_length: ClassVar[bool] = True

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        check_least(self, "lr", defaults["lr"], 0.0)
        with without_dynamo():
            super().__init__(params, defaults)
        kinds = {f"{p.dtype} on {p.device}" for p in self.parameters}
        if len(kinds) > 1 or any(p.is_complex() for p in self.parameters):
            raise InvalidParameter(
                f"{self._name}: parameters must be real, of one type and on one device; got "
                f"{', '.join(sorted(kinds))}."
            )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take the one group there may be."""
        if self.param_groups:
            raise InvalidParameter(
                f"{self._name}: there must be one parameter group; got a second. Its step is one "
                "vector of all parameters, so settings cannot differ between them."
            )
        super().add_param_group(param_group)

    @property
    def parameters(self) -> list[Tensor]:
        """The parameters that may move, in order."""
        return [p for p in self.param_groups[0]["params"] if p.requires_grad]

    @property
    def memory(self) -> dict[str, Any]:
        """What is remembered between steps."""
        return self.state[self.param_groups[0]["params"][0]]

    @property
    def evaluations(self) -> int:
        """Evaluations of the loss or its gradient, and products with curvature, so far."""
        return int(self.memory.get("evaluations", 0))

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _count(self, evaluations: int = 1) -> None:
        self.memory["evaluations"] = self.evaluations + evaluations

    def _place(self) -> Tensor:
        """The parameters as a new vector."""
        return flatten(p.detach() for p in self.parameters)

    def _move_to(self, place: Tensor) -> None:
        live = [p.detach() for p in self.parameters]
        torch._foreach_copy_(live, split(place, live))

    def _gradient(self) -> Tensor:
        return flatten(
            torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in self.parameters
        )

    def _publish(self, gradient: Tensor) -> None:
        """Leave the gradient where others look for it."""
        for parameter, piece in zip(self.parameters, split(gradient, self.parameters), strict=True):
            parameter.grad = piece

    def _closure(self, closure: Callable[[], Any] | None) -> Callable[[], Any]:
        """Count a step, and insist on a closure."""
        if closure is None:
            raise InvalidParameter(
                f"{self._name}.step: `closure` must be given; got None. It evaluates the loss "
                "again at other weights within a step."
            )
        if not self.parameters:
            raise InvalidParameter(
                f"{self._name}.step: there must be a trainable parameter; got "
                f"{len(self.param_groups[0]['params'])} with requires_grad=False."
            )
        self.memory["steps"] = self.memory.get("steps", 0) + 1
        return closure

    def _check_finite(self, loss: float, gradient: Tensor) -> None:
        """Refuse to start a step from a loss or gradient that is no number."""
        finite = bool(torch.isfinite(gradient).all())
        if math.isfinite(loss) and finite:
            return
        term, value = ("gradient", "NaN or inf") if math.isfinite(loss) else ("loss", str(loss))
        step = self.memory["steps"]
        raise Diverged(
            f"{self._name}: the {term} must be finite before a step; got {value} at step {step}. "
            "The weights are as the step found them: check the data and the starting weights.",
            step=step,
            epoch=0,
            term=term,
            lr=float(self.param_groups[0]["lr"]),
        )


def check_least(owner: Any, name: str, value: Any, least: float, below: float = math.inf) -> None:
    """Check that a setting is a number of at least ``least`` and below ``below``."""
    name_of = type(owner).__name__
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value < below:
        upper = "" if below == math.inf else f" and below {below:g}"
        raise InvalidParameter(
            f"{name_of}: `{name}` must be a number of at least {least:g}{upper}; got {value!r}."
        )


def check_choice(owner: Any, name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Check that a setting is one of a few."""
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise InvalidParameter(
            f"{type(owner).__name__}: `{name}` must be one of {choices}; got {value!r}."
        )
