"""Tables: reading them, knowing what is in them, and making networks' inputs of them."""

from castalia.data import datasets
from castalia.data.dataset import Dataset
from castalia.data.read import read
from castalia.data.schema import Column, Schema
from castalia.data.stream import DiskMatrix
from castalia.data.table import TableEncoder

__all__ = ["Column", "Dataset", "DiskMatrix", "Schema", "TableEncoder", "datasets", "read"]
