"""The rows of the course, and what in the library answers each of them.

``course.toml`` is edited at the root of the project; a built package carries a
copy beside this file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from castalia.errors import DamagedFile, InvalidData
from castalia.utils.text import did_you_mean, listing, plural

__all__ = ["COUNTS", "CourseRow", "course_table", "load_course"]

FIELDS = ("name", "area", "object", "tests", "by")
COUNTS = ("rows", "proven", "shown", "open")
BESIDE = Path(__file__).with_name("course.toml")  # where the wheel puts it
AT_ROOT = Path(__file__).parents[3] / "course.toml"  # a checkout: src/castalia/catalog/course.py


@dataclass(frozen=True)
class CourseRow:
    """One thing the course describes.

    Attributes
    ----------
    id
        Tag of the area and a number, such as ``LIN-01``.
    name
        What the course calls it.
    area
        The part of the course it belongs to.
    object
        The public name that does it, ``package:name``; empty while nothing does.
    tests
        The tests that prove it, ``tests/file.py::test_name``; empty while nothing does.
    by
        The library whose work the tests show, such as ``"torch"``; empty where it is Castalia's.

    Examples
    --------
    >>> CourseRow("LIN-01", "Linear regression", "Linear models").open
    True
    """

    id: str
    name: str
    area: str
    object: str = ""
    tests: tuple[str, ...] = ()
    by: str = ""

    @property
    def open(self) -> bool:
        """Whether no test proves the row yet."""
        return not self.tests

    @property
    def proof(self) -> str:
        """How many tests prove the row, and whose work they show."""
        if self.open:
            return "open"
        return plural(len(self.tests), "test") + (f" of {self.by}" if self.by else "")


def load_course(path: str | os.PathLike[str] | None = None) -> list[CourseRow]:
    """Read the rows of the course, in the order of the course.

    Parameters
    ----------
    path
        A course file; by default the one that belongs to this installation.

    Examples
    --------
    >>> load_course()[0].name
    'Linear regression'
    """
    path = _find() if path is None else Path(path)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("rows", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedFile(f"load_course: `{path}` must be a TOML file; {error}.") from error
    return [_row(tag, table, path) for tag, table in tables.items()]


def course_table(rows: Iterable[CourseRow]) -> list[dict[str, Any]]:
    """Count the rows of each area: all, proven, shown by another library, and open.

    Examples
    --------
    >>> rows = [CourseRow("A-1", "a", "Area"), CourseRow("A-2", "b", "Area", "m:f", ("t::u",))]
    >>> course_table(rows)
    [{'area': 'Area', 'rows': 2, 'proven': 1, 'shown': 0, 'open': 1}]
    """
    areas: dict[str, dict[str, Any]] = {}
    for row in rows:
        count = areas.setdefault(row.area, {"area": row.area, **dict.fromkeys(COUNTS, 0)})
        count["rows"] += 1
        count["open" if row.open else "shown" if row.by else "proven"] += 1
    return list(areas.values())


def _find() -> Path:
    """Return the course file of this installation."""
    for place in (BESIDE, AT_ROOT):
        if place.is_file():
            return place
    raise InvalidData(
        f"load_course: `course.toml` must be at `{BESIDE}` or `{AT_ROOT}`; found neither. "
        "Reinstall castalia, or pass the path of the file."
    )


def _row(tag: str, table: Any, path: Path) -> CourseRow:
    """Check one table of the file and turn it into a row."""
    owner = f"load_course: `rows.{tag}` of `{path.name}`"
    if not isinstance(table, Mapping):
        raise InvalidData(f"{owner} must be a table; got {table!r}.")
    for key in table:
        if key not in FIELDS:
            raise InvalidData(
                f"{owner} must use the fields {listing(FIELDS, 'and')}; got `{key}`."
                f"{did_you_mean(key, FIELDS)}"
            )
    for key in ("name", "area"):
        if not table.get(key):
            raise InvalidData(f"{owner} must have a `{key}`; got none.")
    tests = table.get("tests", [])
    if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
        raise InvalidData(f"{owner} must list its `tests` as strings; got {tests!r}.")
    by = table.get("by", "")
    if not isinstance(by, str):
        raise InvalidData(f"{owner} must name one library in `by`; got {by!r}.")
    return CourseRow(tag, table["name"], table["area"], table.get("object", ""), tuple(tests), by)
