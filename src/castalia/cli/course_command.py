"""``castalia course``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["course"]


def course(
    area: Annotated[
        str | None, typer.Option(help="List the rows of an area: its tag, or part of its name.")
    ] = None,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only rows that no test proves yet.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what of the course the library does, and what proves it.

    A row counts as shown, not as proven, when its tests show the work of another library.
    """
    from castalia.catalog.course import COUNTS, course_table, load_course
    from castalia.errors import InvalidParameter
    from castalia.utils.text import did_you_mean, listing

    out, rows = Output(as_json), load_course()
    if area is not None:
        tags = list(dict.fromkeys(row.id.rpartition("-")[0] for row in rows))
        tagged = [row for row in rows if row.id.rpartition("-")[0] == area.upper()]
        rows = tagged or [row for row in rows if area.lower() in row.area.lower()]
        if not rows:
            raise InvalidParameter(
                f"course: `area` must be {listing(tags, 'or', 40)}, or part of an area's name; "
                f"got {area!r}."
                f"{did_you_mean(area.upper(), tags)}"
            )
    if only_open:
        rows = [row for row in rows if row.open]
    if area is not None or only_open:
        heads = ["row", "name", "answered by", "proof"]
        out.table(heads, [[row.id, row.name, row.object, row.proof] for row in rows])
        out.data({"rows": [asdict(row) | {"open": row.open} for row in rows]})
        return
    counted = course_table(rows)
    total = {"area": "all", **{key: sum(int(c[key]) for c in counted) for key in COUNTS}}
    heads = ["area", *COUNTS]
    out.table(heads, [[str(line[h]) for h in heads] for line in (*counted, total)], right="1234")
    out.data({"areas": counted, "total": total})
