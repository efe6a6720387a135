"""Tables: sources of rows, what their columns are, and the encoder that makes them numbers."""

from castalia.data.tables.dataset import Dataset
from castalia.data.tables.schema import Column, Schema
from castalia.data.tables.table_encoder import TableEncoder

__all__ = ["Column", "Dataset", "Schema", "TableEncoder"]
