"""The table of a system's network, for ``castalia models NAME --describe``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.utils.text import did_you_mean, listing

if TYPE_CHECKING:
    from torch import nn

    from castalia.catalog import System
    from castalia.nn import Summary

__all__ = ["describe"]

OWNER = "castalia models"
# What a row is where nobody says: the shape and the number of outputs.
ROWS = {"table": ((20,), 10), "image": ((3, 224, 224), 1000), "text": ((128,), 2)}
VOCABULARY = 50_257  # tokens, as GPT-2 has


def describe(
    record: System, size: str | None, input_shape: str | None, outputs: int | None
) -> Summary:
    """Return the table of a system's network at its default or at a published size."""
    import torch

    from castalia.nn import summary

    if record.data not in ROWS:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a system on {listing(ROWS)} data; `{record.name}` "
            f"takes {record.data} data."
        )
    usual, classes = ROWS[record.data]
    package, name = record.path.split(":")
    estimator = getattr(import_module(package), name)(**_arguments(record, size))
    usual = (getattr(estimator, "context", *usual),) if record.data == "text" else usual
    shape = usual if input_shape is None else _shape(input_shape, record.data)
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
    _check_inputs(net, record)
    if record.data != "text":
        return summary(net, shape)
    try:
        return summary(net, shape, dtype=torch.long)
    except ShapeMismatch as error:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a network that reads one row of tokens; that of "
            f"`{record.name}` reads more beside them."
        ) from error


def _check_inputs(net: nn.Module, record: System) -> None:
    """Refuse a network that one row does not run, such as one that answers a text by another."""
    from inspect import Parameter, signature

    given = signature(net.forward).parameters.values()
    wanted = [p.name for p in given if p.default is Parameter.empty and p.kind is not p.VAR_KEYWORD]
    if len(wanted) > 1:
        raise InvalidParameter(
            f"{OWNER}: --describe must be given a network that reads one input; that of "
            f"`{record.name}` reads {listing(wanted, 'and')}."
        )


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
    wanted = {
        "table": "COLUMNS, such as 20",
        "image": "CHANNELSxHEIGHTxWIDTH, such as 3x224x224",
        "text": "TOKENS, such as 128",
    }
    if len(parts) != len(ROWS[data][0]) or not all(p.isdigit() and int(p) for p in parts):
        raise InvalidParameter(f"{OWNER}: --input must be {wanted[data]}; got {text!r}.")
    return tuple(map(int, parts))


def _network(estimator: Any, record: System, shape: tuple[int, ...], outputs: int) -> nn.Module:
    """Build the network without memory for its weights."""
    import torch

    from castalia.base import Estimator
    from castalia.protocols import Spec

    if not isinstance(estimator, Estimator):
        raise NotImplementedError
    extra: dict[str, Any] = {"size": list(shape[1:])} if record.data == "image" else {}
    if record.data == "text":
        extra = {**estimator.adapter.of(estimator).extra, "vocabulary": VOCABULARY}
    with torch.device("meta"):
        net: nn.Module = estimator._network(Spec(shape[0], outputs, extra=extra))
    return net
