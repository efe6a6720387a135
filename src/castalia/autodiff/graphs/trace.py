"""Tracing: any PyTorch function or module as a graph of boxes."""

from __future__ import annotations

import operator
import re
import traceback
from collections.abc import Callable
from typing import Any

import torch.utils._pytree as pytree
from torch import Tensor, fx

from castalia.autodiff.functional_calls import differentiating
from castalia.autodiff.graphs.box import Box, Source, any_layout
from castalia.autodiff.graphs.computation_graph import Graph
from castalia.autodiff.graphs.fx_capture import Note, capture, user_line
from castalia.autodiff.graphs.lift import Lifted, Slot, lift
from castalia.errors import CastaliaError, InvalidData
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["trace"]

_ALIASES = ("aten.lift_fresh_copy.default", "aten.lift_fresh.default", "aten.alias.default")


@differentiating()
def trace(fn: Callable[..., Any], *inputs: Any, random_state: int = 0, **keywords: Any) -> Graph:
    """Record a function or module as a graph that can be run forwards and backwards.

    The function is run once on the inputs under torch's own tracer, so Python's loops and branches
    are gone: a recurrent network becomes one long graph. The graph holds for inputs of these shapes
    and types. The module is left as it was, buffers of batch normalisation included.

    Parameters
    ----------
    fn
        A function of tensors or an ``nn.Module``. Parameters of a module, also of modules that a
        function uses, become leaves of the graph under their own names.
    inputs
        What to call it with; tensors may be nested in tuples, lists and dicts, other values are
        taken as they are.
    random_state
        Seed for dropout and whatever else is drawn; every pass draws the same numbers.
    keywords
        Keyword arguments of the call; ``fprop`` takes them by these names.

    Returns
    -------
    Graph
        With the values of this first pass in its boxes.

    Examples
    --------
    >>> import torch
    >>> net = torch.nn.Linear(2, 1)
    >>> graph = trace(net, torch.ones(3, 2))
    >>> [box.name for box in graph.order]
    ['weight', 'bias', 'input', 't', 'addmm']
    """
    lifted = lift(fn, inputs, keywords)
    shape: list[Any] = []  # how the outputs are nested, found while tracing

    def flat(*tensors: Tensor) -> list[Any]:
        out, structure = pytree.tree_flatten(lifted(*tensors))
        shape[:] = [structure, out]
        return [part for part in out if isinstance(part, Tensor)]

    device = next((t.device for _, _, t in lifted.leaves), "cpu")
    with seed_scope(seed_from(random_state), device):
        module = _captured(flat, lifted)
    structure, out = shape
    if not any(isinstance(part, Tensor) for part in out):
        raise InvalidData(_no_tensor(fn, out))
    graph = _graph(module, lifted, out, structure, _name_of(fn))
    graph.run()
    return graph


def _captured(flat: Callable[..., Any], lifted: Lifted) -> fx.GraphModule:
    try:
        return capture(flat, lifted.copies(), lifted.modules)
    except CastaliaError:
        raise
    except Exception as error:
        if "does not require grad" not in str(error):
            raise _explained(error, lifted) from error
    try:  # the function itself differentiates by what it was given
        return capture(flat, lifted.copies(differentiable=True), lifted.modules)
    except Exception as error:
        raise _explained(error, lifted) from error


def _graph(module: fx.GraphModule, lifted: Lifted, out: Any, structure: Any, name: str) -> Graph:
    boxes: dict[fx.Node, Any] = {}
    leaves = iter(lifted.leaves)
    tensors: dict[Box, Tensor] = {}
    slots: list[Box] = []
    for node in module.graph.nodes:
        if node.op == "placeholder":
            leaf, kind, tensor = next(leaves)
            boxes[node] = _leaf(leaf, kind, tensor)
            if kind != "input":
                boxes[node].module, boxes[node].module_class = lifted.owner(leaf)
            slots.append(boxes[node])
            tensors[boxes[node]] = tensor
        elif node.op == "get_attr":
            tensor = getattr(module, node.target)
            kind = "parameter" if tensor.requires_grad else "constant"  # hidden in some object
            number = sum(box.name.startswith(f"{kind}_") for box in tensors)
            boxes[node] = _leaf(f"{kind}_{number}", kind, tensor)
            tensors[boxes[node]] = tensor
        elif node.op == "call_function":
            boxes[node] = _operation(node, boxes)
    results = iter(_ends(module, boxes))
    outputs = [next(results) if isinstance(part, Tensor) else part for part in out]
    arguments = pytree.tree_map_only(Slot, lambda slot: slots[slot.index], lifted.arguments)
    kept = _used([*dict.fromkeys(boxes.values())], outputs)
    tensors = {box: tensor for box, tensor in tensors.items() if box in kept}
    return Graph(
        kept,
        pytree.tree_unflatten(outputs, structure),
        tensors,
        arguments=tuple(arguments),
        keywords=lifted.keywords,
        name=name,
    )


def _ends(module: fx.GraphModule, boxes: dict[fx.Node, Any]) -> list[Box]:
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    found = output.args[0]
    return [boxes[node] for node in (found if isinstance(found, list | tuple) else [found])]


def _leaf(name: str, kind: str, tensor: Tensor) -> Box:
    return Box(name, kind, shape=tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)


def _operation(node: fx.Node, boxes: dict[fx.Node, Any]) -> Box:
    """Turn a node into a box; copies that only torch's machinery made are the box they copy."""
    note: Note = node.meta.get("note", Note("", "", None, False, None))
    if str(node.target) in _ALIASES or node.meta.get("saved"):
        return boxes[node.args[0]]  # type: ignore[index]
    args = fx.node.map_arg(node.args, lambda n: boxes[n])
    kwargs = fx.node.map_arg(node.kwargs, lambda n: boxes[n])
    return Box(
        node.name,
        op=any_layout(node.target),
        args=_plain(args),
        kwargs=_plain(kwargs),
        module=note.module,
        module_class=note.module_class,
        source=note.source,
        detached=note.detached and node.target is not operator.getitem,
        state=note.state,
    )


def _plain(arg: Any) -> Any:
    """Lists and dicts of torch.fx as Python's own."""
    if isinstance(arg, tuple):
        return tuple(_plain(part) for part in arg)
    if isinstance(arg, list):
        return [_plain(part) for part in arg]
    if isinstance(arg, dict):
        return {name: _plain(part) for name, part in arg.items()}
    return arg


def _used(boxes: list[Box], outputs: list[Any]) -> list[Box]:
    """Keep the leaves that have a name of the user's and what the outputs depend on."""
    needed = {box for box in outputs if isinstance(box, Box)}
    for box in reversed(boxes):
        if box in needed:
            needed.update(box.parents)
    return [b for b in boxes if b in needed or b.kind in ("input", "parameter", "buffer")]


# ---- errors ----


def _explained(error: Exception, lifted: Lifted) -> Exception:
    """Say in one sentence what cannot be traced; an error of the function itself stays its own."""
    try:
        lifted(*lifted.copies(differentiable=True))
    except Exception as own:
        return own
    where = _line_of(error)
    said = re.split(r"(?<=[.!]) |\n", str(error))[0]
    line = f" at {where}: `{where.text}`" if where else ""
    if "data-dependent" in str(error) or "_local_scalar_dense" in str(error):
        return InvalidData(
            "trace: `fn` must take the same path whatever the numbers are; got a branch, loop or "
            f"number that depends on the value of a tensor{line}. Use `torch.where`, or decide "
            "outside of `fn`."
        )
    return InvalidData(
        f"trace: `fn` must be made of operations that torch can trace; got {said!r}{line}."
    )


def _line_of(error: BaseException) -> Source | None:
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        source = user_line(frame)
        if source is not None and source.file == frame.f_code.co_filename:
            found = Source(source.file, line)
    return found


def _no_tensor(fn: Any, out: list[Any]) -> str:
    got = type(out[0]).__name__ if out else "nothing"
    return (
        f"trace: `{_name_of(fn)}` must return a tensor; got {got}. Return the tensor itself, not "
        "a number taken from it."
    )


def _name_of(fn: Any) -> str:
    name = getattr(fn, "__name__", type(fn).__name__)
    return name if name.isidentifier() else "f"
