"""``castalia models``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from castalia.cli.model_description import describe
from castalia.cli.output import AsJson, Output
from castalia.errors import InvalidParameter
from castalia.utils.text import listing

__all__ = ["models"]


def models(
    name: Annotated[str | None, typer.Argument(help="A system to describe: mlp, ridge, …")] = None,
    search: Annotated[
        str | None, typer.Option("--search", "-s", help="Only systems with these words.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--describe", help="Show the layers of the system's network.")
    ] = False,
    size: Annotated[
        str | None, typer.Option(help="A published size to show the layers of.")
    ] = None,
    input_shape: Annotated[
        str | None,
        typer.Option("--input", help="Shape of a row: 20 columns, 3x224x224, or 128 tokens."),
    ] = None,
    outputs: Annotated[
        int | None, typer.Option(min=1, help="Number of classes or outputs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the systems of the catalogue, or describe one."""
    from castalia.catalog import find, matches, models_table, system

    out = Output(as_json)
    several = [] if name is None else [record.name for record in matches(name)]
    if name is not None and (len(several) < 2 or show):
        if len(several) > 1:
            raise InvalidParameter(
                f"castalia models: --describe must be given one system; `{name}` may be "
                f"{listing(several)}."
            )
        found = system(several[0] if several else name)
        table = describe(found, size, input_shape, outputs) if show else None
        record = asdict(found)
        for key, value in record.items():
            if value:
                out.say(f"  {key:<10} {_words(value)}")
        if table is not None:
            out.say(f"\n{table}")
            record["layers"] = [asdict(layer) for layer in table.layers]
        out.data(record)
        return
    if show:
        raise InvalidParameter(
            "castalia models: --describe must be given one system; got none. Write `castalia "
            "models NAME --describe`."
        )
    wanted = None if search is None else {record.name for record in find(search)}
    rows = [row for row in models_table() if wanted is None or row["name"] in wanted]
    rows = [row for row in rows if name is None or row["name"] in several]
    heads = ["name", "tasks", "data", "summary"]
    out.table(heads, [[row[h] for h in heads] for row in rows])
    out.data({"models": rows})


def _words(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{k}={v}" for k, v in value.items())
    return str(value)
