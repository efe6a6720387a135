"""``castalia run``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output

__all__ = ["run"]


def run(
    file: Annotated[str, typer.Argument(help="ONNX file that `castalia export` wrote.")],
    data: Annotated[
        list[str], typer.Argument(help="Table, folder or files of images, or a text a line.")
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="File to write: .csv, .parquet or .jsonl [CSV to stdout]."
        ),
    ] = None,
    text: options.TextColumn = None,
    header: options.Header = True,
    encoding: options.Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict rows with an exported ONNX file."""
    from castalia.export import OnnxModel
    from castalia.method.predictions import Predictions

    model = OnnxModel(file)
    rows, notes = _rows(model, data, text, header, encoding)
    for note in notes:
        typer.echo(f"Note: {note}", err=True)
    found = Predictions(model.answers(rows), notes)
    path = None if out is None else found.write(out)
    if as_json:
        content = {"rows": len(found), "notes": found.notes}
        Output(True).data(content | ({"out": path} if path else {"predictions": found.rows()}))
    elif path is None:
        typer.echo(found.to_bytes(".csv").decode(), nl=False)
    else:
        typer.echo(f"{len(found):,} predictions in {path}")


def _rows(
    model: Any, data: list[str], text: str | None, header: bool, encoding: str | None
) -> tuple[Any, list[str]]:
    """Read rows of the kind that a file takes."""
    from castalia.method.fit_table import load_table
    from castalia.method.images.fit_images import read_unlabelled
    from castalia.method.texts.fit_texts import TEXTS, read_lines

    if model.kind == "image":
        return read_unlabelled(data)
    column = text or model.facts.get("text")
    if model.kind == "text" and data[0].lower().endswith(TEXTS):
        return read_lines(data[0], "run"), []
    table, notes = load_table(
        data[0], header=header, encoding=encoding, formats=model.facts.get("formats")
    )
    if model.kind == "text":
        return list(table.column(column or table.columns[0])), notes
    return table, notes
