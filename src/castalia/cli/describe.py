"""The table of a system's network, for ``castalia models NAME --describe``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from torch import nn

    from castalia.catalog import System
    from castalia.nn import Summary

__all__ = ["describe"]

OWNER = "castalia models"
# What a row is where nobody says: the shape and the number of outputs.
ROWS = {"table": ((20,), 10), "image": ((3, 224, 224), 1000)}


def describe(
    record: System, size: str | None, input_shape: str | None, outputs: int | None
) -> Summary:
    """Return the table of a system's network at its default or at a published size."""
    from castalia.nn import summary

    if record.data not in ROWS:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a system on {listing(ROWS)} data; `{record.name}` "
            f"takes {record.data} data."
        )
    usual, classes = ROWS[record.data]
    shape = usual if input_shape is None else _shape(input_shape, record.data)
    package, name = record.path.split(":")
    estimator = getattr(import_module(package), name)(**_arguments(record, size))
    try:
        net = _network(estimator, record, shape, classes if outputs is None else outputs)
    except NotImplementedError as error:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a system that is a network; `{record.name}` is "
            "none."
        ) from error
    except (AttributeError, KeyError) as error:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a network that can be built without data; this "
            f"size of `{record.name}` learns a part of its shape in `fit`. Print "
            "`castalia.nn.summary(model.module_, shape)` of a fitted one."
        ) from error
    return summary(net, shape)


def _arguments(record: System, size: str | None) -> Mapping[str, Any]:
    """Return the constructor arguments of a published size."""
    if size is None:
        return {}
    if size not in record.sizes:
        raise InvalidParameter(
            f"{OWNER}: --size must be {listing(record.sizes)} for `{record.name}`; got {size!r}."
            f"{did_you_mean(size, record.sizes)}"
        )
    return record.sizes[size]


def _shape(text: str, data: str) -> tuple[int, ...]:
    """Read a shape such as 3x224x224."""
    parts = text.lower().split("x")
    wanted = {"table": "COLUMNS, such as 20", "image": "CHANNELSxHEIGHTxWIDTH, such as 3x224x224"}
    if len(parts) != len(ROWS[data][0]) or not all(p.isdigit() and int(p) for p in parts):
        raise InvalidParameter(f"{OWNER}: --input must be {wanted[data]}; got {text!r}.")
    return tuple(map(int, parts))


def _network(estimator: Any, record: System, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Build the network without memory for its weights."""
    import torch

    from castalia.protocols import Spec

    if not hasattr(estimator, "_network"):
        raise NotImplementedError
    extra = {"size": list(shape[1:])} if record.data == "image" else {}
    with torch.device("meta"):
        net: nn.Module = estimator._network(Spec(shape[0], outputs, extra=extra))
    return net
