"""``castalia ask``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

__all__ = ["ask"]


def ask(
    model: options.ModelFolder,
    pool: Annotated[str, typer.Argument(help="Table of rows without labels.")],
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="File to write: .csv, .parquet or .jsonl [stdout]."),
    ] = None,
    n: Annotated[int, typer.Option("--n", help="Rows to ask for.")] = 10,
    query: Annotated[str, typer.Option(help="margin, entropy or uncertainty.")] = "margin",
    name: options.ContenderName = None,
    as_json: AsJson = False,
) -> None:
    """Write the rows whose labels a saved classifier would learn most from."""
    from castalia.method import ask as ask_rows

    found = ask_rows(model, pool, n=n, query=query, name=name)
    path = None if out is None else found.write(out)
    if as_json:
        Output(True).data({"rows": found.rows()} | ({"out": path} if path else {}))
    elif path is None:
        typer.echo(found.to_bytes(".csv").decode(), nl=False)
    else:
        typer.echo(f"{len(found):,} rows to label in {path}")
