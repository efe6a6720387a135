"""Kills and damaged files: ``python -m evidence.torture --minutes N``, or ``make torture``."""

PARTS = ("process_kills", "search_kills", "mutated_files")
