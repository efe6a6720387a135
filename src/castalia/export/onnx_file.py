"""An exported graph as the bytes of an ONNX file: columns by name in, labels out."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.export import Dim

from castalia import __version__
from castalia.export.model_graph import ModelGraph
from castalia.utils.imports import require

__all__ = ["FACTS", "onnx_bytes", "output_names", "traced"]

FACTS = "castalia"  # key of the metadata that a runner reads
INNER = "net/"  # before the names of what torch wrote, so that no column has one of them
_EXAMPLES = 3  # rows that are traced


def onnx_bytes(graph: ModelGraph, facts: dict[str, Any]) -> tuple[bytes, int]:
    """Return the file and its opset.

    Parameters
    ----------
    graph
        What is exported.
    facts
        JSON values kept in the metadata, for ``OnnxModel``.
    """
    onnx = require("onnx", caller="export", extra="export")
    require("onnxscript", caller="export", extra="export")
    with _quiet():
        program: Any = torch.onnx.export(
            graph,
            tuple(examples(graph)),
            dynamo=True,
            verbose=False,
            input_names=[port.name for port in graph.entry.ports],
            output_names=list(graph.answer.outputs),
            dynamic_shapes=_shapes(graph),
        )
    proto = program.model_proto
    _strip(proto)
    proto = onnx.compose.add_prefix(proto, INNER)
    made = _wrapped(onnx, proto, graph)
    made.producer_name, made.producer_version = "castalia", __version__
    onnx.helper.set_model_props(made, {FACTS: json.dumps(facts)})
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString(), max(o.version for o in made.opset_import if not o.domain)


def traced(graph: ModelGraph) -> Any:
    """Return the graph as a ``torch.export`` program with a free number of rows."""
    with _quiet():
        return torch.export.export(
            graph, tuple(examples(graph)), dynamic_shapes=_shapes(graph), strict=False
        )


def examples(graph: ModelGraph) -> list[torch.Tensor]:
    """Return rows that a graph is traced with; a free length is 4."""
    return [
        torch.zeros(
            _EXAMPLES,
            *(4 if n < 0 else n for n in port.shape),
            dtype=getattr(torch, port.dtype),
        )
        for port in graph.entry.ports
    ]


def _shapes(graph: ModelGraph) -> dict[str, Any]:
    rows, length = Dim("rows"), Dim("length", min=1)
    free = [
        {0: rows} | {i: length for i, n in enumerate(port.shape, 1) if n < 0}
        for port in graph.entry.ports
    ]
    return dict(zip(("first", "second"), free, strict=False))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks about other packages to itself."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _strip(proto: Any) -> None:
    """Take away the traces of the machine: file names and lines of every operation."""
    for part in (*proto.graph.node, *proto.graph.input, *proto.graph.output):
        del part.metadata_props[:]
        part.doc_string = ""
    for part in (*proto.graph.value_info, *proto.graph.initializer, proto, proto.graph):
        del part.metadata_props[:]


def output_names(graph: ModelGraph) -> list[str]:
    """Return the names of the outputs, which no column may have too."""
    taken = {port.name for port in graph.entry.ports} | set(graph.entry.facts().get("columns", ()))
    return [name if name not in taken else f"{name}_answer" for name in graph.answer.outputs]


def _wrapped(onnx: Any, proto: Any, graph: ModelGraph) -> Any:
    """Put the columns before torch's graph and the labels behind it."""
    inputs, before = _columns(onnx, graph)
    outputs, after = _answers(onnx, graph, proto.graph.output)
    inner = proto.graph
    made = onnx.helper.make_graph(
        [*before, *inner.node, *after],
        "castalia",
        inputs,
        outputs,
        initializer=list(inner.initializer),
    )
    opsets = [onnx.helper.make_opsetid(o.domain, o.version) for o in proto.opset_import]
    opsets.append(onnx.helper.make_opsetid("ai.onnx.ml", 3))
    return onnx.helper.make_model(
        made, opset_imports=opsets, ir_version=proto.ir_version, functions=list(proto.functions)
    )


def _columns(onnx: Any, graph: ModelGraph) -> tuple[list[Any], list[Any]]:
    """Return the inputs, and the nodes that make torch's of them."""
    entry, make, kinds = graph.entry, onnx.helper.make_node, onnx.TensorProto
    columns: dict[str, str] = entry.facts().get("columns", {})
    if not columns:
        inputs = [
            onnx.helper.make_tensor_value_info(
                port.name,
                onnx.helper.np_dtype_to_tensor_dtype(np.dtype(port.dtype)),
                ["rows", *("length" if n < 0 else n for n in port.shape)],
            )
            for port in entry.ports
        ]
        nodes = [make("Identity", [port.name], [INNER + port.name]) for port in entry.ports]
        return inputs, nodes
    inputs, nodes, codes = [], [], []
    for name, kind in columns.items():
        type_ = kinds.STRING if kind == "categorical" else kinds.DOUBLE
        inputs.append(onnx.helper.make_tensor_value_info(name, type_, ["rows", 1]))
    for place, (name, words) in enumerate(entry.facts()["words"].items()):
        codes.append(f"codes/{place}")
        nodes.append(_coder(make, name, codes[-1], words))
    numbers = [name for name, kind in columns.items() if kind != "categorical"]
    for port, parts in (("numbers", numbers), ("codes", codes)):
        if parts:
            nodes.append(make("Concat", parts, [INNER + port], axis=1))
    return inputs, nodes


def _coder(make: Any, name: str, out: str, words: list[str]) -> Any:
    return make(
        "LabelEncoder",
        [name],
        [out],
        domain="ai.onnx.ml",
        keys_strings=list(words),
        values_int64s=list(range(1, len(words) + 1)),
        default_int64=0,
    )


def _answers(onnx: Any, graph: ModelGraph, inner: Any) -> tuple[list[Any], list[Any]]:
    """Return the outputs, and the nodes that make them of torch's."""
    make, outputs, nodes = onnx.helper.make_node, [], []
    for own, name, info in zip(graph.answer.outputs, output_names(graph), inner, strict=True):
        classes = graph.answer.classes if own == "prediction" else None
        type_, values = _labels(onnx, classes, info.type.tensor_type.elem_type)
        if values is None:
            nodes.append(make("Identity", [info.name], [name]))
        else:
            keys = {"keys_int64s": list(range(len(classes))), **values}  # type: ignore[arg-type]
            nodes.append(make("LabelEncoder", [info.name], [name], domain="ai.onnx.ml", **keys))
        shape = [d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim]
        outputs.append(onnx.helper.make_tensor_value_info(name, type_, shape))
    return outputs, nodes


def _labels(onnx: Any, classes: np.ndarray | None, plain: int) -> tuple[int, dict[str, Any] | None]:
    """Return the type of labels and what an encoder writes; numbers that are the answer stay."""
    kinds = onnx.TensorProto
    if classes is None:
        return plain, None
    if classes.dtype.kind in "iu":
        return kinds.INT64, {"values_int64s": [int(v) for v in classes]}
    if classes.dtype.kind == "f":
        return kinds.FLOAT, {"values_floats": [float(v) for v in classes]}
    return kinds.STRING, {"values_strings": [str(v) for v in classes]}
