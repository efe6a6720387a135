"""Data: reading it, knowing what is in it, and making networks' inputs of it."""

from typing import Any

from castalia.data import datasets
from castalia.data.dataset import Dataset
from castalia.data.read import read
from castalia.data.schema import Column, Schema
from castalia.data.stream import DiskMatrix
from castalia.data.table import TableEncoder

__all__ = [
    "Column",
    "Dataset",
    "DiskMatrix",
    "Images",
    "Schema",
    "TableEncoder",
    "datasets",
    "read",
]


def __getattr__(name: str) -> Any:
    """Find `Images` when it is asked for: images need torch, tables can be read without it."""
    if name == "Images":
        from castalia.data.images import Images

        return Images
    raise AttributeError(f"module 'castalia.data' has no attribute {name!r}")
