"""Kills and damaged files: ``python -m evidence.torture --minutes N``, or ``make torture``."""

PARTS = ("process_kills", "search_kills", "mutated_files")
# Counts that must be zero: of kills, of searches, of files.
LOSSES = (
    "lost",
    "twice",
    "different",
    "foreign error",
    "silently wrong",
    "too much memory",
    "too slow",
    "died",
)
