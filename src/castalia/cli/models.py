"""``castalia models``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from castalia.cli.output import AsJson, Output

__all__ = ["models"]


def models(
    name: Annotated[str | None, typer.Argument(help="One system to describe.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-s", help="Only systems with these words.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the systems of the catalogue, or describe one."""
    from castalia.catalog import find, models_table, system

    out = Output(as_json)
    if name is not None:
        record = asdict(system(name))
        for key, value in record.items():
            if value:
                out.say(f"  {key:<10} {_words(value)}")
        out.data(record)
        return
    wanted = None if search is None else {record.name for record in find(search)}
    rows = [row for row in models_table() if wanted is None or row["name"] in wanted]
    heads = ["name", "tasks", "data", "summary"]
    out.table(heads, [[row[h] for h in heads] for row in rows])
    out.data({"models": rows})


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items())
    return str(value)
