"""The loss functions of torch, and what a call of one shows.

The modules of ``torch.nn`` call these functions, so that wrapping the functions sees both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from castalia.diagnose.thresholds import limit

__all__ = ["LOSSES", "LossCall", "failed", "watched_loss"]

LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
)
_OF_CLASSES = ("cross_entropy", "nll_loss", "ctc_loss", "multi_margin_loss")
_BROADCASTING = ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")
_IGNORED = -100  # torch's default of `ignore_index`


@dataclass(slots=True)
class LossCall:
    """One call of a loss function.

    Attributes
    ----------
    name
        The function, such as ``"cross_entropy"``.
    loss
        What it returned.
    outputs, targets
        Its first two arguments.
    reduction
        ``"mean"``, ``"sum"`` or ``"none"``.
    ignored
        The target that is left out of the mean.
    """

    name: str
    loss: Tensor
    outputs: Tensor
    targets: Tensor
    reduction: str = "mean"
    ignored: int = _IGNORED

    @property
    def items(self) -> int:
        """How many terms the mean of the loss would have."""
        return self.targets.numel() if self.name in _OF_CLASSES else self.outputs.numel()

    def detached(self) -> LossCall:
        """Return the call without its graph."""
        return LossCall(
            self.name,
            self.loss.detach(),
            self.outputs.detach(),
            self.targets.detach(),
            self.reduction,
            self.ignored,
        )

    def mean(self) -> Tensor:
        """Return the loss an item, whatever the reduction was."""
        if self.reduction == "sum":
            return self.loss / max(self.items, 1)
        return self.loss.mean()

    def right(self) -> tuple[Tensor, Tensor | int] | None:
        """Return how many predictions are right, and of how many; None where it is not known."""
        outputs, targets = self.outputs, self.targets
        if self.name in ("cross_entropy", "nll_loss"):
            if outputs.ndim != 2 or targets.ndim != 1 or targets.is_floating_point():
                return None
            counted = targets != self.ignored
            return ((outputs.argmax(1) == targets) & counted).sum(), counted.sum()
        if self.name.startswith("binary_cross_entropy") and outputs.shape == targets.shape:
            even = limit("chance.even")
            middle = 0.0 if self.name.endswith("logits") else even
            return ((outputs > middle) == (targets > even)).sum(), targets.numel()
        return None


def read(name: str, loss: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> LossCall | None:
    """Return a call from its arguments; None where they are no tensors."""
    outputs, targets = _arguments(args, kwargs)
    if not all(isinstance(x, Tensor) for x in (loss, outputs, targets)):
        return None
    summed = kwargs.get("size_average") is False or kwargs.get("reduction") == "sum"
    reduction = "sum" if summed else kwargs.get("reduction", "mean")
    ignored = kwargs.get("ignore_index", _IGNORED)
    return LossCall(name, loss, outputs, targets, reduction, ignored)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    outputs = args[0] if args else kwargs.get("input", kwargs.get("log_probs"))
    targets = args[1] if len(args) > 1 else kwargs.get("target", kwargs.get("targets"))
    return outputs, targets


def failed(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> tuple[str, Tensor | None, Tensor | None]:
    """Return a sentence about a loss that raised, and the tensors it was given."""
    given = [x if isinstance(x, Tensor) else None for x in _arguments(args, kwargs)]
    shapes = [
        f"{what} {_described(x)}"
        for what, x in zip(("outputs", "targets"), given, strict=True)
        if x is not None
    ]
    words = f"`{name}` raised {type(error).__name__} on {' and '.join(shapes) or 'no tensors'}."
    return words, given[0], given[1]


def _described(x: Tensor) -> str:
    kind = str(x.dtype).removeprefix("torch.")
    words = f"of shape {tuple(x.shape)} ({kind}"
    try:
        low, high = x.detach().aminmax()
        return f"{words}, from {low.item():.4g} to {high.item():.4g})"
    except Exception:  # empty, or a device that has given up after the error
        return f"{words})"


def _differ(outputs: Any, targets: Any) -> bool:
    return getattr(outputs, "shape", None) != getattr(targets, "shape", None)


def _warned(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a loss that is going to warn, and let the warning point at the script's line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = original(*args, **kwargs)
    for one in caught:
        warnings.warn(one.message, one.category, stacklevel=3)
    return result


Seen = Callable[[LossCall], None]
Failed = Callable[[str, tuple[Any, ...], dict[str, Any], Exception], None]


def watched_loss(
    name: str, original: Callable[..., Any], watching: Callable[[], bool], seen: Seen, fault: Failed
) -> Callable[..., Any]:
    """Return a loss function that reports what it was given and what it returned."""
    inside = False  # a tensor subclass makes the function call itself

    def loss(*args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if torch.compiler.is_compiling() or inside or not watching():
            return original(*args, **kwargs)
        inside = True
        try:
            if name in _BROADCASTING and _differ(*_arguments(args, kwargs)):
                result = _warned(original, args, kwargs)
            else:
                result = original(*args, **kwargs)
        except Exception as error:
            fault(name, args, kwargs, error)
            raise
        finally:
            inside = False
        call = read(name, result, args, kwargs)
        if call is not None:
            seen(call)
        return result

    # What torch.jit.script looks for in order to compile the original.
    loss.__dict__.update({"__original_fn": original, "__script_if_tracing_wrapper": True})
    return loss
