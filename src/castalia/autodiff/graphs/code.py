"""A graph as Python one can read, and run."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from castalia.autodiff.graphs.box import Box
from castalia.autodiff.graphs.box_graph import BoxGraph
from castalia.autodiff.graphs.custom import Applied

__all__ = ["code"]

_INFIX = {
    "aten.add.Tensor": "+",
    "aten.add.Scalar": "+",
    "aten.sub.Tensor": "-",
    "aten.sub.Scalar": "-",
    "aten.mul.Tensor": "*",
    "aten.mul.Scalar": "*",
    "aten.div.Tensor": "/",
    "aten.div.Scalar": "/",
    "aten.pow.Tensor_Scalar": "**",
    "aten.pow.Tensor_Tensor": "**",
    "aten.pow.Scalar": "**",
    "aten.mm.default": "@",
    "aten.bmm.default": "@",
    "aten.mv.default": "@",
}
_METHODS = ("t", "transpose", "reshape", "expand", "permute", "unsqueeze", "squeeze", "detach")


def code(graph: BoxGraph) -> str:
    """Write the graph as a function of its inputs, parameters, buffers and constants.

    Parameters
    ----------
    graph
        What to write. Dots in names become underscores; the module of each run of operations
        stands in a comment.
    """
    names = _names(graph)
    leaves = [names[box] for kind in _KINDS for box in graph.order if box.kind == kind]
    lines = [f"def {graph.name}({', '.join(leaves)}):"]
    module = ""
    for box in graph.order:
        if box.is_leaf:
            continue
        if box.module != module:
            module = box.module
            lines.append(f"    # {module} ({box.module_class})" if module else "    #")
        lines.append(f"    {names[box]} = {_expression(box, names)}")
    lines.append(f"    return {_literal(graph.outputs, names)}")
    text = "\n".join(lines) + "\n"
    head = ["import torch"] + ["aten = torch.ops.aten"] * ("aten." in text)
    return "\n".join([*head, "", "", text])


_KINDS = ("input", "parameter", "buffer", "constant")


def _names(graph: BoxGraph) -> dict[Box, str]:
    """Python names: unique, no dots, no words of the language."""
    names: dict[Box, str] = {}
    taken = {"torch", "aten", graph.name}
    for box in graph.order:
        name = re.sub(r"\W", "_", box.name).lstrip("_") or "box"
        if name[0].isdigit():
            name = f"_{name}"
        while name in taken or not name.isidentifier() or name in _WORDS:
            name += "_"
        taken.add(name)
        names[box] = name
    return names


_WORDS = {
    "lambda",
    "in",
    "is",
    "not",
    "and",
    "or",
    "if",
    "from",
    "import",
    "return",
    "class",
    "del",
}


def _expression(box: Box, names: dict[Box, str]) -> str:
    text = _call(box, names)
    if box.detached and box.operation != "detach":
        text = f"({text}).detach()"
    return text


def _call(box: Box, names: dict[Box, str]) -> str:
    args = [_literal(arg, names) for arg in box.args]
    keys = [f"{key}={_literal(arg, names)}" for key, arg in box.kwargs.items()]
    target = str(box.op)
    if box.op is operator.getitem:
        return f"{args[0]}[{args[1]}]"
    if target in _INFIX and len(args) == 2 and not keys:
        left, right = (f"({arg})" if arg.startswith("-") else arg for arg in args)
        return f"{left} {_INFIX[target]} {right}"
    if target == "aten.neg.default":
        return f"-{args[0]}"
    if box.operation in _METHODS and not keys:
        return f"{args[0]}.{box.operation}({', '.join(args[1:])})"
    return f"{_function(box.op)}({', '.join([*args, *keys])})"


def _function(op: Callable[..., Any] | None) -> str:
    """The public name of an operation where it has one that takes the same arguments."""
    name = str(op)
    packet, _, overload = name.removeprefix("aten.").partition(".")
    public = hasattr(torch, packet) and not packet.startswith("_")
    if name.startswith("aten.") and public and overload in ("default", "Tensor", "dim_IntList"):
        return f"torch.{packet}"
    return f"{op.__name__}.apply" if isinstance(op, Applied) else name


def _literal(arg: Any, names: dict[Box, str]) -> str:
    if isinstance(arg, Box):
        return names[arg]
    if isinstance(arg, list):
        return f"[{', '.join(_literal(part, names) for part in arg)}]"
    if isinstance(arg, tuple):
        inside = ", ".join(_literal(part, names) for part in arg)
        return f"({inside},)" if len(arg) == 1 else f"({inside})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{k!r}: {_literal(v, names)}' for k, v in arg.items())}}}"
    if isinstance(arg, torch.device):
        return f"torch.device({str(arg)!r})"
    if isinstance(arg, float) and arg != arg or arg in (float("inf"), float("-inf")):
        return f"float({str(arg)!r})"
    return repr(arg)
