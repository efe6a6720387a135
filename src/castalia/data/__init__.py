"""Data: reading it, knowing what is in it, and making networks' inputs of it.

Names are loaded when first used: neither torch nor Arrow is imported before it is needed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from castalia.data import datasets
    from castalia.data.data_reader import read
    from castalia.data.images import Images
    from castalia.data.stream import DiskMatrix
    from castalia.data.table_adapter import TableAdapter
    from castalia.data.tables import Column, Dataset, Schema, TableEncoder

__all__ = [
    "Column",
    "Dataset",
    "DiskMatrix",
    "Images",
    "Schema",
    "TableAdapter",
    "TableEncoder",
    "datasets",
    "read",
]

_NAMES = {
    "castalia.data.data_reader": "read",
    "castalia.data.images": "Images",
    "castalia.data.stream": "DiskMatrix",
    "castalia.data.table_adapter": "TableAdapter",
    "castalia.data.tables": "Column Dataset Schema TableEncoder",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name == "datasets":
        value = import_module("castalia.data.datasets")
    else:
        raise AttributeError(f"module 'castalia.data' has no attribute {name!r}")
    globals()[name] = value
    return value
