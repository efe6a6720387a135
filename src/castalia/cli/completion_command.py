"""``castalia completion``."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["VARIABLE", "completion"]

VARIABLE = "_CASTALIA_COMPLETE"  # set by the shell while it asks for words
SHELLS = ("bash", "zsh", "fish")


def completion(
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")],
) -> None:
    """Print the lines that make a shell complete commands and options.

    For bash: `castalia completion bash >> ~/.bashrc`.
    """
    from typer._completion_shared import get_completion_script

    from castalia.errors import InvalidParameter
    from castalia.utils.text import did_you_mean, listing

    if shell not in SHELLS:
        raise InvalidParameter(
            f"completion: the shell must be {listing(SHELLS)}; got {shell!r}."
            f"{did_you_mean(shell, SHELLS)}"
        )
    typer.echo(
        get_completion_script(prog_name="castalia", complete_var=VARIABLE, shell=shell), nl=True
    )
