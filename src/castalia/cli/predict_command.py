"""``castalia predict``."""

from __future__ import annotations

from typing import Annotated

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

__all__ = ["predict"]


def predict(
    model: options.ModelFolder,
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table with the columns the model was trained on; images: folders and files; or "
            "a text file, one text a line; or a list of edges and a table of nodes, or of "
            "pairs; or a folder of graphs."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="File to write: .csv, .parquet or .jsonl [CSV to stdout]."
        ),
    ] = None,
    name: options.ContenderName = None,
    text: options.TextColumn = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse values never seen in training.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column to repeat beside the predictions, such as id; may be repeated."),
    ] = None,
    formulas: Annotated[
        bool,
        typer.Option(
            "--formulas",
            help="Leave text that begins with =, +, -, @ as it is; by default an apostrophe keeps "
            "spreadsheets from running it.",
        ),
    ] = False,
    header: options.Header = True,
    encoding: options.Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table, images or texts with a saved model."""
    from castalia.method import predict as predict_rows

    found = predict_rows(
        model,
        data,
        name=name,
        text=text,
        header=header,
        strict=strict,
        keep=keep or (),
        encoding=encoding,
    )
    for note in found.notes:
        typer.echo(f"Note: {note}", err=True)
    path = None if out is None else found.write(out, formulas=formulas)
    if as_json:
        content = {"rows": len(found), "notes": found.notes}
        Output(True).data(content | ({"out": path} if path else {"predictions": found.rows()}))
    elif path is None:
        typer.echo(found.to_bytes(".csv", formulas=formulas).decode(), nl=False)
    else:
        typer.echo(f"{len(found):,} predictions in {path}")
