"""Faults that are planted into a public script while it runs, by wrapping what it calls of torch.

Each is planted over the doctor's own wrappers, so that the doctor sees what it would see were the
fault a line of the script. Two more are edits of the source: ``SOURCE_FAULTS`` of ``scripts_list``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from evidence.scripts_start import wrap


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    name, words
        A key, and what a reader of the table is told.
    right
        Codes that are a right first answer, the plainest first.
    needs
        What a script must make use of, of ``scripts_traits``; of a set within, any one.
    plant
        Plants it.
    fatal
        Whether a script with it ends in an error.
    """

    name: str
    words: str
    right: tuple[str, ...]
    needs: tuple[str, ...]
    plant: Callable[[], None]
    fatal: bool = False

    def fits(self, traits: set[str]) -> bool:
        """Whether a script with these traits can have it."""
        return all(any(one in traits for one in need.split("|")) for need in self.needs)


FAULTS: dict[str, Fault] = {}


def fault(
    words: str, right: str, needs: str = "optimizer", fatal: bool = False
) -> Callable[[Any], Any]:
    """Put the decorated function into the list."""

    def register(plant: Callable[[], None]) -> Callable[[], None]:
        name = plant.__name__
        needed = tuple(part.strip() for part in needs.split(","))
        FAULTS[name] = Fault(name, words, tuple(right.split()), needed, plant, fatal)
        return plant

    return register


# ---- the optimizer ----


def _optimizers(change: Callable[[list[dict], dict], None]) -> None:
    """Change the parameter groups and the defaults of every optimizer that is made."""
    from torch.optim import Optimizer

    def wrapper(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: Any, params: Any, defaults: Any) -> None:  # noqa: N807
            given = list(params)
            groups = given if given and isinstance(given[0], dict) else [{"params": given}]
            groups = [{**group, "params": _tensors(group["params"])} for group in groups]
            defaults = dict(defaults)
            change(groups, defaults)
            original(optimizer, groups, defaults)

        return __init__

    wrap(Optimizer, "__init__", wrapper)


def _tensors(params: Any) -> list[Any]:
    import torch

    found = [params] if isinstance(params, torch.Tensor) else list(params)
    return [one[1] if isinstance(one, tuple) else one for one in found]


def _rate(factor: float) -> None:
    def change(groups: list[dict], defaults: dict) -> None:
        for one in (*groups, defaults):
            if "lr" in one:
                one["lr"] = one["lr"] * factor

    _optimizers(change)


@fault("the rate × 100", "CST101 CST104 CST105")
def rate_high() -> None:
    _rate(100)


@fault("the rate / 100", "CST102")
def rate_low() -> None:
    _rate(0.01)


@fault("a huge decay of the weights", "CST404", "optimizer, decay")
def decay() -> None:
    def change(groups: list[dict], defaults: dict) -> None:
        for one in (*groups, defaults):
            if "weight_decay" in one:
                # What is added to the gradient counts as much as it; what is not shrinks a step.
                coupled = "betas" in defaults and not defaults.get("decoupled_weight_decay", False)
                one["weight_decay"] = 1.0 if coupled else 0.1 / defaults["lr"]

    _optimizers(change)


@fault("the optimizer of other parameters", "CST110")
def other_parameters() -> None:
    from torch import nn

    def change(groups: list[dict], defaults: dict) -> None:
        for group in groups:
            group["params"] = [nn.Parameter(p.detach().clone()) for p in group["params"]]

    _optimizers(change)


@fault("the first half of the layers frozen", "CST110", "optimizer, layers")
def frozen() -> None:
    def change(groups: list[dict], defaults: dict) -> None:
        tensors = [p for group in groups for p in group["params"] if p.is_leaf]
        for p in tensors[: len(tensors) // 2]:
            p.requires_grad_(False)

    _optimizers(change)


def _weights(change: Callable[[Any], None]) -> None:
    import torch

    def of_groups(groups: list[dict], defaults: dict) -> None:
        with torch.no_grad():
            for p in (p for group in groups for p in group["params"] if p.ndim > 1 and p.is_leaf):
                change(p)

    _optimizers(of_groups)


@fault("all weights zero", "CST108 CST109", "optimizer, layers")
def zero_weights() -> None:
    _weights(lambda p: p.zero_())


@fault("all weights × 30", "CST109 CST101 CST104 CST107", "optimizer, layers")
def large_weights() -> None:
    _weights(lambda p: p.mul_(30))


# ---- modules ----


@fault("biases of -100", "CST106 CST109", "optimizer, layers, ReLU")
def low_biases() -> None:
    import torch
    from torch import nn

    def wrapper(original: Callable[..., None]) -> Callable[..., None]:
        def reset_parameters(module: Any) -> None:
            original(module)
            if module.bias is not None:
                torch.nn.init.constant_(module.bias, -100.0)

        return reset_parameters

    for kind in (nn.Linear, nn.modules.conv._ConvNd):
        wrap(kind, "reset_parameters", wrapper)


@fault("dropout of 0.95", "CST404", "Dropout")
def dropout() -> None:
    from torch import nn
    from torch.nn import functional as F  # noqa: N812

    def made(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(module: Any, p: float = 0.5, inplace: bool = False) -> None:  # noqa: N807
            original(module, 0.95 if p > 0 else p, inplace)

        return __init__

    def called(original: Callable[..., Any]) -> Callable[..., Any]:
        def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            return original(x, 0.95 if p > 0 else p, training, inplace)

        return dropout

    wrap(nn.modules.dropout._DropoutNd, "__init__", made)
    wrap(F, "dropout", called)


@fault("no activations", "CST303 CST402", "ReLU, layers")
def no_activation() -> None:
    import torch
    from torch import nn
    from torch.nn import functional as F  # noqa: N812

    def same(x: Any, *args: Any, **kwargs: Any) -> Any:
        return x

    for name in ("ReLU", "LeakyReLU", "ELU", "GELU", "SiLU"):
        setattr(nn, name, nn.Identity)
    for owner in (F, torch, torch.Tensor):
        for name in ("relu", "relu_", "leaky_relu", "elu", "gelu", "silu"):
            if hasattr(owner, name):
                setattr(owner, name, same)


@fault("the first layer's output detached", "CST110", "optimizer, layers")
def detached() -> None:
    import torch
    from torch import nn

    first: list[nn.Module] = []

    def hook(module: nn.Module, args: Any, output: Any) -> Any:
        if isinstance(module, (nn.Linear, nn.modules.conv._ConvNd, nn.Embedding)):
            if not first and torch.is_grad_enabled():
                first.append(module)
            if first and module is first[0]:
                return output.detach()
        return None

    nn.modules.module.register_module_forward_hook(hook)


# ---- losses ----


def _losses(names: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Change the outputs and targets that losses are given."""
    from torch.nn import functional as F  # noqa: N812

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
            return original(*change(input, target), *args, **kwargs)

        return loss

    for name in names.split():
        wrap(F, name, wrapper)


@fault("softmax before the cross-entropy", "CST301", "cross_entropy|nll_loss")
def softmax_twice() -> None:
    _losses("cross_entropy", lambda x, y: (x.softmax(1), y))
    _losses("nll_loss", lambda x, y: (x.exp(), y))


@fault("squared error of the class numbers", "CST302 CST304 CST306", "cross_entropy of rows")
def class_numbers() -> None:
    from torch.nn import functional as F  # noqa: N812

    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
        return F.mse_loss(input, target.float().unsqueeze(1).expand_as(input))

    F.cross_entropy = loss


@fault("classes numbered from one", "CST306", "cross_entropy of rows|nll_loss of rows", True)
def off_by_one() -> None:
    _losses("cross_entropy", lambda x, y: (x, y if y.is_floating_point() else y + 1))
    _losses("nll_loss", lambda x, y: (x, y + 1))


@fault("targets × 1000", "CST202 CST101 CST102 CST104", "mse_loss of a column")
def large_targets() -> None:
    _losses("mse_loss", lambda x, y: (x, y * 1000))


@fault("a column against a row", "CST304", "mse_loss of a column")
def broadcast() -> None:
    _losses("mse_loss", lambda x, y: (x, y.squeeze(1) if y.ndim == 2 and len(y) > 1 else y))


# ---- data ----


def _batches(change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Change the inputs and labels of every batch that a loader of pairs gives."""
    from torch.utils.data import DataLoader

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def __iter__(loader: Any) -> Iterator[Any]:  # noqa: N807
            for batch in original(loader):
                pair = isinstance(batch, (list, tuple)) and len(batch) == 2
                yield list(change(*batch)) if pair else batch

        return __iter__

    wrap(DataLoader, "__iter__", wrapper)


@fault("inputs × 255", "CST201", "pictures")
def large_inputs() -> None:
    _batches(lambda x, y: (x * 255, y))


@fault("labels of other rows", "CST205 CST403 CST406", "labels, cross_entropy|nll_loss")
def other_labels() -> None:
    import torch

    _batches(lambda x, y: (x, y[torch.randperm(len(y))]))


@fault("batches of one row", "CST113 CST111 CST101 CST115", "loader, labels")
def batch_of_one() -> None:
    _batches(lambda x, y: (x[:1], y[:1]))


@fault("labels in order, not shuffled", "CST209", "shuffled, labels, cross_entropy|nll_loss")
def in_order() -> None:
    from torch.utils.data import DataLoader, RandomSampler

    def wrapper(original: Callable[..., Any]) -> Callable[..., Any]:
        def __iter__(loader: Any) -> Any:  # noqa: N807
            inner = loader.batch_sampler
            if isinstance(getattr(inner, "sampler", None), RandomSampler):
                labels = [int(loader.dataset[i][1]) for i in range(len(loader.dataset))]
                inner.sampler = sorted(range(len(labels)), key=labels.__getitem__)
            return original(loader)

        return __iter__

    wrap(DataLoader, "__iter__", wrapper)


@fault("validation on training rows", "CST206", "loaders, labels")
def leak() -> None:
    import copy

    from torch.utils.data import DataLoader

    first: list[Any] = []

    def wrapper(original: Callable[..., None]) -> Callable[..., None]:
        def __init__(loader: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            first.append(dataset)
            original(loader, copy.copy(first[0]), *args, **kwargs)

        return __init__

    wrap(DataLoader, "__init__", wrapper)


# ---- those of the source ----


@fault("no zero_grad", "CST112", "optimizer, zero_grad")
def no_zero_grad() -> None:
    """Leave the plant to the source."""


@fault("evaluation mode in training", "CST116", "train(), Dropout|BatchNorm")
def eval_mode() -> None:
    """Leave the plant to the source."""
