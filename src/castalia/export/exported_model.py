"""Export of a fitted model: a file, checked against the model on rows before it is kept."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from castalia.errors import InvalidData, InvalidParameter
from castalia.export.int8_weights import int8_bytes
from castalia.export.model_graph import ModelGraph, graph_of
from castalia.export.onnx_file import onnx_bytes, traced
from castalia.export.onnx_runner import OnnxModel
from castalia.export.sidecar import write_sidecar
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import listing

__all__ = ["FORMS", "Exported", "export_model"]

FORMS = ("onnx", "torch", "hf")
TOLERANCE = 1e-5  # of answers, in units of the largest where that is above 1


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    path
        The file or folder.
    form
        ``"onnx"``, ``"torch"`` or ``"hf"``.
    size
        Bytes.
    opset
        Of ONNX, else None.
    inputs, outputs
        Names, of a graph.
    rows
        Rows that the file was checked on; 0: it was not.
    difference
        Largest difference from the model's own answers, in units of the largest where that is
        above 1.
    int8
        The variant with weights of 8 bits, where one was asked for.
    runner
        A JSON file and a script beside, where texts or dates have to be prepared for a graph.
    """

    path: Path
    form: str
    size: int
    opset: int | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    rows: int = 0
    difference: float = 0.0
    int8: Exported | None = None
    runner: tuple[Path, ...] = ()


def export_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    to: str = "onnx",
    rows: Any = None,
    int8: bool = False,
    about: Mapping[str, Any] | None = None,
) -> Exported:
    """Write a fitted model for another runtime.

    Parameters
    ----------
    model
        A fitted estimator.
    path
        File to write; of ``to="hf"``, a folder.
    to
        ``"onnx"``; ``"torch"``, a program of ``torch.export``; ``"hf"``, a folder for transformers,
        of language models that have ``save_pretrained``.
    rows
        Rows as the model takes them, on which file and model must agree to 1e-5; None: the file is
        not checked.
    int8
        Whether to write a variant beside, whose weights have 8 bits (ONNX only); its answers differ
        by more, and its ``difference`` says by how much.
    about
        Further JSON values to keep in an ONNX file, such as the formats of dates.

    Returns
    -------
    Exported

    Raises
    ------
    InvalidData
        If the model has no graph, or the file does not answer as the model does.

    Examples
    --------
    >>> import castalia, tempfile
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]
    >>> model = castalia.LinearRegression().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = export_model(model, f"{folder}/line.onnx", rows=X)
    >>> found.inputs, found.outputs, found.rows
    (('X',), ('prediction',), 3)
    """
    if to not in FORMS:
        raise InvalidParameter(f"export: `to` must be {listing(FORMS)}; got {to!r}.")
    if int8 and to != "onnx":
        raise InvalidParameter(f"export: `int8` must be False for {to!r}; it is for 'onnx'.")
    path = Path(path)
    with writing("export", path):
        if to == "hf":
            return _folder(model, path)
        graph = graph_of(model)
        if to == "torch":
            return _program(graph, path, rows)
        return _onnx(graph, path, rows, int8, {**(about or {}), **facts_of(graph)})


def _folder(model: Any, path: Path) -> Exported:
    if not hasattr(model, "save_pretrained"):
        raise InvalidData(
            f"export: a {type(model).__name__} has no layout of Hugging Face; `to` must be 'onnx' "
            "or 'torch' for it."
        )
    folder = Path(model.save_pretrained(path))
    files = [file for file in folder.rglob("*") if file.is_file()]
    return Exported(folder, "hf", sum(file.stat().st_size for file in files))


def _onnx(graph: ModelGraph, path: Path, rows: Any, int8: bool, facts: Any) -> Exported:
    content, opset = onnx_bytes(graph, facts)
    found = _checked_file(graph, path, rows, content, opset, TOLERANCE)
    found = replace(found, runner=write_sidecar(path, OnnxModel(content), rows))
    if not int8:
        return found
    small = path.with_name(f"{path.stem}.int8{path.suffix}")
    variant = _checked_file(graph, small, rows, int8_bytes(content), opset, np.inf)
    return replace(found, int8=variant)


def _checked_file(
    graph: ModelGraph, path: Path, rows: Any, content: bytes, opset: int, tolerance: float
) -> Exported:
    """Write a file after it has answered the rows as the model does."""
    file = OnnxModel(content)
    inputs, outputs = file.session.get_inputs(), file.session.get_outputs()
    count, far = 0, 0.0
    if rows is not None:
        found = list(file.run(file.feeds(rows)).values())
        count, far = _compared(graph, rows, found, tolerance)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, content)
    return Exported(
        path,
        "onnx",
        len(content),
        opset,
        tuple(put.name for put in inputs),
        tuple(put.name for put in outputs),
        count,
        far,
    )


def _program(graph: ModelGraph, path: Path, rows: Any) -> Exported:
    program = traced(graph)
    count, far = 0, 0.0
    if rows is not None:
        feeds = graph.entry.feeds(rows).values()
        found = program.module()(*(torch.from_numpy(feed) for feed in feeds))
        count, far = _compared(graph, rows, [_labelled(graph, *f) for f in _named(graph, found)])
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, buffer.getvalue())
    names = tuple(port.name for port in graph.entry.ports)
    size, outputs = len(buffer.getvalue()), graph.answer.outputs
    return Exported(path, "torch", size, None, names, outputs, count, far)


def _named(graph: ModelGraph, found: Any) -> list[tuple[str, np.ndarray]]:
    return [(name, part.numpy()) for name, part in zip(graph.answer.outputs, found, strict=True)]


def _labelled(graph: ModelGraph, name: str, values: np.ndarray) -> np.ndarray:
    """Return class numbers as classes."""
    classes = graph.answer.classes
    return values if classes is None or name != "prediction" else classes[values]


def _compared(
    graph: ModelGraph, rows: Any, found: list[np.ndarray], tolerance: float = TOLERANCE
) -> tuple[int, float]:
    """Return how many rows were compared and the largest difference; refuse one too large."""
    wanted = graph.answer.expected(rows)
    numbers = [pair for pair in zip(found, wanted, strict=True) if pair[1].dtype.kind in "fiu"]
    far = max((_distance(*pair) for pair in numbers if pair[1].dtype.kind == "f"), default=0.0)
    labels = [
        float(np.mean(a.astype(str) != b.astype(str)))
        for a, b in zip(found, wanted, strict=True)
        if b.dtype.kind not in "f"
    ]
    wrong = max(labels, default=0.0)
    if far > tolerance or (wrong and tolerance < np.inf):
        raise InvalidData(
            f"export: the graph must answer as the model does; it differs by {far:.2g} and in "
            f"{100 * wrong:.2g} % of the labels of {len(wanted[0]):,} rows. Nothing was written; "
            "please report this model."
        )
    return len(wanted[0]), far


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    largest = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    return float(np.abs(found.astype(np.float64) - wanted).max(initial=0.0)) / largest


def facts_of(graph: ModelGraph) -> dict[str, Any]:
    """Return what a file says of itself."""
    classes = graph.answer.classes
    return {
        "format": 1,
        "system": type(graph.answer.model).__name__,
        "kind": graph.entry.kind,
        "outputs": list(graph.answer.outputs),
        "classes": None if classes is None else [str(label) for label in classes],
        **graph.entry.facts(),
    }
