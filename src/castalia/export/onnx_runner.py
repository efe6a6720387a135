"""Exported ONNX files answer rows, without the model's class or its weights in torch."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from castalia.data import Dataset
from castalia.data.images.image_collection import as_images
from castalia.data.text import NGramAdapter, TextAdapter
from castalia.data.text.text_inputs import as_texts
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidData
from castalia.export.onnx_file import FACTS
from castalia.export.table_columns import column_values
from castalia.utils.imports import require
from castalia.utils.regular_files import read_regular
from castalia.utils.text import shorten

__all__ = ["OnnxModel"]


class OnnxModel:
    """A file that ``castalia export --to onnx`` wrote, ready to answer.

    Parameters
    ----------
    source
        The file, or its bytes.

    Attributes
    ----------
    facts
        What the file says of itself: system, kind of rows, columns, classes.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes) -> None:
        runtime = require("onnxruntime", caller="run", extra="export")
        content = source if isinstance(source, bytes) else read_regular(Path(source))
        try:
            self.session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
            self.facts: dict[str, Any] = json.loads(
                self.session.get_modelmeta().custom_metadata_map[FACTS]
            )
            self.kind = str(self.facts["kind"])
        except Exception as error:
            where = "these bytes" if isinstance(source, bytes) else f"`{source}`"
            raise InvalidData(
                f"run: {where} must be an ONNX file that `castalia export` wrote; it is not "
                f"({shorten(' '.join(str(error).split()), 120)})."
            ) from error

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name for inputs by name."""
        names = [output.name for output in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feeds), strict=True))

    def answers(self, X: Any) -> dict[str, np.ndarray]:
        """Return ``prediction`` and, of a classifier, ``probability_<class>``, for raw rows.

        Parameters
        ----------
        X
            A table, an array, images or texts, as the model takes them.
        """
        return self._columns(self.run(self.feeds(X)))

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the inputs of the file for raw rows."""
        return getattr(self, f"_{self.kind}")(X)  # type: ignore[no-any-return]

    def _table(self, X: Any) -> dict[str, np.ndarray]:
        found = column_values(X, self.facts["columns"])
        words = set(self.facts["words"])
        return {
            name: (_words(values) if name in words else values)[:, None]
            for name, values in found.items()
        }

    def _array(self, X: Any) -> dict[str, np.ndarray]:
        if isinstance(X, Dataset):
            X = np.column_stack([X.column(name) for name in X.columns])
        (port,) = self.session.get_inputs()
        rows, width = np.asarray(X, np.float64), port.shape[1]
        if rows.ndim != 2 or rows.shape[1] != width:
            raise InvalidData(
                f"run: rows must have {width} columns of numbers; got an array of shape "
                f"{rows.shape}."
            )
        return {port.name: np.ascontiguousarray(rows)}

    def _image(self, X: Any) -> dict[str, np.ndarray]:
        channels, height, width = self.facts["shape"]
        images = as_images(X, "run")
        pixels = images.pixels(np.arange(len(images)), (height, width), channels)
        return {"images": np.ascontiguousarray(pixels.numpy(), np.float32)}

    def _signal(self, X: Any) -> dict[str, np.ndarray]:
        rows = np.asarray(X, np.float32).reshape(len(X), *self.facts["shape"])
        return {"signals": np.ascontiguousarray(rows)}

    def _text(self, X: Any) -> dict[str, np.ndarray]:
        texts = np.array(as_texts(X, "run"), dtype=object)
        if "ngrams" in self.facts:
            return _bags(self.facts["ngrams"], texts)
        adapter = TextAdapter(**{k: self.facts[k] for k in ("context", "long", "boundaries")})
        adapter.tokenizer = Tokenizer.from_state(self.facts["tokenizer"])
        adapter.padding, adapter.length = self.facts["padding"], self.facts["length"]
        return {"ids": adapter.pad(adapter.encode(texts), adapter.length).long().numpy()}

    def _columns(self, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        names = dict(zip(self.facts["outputs"], found, strict=True))  # own name to file's name
        columns: dict[str, np.ndarray] = {}
        for own in sorted(names, key=lambda name: name != "prediction"):
            values = found[names[own]]
            if own == "probability" and values.ndim == 2:
                pairs = zip(self.facts["classes"], values.T, strict=True)
                columns |= {f"probability_{label}": column for label, column in pairs}
            elif values.ndim == 1:
                columns[own] = values
            else:
                flat = values.reshape(len(values), -1).T
                columns |= {f"{own}_{place}": column for place, column in enumerate(flat)}
        return columns


def _words(values: np.ndarray) -> np.ndarray:
    """Return words with gaps as empty ones, which no category is."""
    return np.array(["" if value is None else value for value in values], dtype=object)


def _bags(state: dict[str, Any], texts: np.ndarray) -> dict[str, np.ndarray]:
    arrays = {name: [np.array(part) for part in state[name]] for name in ("known", "rarity")}
    adapter = NGramAdapter.from_state({**state, **arrays})
    rows: Any = adapter.rows(texts, np.float32)
    ids, weights = rows.take(torch.arange(len(rows)))
    return {"ids": ids.numpy(), "weights": weights.numpy()}
