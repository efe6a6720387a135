"""The adapter of models that give rows back: tables or images, whichever X is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.images.image_adapter import ImageAdapter
from castalia.data.images.image_collection import Images
from castalia.data.table_adapter import TableAdapter
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_decoder import decode_table
from castalia.data.tables.table_encoder import TableEncoder
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["RowAdapter", "UnitImageAdapter"]

SAMPLE = 65_536  # rows of a streamed table that say how many decimals numbers have
MOST = 6  # decimals


class UnitImageAdapter(ImageAdapter):
    """Images of one size with values between 0 and 1: bytes are divided by 255."""

    def fit(self, X: Images, sample_weight: np.ndarray | None = None) -> UnitImageAdapter:
        """Learn size, channels, and whether values are bytes."""
        super().fit(X, sample_weight)
        first = X.pixels(np.zeros(1, dtype=np.int64), self.size or (0, 0), self.inputs)
        scale = 255.0 if first.dtype == torch.uint8 else 1.0
        self.mean, self.deviation = np.zeros(self.inputs), np.full(self.inputs, scale)
        return self

    def decode(self, rows: Tensor) -> np.ndarray:
        """Return images (N, H, W) or (N, H, W, C) of values (N, C, H, W): bytes, or floats."""
        values = rows.permute(0, 2, 3, 1).float().numpy()  # (N, H, W, C)
        if self.deviation[0] > 1:
            values = (255 * values).round().clip(0, 255).astype(np.uint8)
        return np.ascontiguousarray(values[..., 0] if self.inputs == 1 else values)


class RowAdapter(TableAdapter):
    """Tables as ``TableAdapter`` reads them, or images with values between 0 and 1; and back.

    Attributes
    ----------
    images
        The adapter of images; None where rows are those of a table.
    decimals
        How many decimals each number of a table with named columns has, -1 where it has more than
        6; empty for arrays.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 7.0]])
    >>> adapter = RowAdapter().fit(X)
    >>> adapter.decode(adapter.rows(X, np.float32).take(torch.arange(2))).tolist()
    [[1.0, 5.0], [3.0, 7.0]]
    """

    def __init__(self, encoder: TableEncoder | None = None) -> None:
        super().__init__(encoder)
        self.images: UnitImageAdapter | None = None
        self.decimals: list[int] = []

    def tabular(self, X: Any) -> bool:
        """Whether X is a table: neither images nor rows of more than one axis."""
        many = isinstance(X, np.ndarray | Tensor) and X.ndim > 2
        return self.images is None and not isinstance(X, Images) and not many

    @property
    def inputs(self) -> int:  # type: ignore[override]
        """Width of an encoded row, or channels."""
        return self.encoder.inputs if self.images is None else self.images.inputs

    @property
    def shape(self) -> torch.Size:
        """Shape of one row."""
        return torch.Size([self.inputs]) if self.images is None else self.images.shape

    @property
    def extra(self) -> Mapping[str, Any]:
        """Size of images; or how many leading columns are numbers, and which may be missing."""
        if self.images is not None:
            return self.images.extra
        return {"numbers": self.encoder.numbers, "missing": self.encoder.state()["flagged"]}

    @property
    def log_scale(self) -> float:
        """Log of how much smaller encoded numbers of a table are: what densities differ by."""
        return (
            0.0 if self.images is not None else float(np.log(self.encoder.state()["scale"]).sum())
        )

    def check(self, X: Any, owner: str) -> Images:
        """Return X as images, such as were learnt from."""
        if self.images is None and self.inputs:
            raise InvalidData(f"{owner}: X must have columns, as in fit; got images.")
        adapter = self.images if self.images is not None else UnitImageAdapter()
        return adapter.check(X, owner)

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> RowAdapter:
        """Learn columns, scales and categories, or the size of images."""
        if isinstance(X, Images):
            self.images = UnitImageAdapter().fit(X, sample_weight)
            return self
        super().fit(X, sample_weight)
        if self.encoder.state()["named"]:
            streamed = isinstance(X, Dataset) and X.streaming
            some = next(iter(X.chunks(SAMPLE))) if streamed else X
            self.decimals = _decimals(self.encoder, some)
        return self

    def rows(self, X: Any, dtype: Any) -> Rows:
        """Return rows of a training."""
        return super().rows(X, dtype) if self.images is None else self.images.rows(X, dtype)

    def blocks(self, X: Any, dtype: Any) -> Iterator[Tensor]:
        """Yield encoded rows block by block."""
        found = super().blocks(X, dtype) if self.images is None else self.images.blocks(X, dtype)
        yield from found

    def decode(self, rows: Tensor) -> Any:
        """Return encoded rows as what they were: an array, a table or images."""
        if self.images is not None:
            return self.images.decode(rows.reshape(len(rows), *self.shape))
        return decode_table(rows.numpy(), self.encoder.state(), self.decimals)

    def state(self) -> dict[str, Any]:
        """Return what saving needs."""
        if self.images is not None:
            return {"images": self.images.state()}
        return {"table": self.encoder.state(), "decimals": list(self.decimals)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> RowAdapter:
        """Return an adapter from its saved state."""
        made = cls()
        if "images" in state:
            made.images = UnitImageAdapter.from_state(state["images"])
        else:
            made.encoder = TableEncoder.from_state(state["table"])
            older = [0 if whole else -1 for whole in state.get("whole", ())]
            made.decimals = [int(each) for each in state.get("decimals", older)]
        return made


def _decimals(encoder: TableEncoder, X: Any) -> list[int]:
    """Count the decimals of the numbers of each column, in every row; -1: more than 6."""
    state = encoder.state()
    encoded = encoder.encode(X, np.float64)[:, : encoder.numbers]
    numbers = encoded * state["scale"] + state["mean"]
    missing = encoded == 0  # a missing number is encoded as the mean
    slack = 1e-9 * np.maximum(1, np.abs(numbers))
    found = np.full(encoder.numbers, -1)
    for digits in range(MOST, -1, -1):
        near = np.abs(numbers - np.round(numbers, digits)) <= slack
        found[(near | missing).all(axis=0)] = digits
    return [int(each) for each in found]
