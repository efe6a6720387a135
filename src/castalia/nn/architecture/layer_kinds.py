"""Words for the layers of a table."""

from typing import Any

from torch import nn

__all__ = ["kind"]


def kind(module: nn.Module) -> str:
    """Say what a layer is, with its sizes where the notes give them.

    >>> kind(nn.Conv2d(1, 5, 3, padding=1)), kind(nn.MaxPool2d(5, 2)), kind(nn.Linear(2800, 6))
    ('conv 3x3, 1->5, s1, p1', 'max pool 5, s2', 'dense 2800->6')
    """
    if isinstance(module, nn.Linear):
        return f"dense {module.in_features}->{module.out_features}"
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return _convolution("conv", module)
    if isinstance(module, nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d):
        return _convolution("transposed conv", module)
    if isinstance(module, nn.MaxPool1d | nn.MaxPool2d | nn.MaxPool3d):
        return _pooling("max", module)
    if isinstance(module, nn.AvgPool1d | nn.AvgPool2d | nn.AvgPool3d):
        return _pooling("mean", module)
    return type(module).__name__


def _convolution(name: str, conv: Any) -> str:
    words = [f"{name} {'x'.join(map(str, conv.kernel_size))}"]
    words.append(f"{conv.in_channels}->{conv.out_channels}")
    words += [f"s{_numbers(conv.stride)}", f"p{_numbers(conv.padding)}"]
    words += [f"d{_numbers(conv.dilation)}"] if set(conv.dilation) != {1} else []
    words += [f"{conv.groups} groups"] if conv.groups != 1 else []
    return ", ".join(words)


def _pooling(name: str, pool: Any) -> str:
    words = f"{name} pool {_numbers(pool.kernel_size)}, s{_numbers(pool.stride)}"
    return words if _numbers(pool.padding) == "0" else f"{words}, p{_numbers(pool.padding)}"


def _numbers(value: object) -> str:
    """Return one number where all axes have the same."""
    if not isinstance(value, tuple):
        return str(value)
    return str(value[0]) if len(set(value)) == 1 else "x".join(map(str, value))
