"""``castalia studio``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["studio"]

FOLDER = "castalia-runs"


def studio(
    folder: Annotated[str, typer.Argument(help="Folder of runs.")] = FOLDER,
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8765,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    tensorboard: Annotated[
        str | None,
        typer.Option(help="Folder of TensorBoard's event files, whose scalars become runs first."),
    ] = None,
) -> None:
    """Show runs in a local web page: compare them, see what the doctor found, try the models.

    Only this machine can open it, with the address that is printed.
    """
    from pathlib import Path

    from castalia.errors import InvalidData
    from castalia.studio import open_studio

    if folder != FOLDER and not Path(folder).is_dir():
        raise InvalidData(f"studio: `{folder}` must be a folder of runs; there is none.")
    if tensorboard is not None:
        from castalia.studio.tensorboard_events import import_events
        from castalia.train.runs import RunStore

        with RunStore(folder) as store:
            names = import_events(tensorboard, store)
        typer.echo(f"From {tensorboard}: {', '.join(names)}")
    open_studio(Path(folder), port, browser, typer.echo)
