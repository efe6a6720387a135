"""``castalia predict``."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from castalia.cli import fit_options as options
from castalia.cli.output import AsJson, Output
from castalia.errors import InvalidParameter

__all__ = ["predict"]


def predict(
    model: options.ModelFolder,
    data: Annotated[
        list[str],
        typer.Argument(
            help="Table with the columns the model was trained on, or several: a folder or a "
            "pattern such as 'parts/*.parquet'; images: folders and files; or "
            "a text file, one text a line; or a list of edges and a table of nodes, or of "
            "pairs; or a folder of graphs."
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write: .csv, .parquet or .jsonl [CSV to stdout]. Or a folder, which gets "
            "a file for each of several tables; run the same command again to go on.",
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
    cluster: options.Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Predict the rows of a table, images or texts with a saved model."""
    from castalia.data.tables.joined_source import table_files
    from castalia.method import predict as predict_rows
    from castalia.utils.process_ranks import is_first

    files = table_files(data[0] if len(data) == 1 else data)
    if files is not None and out is not None and _is_folder(out):
        kept = {"keep": keep or (), "encoding": encoding, "formulas": formulas}
        with options.cluster_at(cluster):
            _predict_files(model, files, out, as_json, name=name, text=text, strict=strict, **kept)
        return
    if cluster is not None:
        raise InvalidParameter(
            "predict: `--cluster` divides files among workers; give several tables, and a folder "
            "as `--out`."
        )
    if not is_first():  # of several processes one does it
        return
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


def _is_folder(out: str) -> bool:
    """Whether answers go to a folder: one that is there, or a name without an ending."""
    return os.path.isdir(out) or out.endswith("/") or not os.path.splitext(out)[1]


def _predict_files(model: str, files: list[Any], out: str, as_json: bool, **options: Any) -> None:
    """Predict file by file, and say what came of each."""
    from castalia.method.batch_predictions import predict_files

    words, rows, there = Output(as_json), 0, 0
    for path, count in predict_files(model, files, out, **options):
        there += count is None
        rows += count or 0
        if count is not None:
            words.say(f"{count:,} predictions in {path}")
    if there:
        words.say(f"{there:,} of {len(files):,} files were there before.")
    words.data({"rows": rows, "files": len(files), "before": there, "out": out})
