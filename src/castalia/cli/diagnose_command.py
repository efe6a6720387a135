"""``castalia diagnose``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["diagnose"]


def diagnose(
    run: Annotated[str, typer.Argument(help="Folder of a run.")],
    html: Annotated[str | None, typer.Option(help="Page to write.")] = None,
    json: Annotated[str | None, typer.Option(help="JSON file to write; - for the screen.")] = None,
    mute: Annotated[
        list[str] | None, typer.Option(help="Code not wanted; may be repeated.")
    ] = None,
) -> None:
    """Say what the doctor found while a run was trained."""
    from pathlib import Path

    from castalia.diagnose.estimators import stored_diagnosis
    from castalia.utils.atomic_files import atomic_write, writing

    found = stored_diagnosis(run).mute(*(mute or []))
    if json == "-":
        typer.echo(found.to_json())
        return
    typer.echo(str(found))
    if html is not None:
        typer.echo(f"Page: {found.report(html).resolve()}")
    if json is not None:
        with writing("diagnose", Path(json)):
            atomic_write(json, found.to_json())
