"""``castalia serve``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from castalia.cli.fit_options import ContenderName

__all__ = ["serve"]

TOKEN = "CASTALIA_TOKEN"


def serve(
    models: Annotated[
        list[str], typer.Argument(help="Folders of runs or saved models; NAME=FOLDER names one.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port.")] = 8000,
    name: ContenderName = None,
    batch: Annotated[int, typer.Option(help="Most rows that are computed together.")] = 256,
    seconds: Annotated[float, typer.Option(help="Time for an answer.")] = 30.0,
    megabytes: Annotated[float, typer.Option(help="Largest request.")] = 8.0,
    watch: Annotated[
        float | None,
        typer.Option(help="Seconds between checks for a new version in the folders [never]."),
    ] = None,
) -> None:
    """Serve saved models over HTTP: JSON rows, Open Inference Protocol, OpenAI's API.

    With CASTALIA_TOKEN set, clients must send it as a bearer token.
    """
    from castalia.errors import InvalidParameter
    from castalia.serve import ServeSettings
    from castalia.serve import serve as run
    from castalia.serve.served_model import ServedModel

    named = dict(_named(word) for word in models)
    if len(named) < len(models):
        raise InvalidParameter("serve: every model must have another name; write NAME=FOLDER.")
    settings = ServeSettings(
        token=os.environ.get(TOKEN) or None,
        most_bytes=int(1e6 * megabytes),
        seconds=seconds,
        batch=batch,
        watch=watch,
    )
    served = {key: ServedModel(key, folder, name) for key, folder in named.items()}
    for key, model in served.items():
        typer.echo(f"{key}: {model.current.system}, version {model.current.version}", err=True)
    typer.echo(f"http://{host}:{port}/predict", err=True)
    run(served, settings, host, port)


def _named(word: str) -> tuple[str, str]:
    """Return the name and the folder of a model."""
    name, found, folder = word.partition("=")
    if found and not Path(word).exists():
        return name, folder
    place = Path(word).resolve()
    return place.parent.name if place.name == "model" else place.name, word
