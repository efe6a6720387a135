"""The catalogue: one record per system, pure data, importable without torch."""

from castalia.catalog.records import System
from castalia.catalog.systems import SYSTEMS, find, models_table, system

__all__ = ["SYSTEMS", "System", "find", "models_table", "system"]
