"""What people put on runs: tags, a note, the archive; kept in a small file of the run's folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from castalia.errors import InvalidData
from castalia.method.report.plain_values import to_text
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["Marks"]

FILE = "marks.json"
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE = 20, 40, 10_000


@dataclass(frozen=True)
class Marks:
    """Tags, note and archive of one run."""

    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False

    @classmethod
    def of(cls, content: Any) -> Self:
        """Check what a request or a file says."""
        found = content if isinstance(content, dict) else {}
        tags, note = found.get("tags", []), found.get("note", "")
        words = (
            [tag.strip() for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
        )
        if not isinstance(note, str) or len(note) > LONGEST_NOTE:
            raise InvalidData(f"studio: a note must have at most {LONGEST_NOTE:,} characters.")
        if len(words) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in words):
            raise InvalidData(
                f"studio: a run must have at most {MOST_TAGS} tags of {LONGEST_TAG} characters."
            )
        unique = tuple(dict.fromkeys(tag for tag in words if tag))
        return cls(unique, note, found.get("archived") is True)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the marks of a run; none where the file is absent or damaged."""
        try:
            return cls.of(parse_json(read_regular(folder / FILE)))
        except (OSError, ValueError, InvalidData):
            return cls()

    def write(self, folder: Path) -> None:
        """Keep the marks in a run's folder."""
        with writing("studio", folder):
            atomic_write(folder / FILE, to_text(asdict(self)))
