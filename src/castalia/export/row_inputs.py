"""How raw rows enter an exported graph: standardised, flagged and coded inside it."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from castalia.data.images.image_adapter import ImageAdapter
from castalia.data.row_adapter import RowAdapter
from castalia.data.signal_adapter import SignalAdapter
from castalia.data.table_adapter import TableAdapter
from castalia.data.text import NGramAdapter, TextAdapter
from castalia.errors import InvalidData
from castalia.export.table_columns import column_values, word_codes

__all__ = ["GraphInput", "MatrixInput", "Port", "TableInput", "input_of"]


class Port(NamedTuple):
    """One input of a graph: its name, NumPy type and shape without the rows."""

    name: str
    dtype: str
    shape: tuple[int, ...]


class GraphInput(nn.Module):
    """The first part of a graph; ``ports`` are its arguments, ``feeds`` makes them of rows."""

    kind = "array"
    ports: tuple[Port, ...]

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the arguments for rows as the model takes them."""
        (port,) = self.ports
        return {port.name: np.ascontiguousarray(X, port.dtype)}

    def facts(self) -> dict[str, Any]:
        """Return what a runner has to know of the rows, as JSON values."""
        return {}


class MatrixInput(GraphInput):
    """Rows of numbers as they are, (N, D)."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.ports = (Port("X", "float64", (columns,)),)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows."""
        return x


class TableInput(GraphInput):
    """Columns as a fitted ``TableEncoder`` encodes them.

    Parameters
    ----------
    encoder
        The encoder.
    dtype
        Of the encoded rows.
    one_hot
        Whether categories become columns of 0 and 1, as direct estimators want them.
    """

    mean: Tensor
    inverse: Tensor

    def __init__(self, encoder: Any, dtype: torch.dtype, one_hot: bool = False) -> None:
        super().__init__()
        state = encoder.state()
        self.named, self.dtype, self.one_hot = bool(state["named"]), dtype, one_hot
        self.kind = "table" if self.named else "array"
        self.numeric, self.words = list(state["numeric"]), dict(state["words"])
        self.columns = {**dict(zip(self.numeric, state["kinds"], strict=True))}
        self.columns |= dict.fromkeys(self.words, "categorical")
        self.flagged = [int(place) for place in state["flagged"]]
        self.places = [state["columns"].index(name) for name in self.numeric]
        self.width = len(state["columns"])
        self.register_buffer("mean", torch.tensor(state["mean"], dtype=torch.float64))
        self.register_buffer("inverse", 1 / torch.tensor(state["scale"], dtype=torch.float64))
        self.ports = tuple(self._ports())

    def _ports(self) -> list[Port]:
        if not self.named and not self.words:
            return [Port("X", "float64", (self.width,))]
        parts = (("numbers", "float64", self.numeric), ("codes", "int64", list(self.words)))
        return [Port(name, kind, (len(held),)) for name, kind, held in parts if held]

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the numbers and the codes of a table, or the array itself."""
        if self.ports[0].name == "X":
            return super().feeds(X)
        found = column_values(X, self.columns)
        numbers = [found[name] for name in self.numeric]
        codes = [word_codes(found[name], words) for name, words in self.words.items()]
        parts = {"numbers": numbers, "codes": codes}
        return {port.name: np.stack(parts[port.name], axis=1) for port in self.ports}

    def facts(self) -> dict[str, Any]:
        """Return the columns and their kinds."""
        return {"columns": self.columns, "words": self.words} if self.named else {}

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        """Return the encoded rows."""
        parts: list[Tensor] = []
        if self.numeric:
            numbers = first[:, self.places] if self.ports[0].name == "X" else first
            absent = numbers.isnan()
            scaled = torch.where(absent, 0.0, (numbers - self.mean) * self.inverse)
            most = torch.finfo(self.dtype).max
            parts = [scaled.clamp(-most, most).to(self.dtype)]
            parts += [absent[:, self.flagged].to(self.dtype)] if self.flagged else []
        if self.words:
            codes = first if second is None else second
            parts += self._columns_of(codes) if self.one_hot else [codes.to(self.dtype)]
        return torch.cat(parts, dim=1)

    def _columns_of(self, codes: Tensor) -> list[Tensor]:
        """Return a column for each category but that of the unseen, which is all 0."""
        sizes = [len(words) + 1 for words in self.words.values()]
        return [
            (codes[:, i, None] == torch.arange(1, size)).to(self.dtype)
            for i, size in enumerate(sizes)
        ]


class ScaledInput(GraphInput):
    """Images (N, C, H, W) or signals (N, C, T) in their own units; channels are scaled inside."""

    mean: Tensor
    factor: Tensor

    def __init__(self, adapter: Any, dtype: torch.dtype, kind: str) -> None:
        super().__init__()
        self.kind, self.adapter = kind, adapter
        self.ports = (Port(f"{kind}s", "float32", tuple(adapter.shape)),)
        shape = (-1, *[1] * (len(adapter.shape) - 1))
        self.register_buffer("mean", torch.from_numpy(adapter.mean).to(dtype).view(shape))
        factor = torch.from_numpy(adapter.deviation).to(dtype).reciprocal()
        self.register_buffer("factor", factor.view(shape))

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the pixels or the values."""
        rows = self.adapter.check(X, "export")
        if self.kind == "image":
            rows = rows.pixels(np.arange(len(rows)), self.adapter.size, self.adapter.inputs).numpy()
        return super().feeds(rows)

    def facts(self) -> dict[str, Any]:
        """Return the shape of a row."""
        return {"shape": list(self.adapter.shape)}

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled rows."""
        return (x.to(self.mean.dtype) - self.mean) * self.factor


class TokenInput(GraphInput):
    """Ids of the tokens of texts, (N, T), filled up with padding."""

    kind = "text"

    def __init__(self, adapter: Any) -> None:
        super().__init__()
        self.adapter = adapter
        self.ports = (Port("ids", "int64", (adapter.length,)),)

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the ids of texts."""
        texts = self.adapter.check(X, "export")
        return super().feeds(self.adapter.pad(self.adapter.encode(texts), self.adapter.length))

    def facts(self) -> dict[str, Any]:
        """Return the tokenizer and how texts are cut and filled up."""
        names = ("length", "padding", "context", "long", "boundaries")
        settings = {name: getattr(self.adapter, name) for name in names}
        return {**settings, "tokenizer": self.adapter.tokenizer.state()}

    def forward(self, ids: Tensor) -> Tensor:
        """Return the ids."""
        return ids


@singledispatch
def input_of(adapter: Any, dtype: torch.dtype) -> GraphInput:
    """Return the input of a network's graph by the adapter of its rows."""
    raise InvalidData(
        f"export: rows of a {type(adapter).__name__} are prepared by code that has no operator in "
        "a graph; take `module_` and export it with `torch.export`."
    )


@input_of.register
def _table(adapter: TableAdapter, dtype: torch.dtype) -> GraphInput:
    return TableInput(adapter.encoder, dtype)


@input_of.register
def _row(adapter: RowAdapter, dtype: torch.dtype) -> GraphInput:
    if adapter.images is not None:
        return ScaledInput(adapter.images, dtype, "image")
    return TableInput(adapter.encoder, dtype)


@input_of.register
def _image(adapter: ImageAdapter, dtype: torch.dtype) -> GraphInput:
    return ScaledInput(adapter, dtype, "image")


@input_of.register
def _signal(adapter: SignalAdapter, dtype: torch.dtype) -> GraphInput:
    return ScaledInput(adapter, dtype, "signal")


@input_of.register
def _text(adapter: TextAdapter, dtype: torch.dtype) -> GraphInput:
    return TokenInput(adapter)


class BagInput(GraphInput):
    """Weighted n-grams of texts: numbers and weights, (N, T) each."""

    kind = "text"

    def __init__(self, adapter: Any) -> None:
        super().__init__()
        self.adapter = adapter
        self.ports = (Port("ids", "int64", (-1,)), Port("weights", "float32", (-1,)))

    def feeds(self, X: Any) -> dict[str, np.ndarray]:
        """Return the n-grams of texts."""
        rows: Any = self.adapter.rows(self.adapter.check(X, "export"), np.float32)
        ids, weights = rows.take(torch.arange(len(rows)))
        return {"ids": ids.numpy(), "weights": weights.numpy()}

    def facts(self) -> dict[str, Any]:
        """Return the known n-grams, by their hash, and how rare each is."""
        names = ("words", "characters", "min_count", "buckets")
        state = {name: getattr(self.adapter, name) for name in names}
        lists = {name: [v.tolist() for v in getattr(self.adapter, name)] for name in _LISTS}
        return {"ngrams": {**state, **lists}}

    def forward(self, ids: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return both."""
        return ids, weights


_LISTS = ("known", "rarity")


@input_of.register
def _bag(adapter: NGramAdapter, dtype: torch.dtype) -> GraphInput:
    return BagInput(adapter)
