"""The verbs of ``castalia``, and what holds for all of them.

Nothing heavy is imported here: each verb brings in what it needs when it runs, so help stays quick.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Annotated

import typer

from castalia import __version__
from castalia.cli.ask_command import ask
from castalia.cli.completion_command import VARIABLE, completion
from castalia.cli.course_command import course
from castalia.cli.cure_command import cure
from castalia.cli.demo_command import demo
from castalia.cli.diagnose_command import diagnose
from castalia.cli.doctor_command import doctor
from castalia.cli.error_exit import DEBUG, guarded
from castalia.cli.evaluate_command import evaluate
from castalia.cli.explain_command import explain
from castalia.cli.export_command import export
from castalia.cli.fit_command import fit
from castalia.cli.generate_command import generate
from castalia.cli.lab_command import lab
from castalia.cli.models_command import models
from castalia.cli.predict_command import predict
from castalia.cli.report_command import report
from castalia.cli.run_command import run
from castalia.cli.runs_command import runs
from castalia.cli.sample_command import sample
from castalia.cli.serve_command import serve
from castalia.cli.studio_command import studio
from castalia.cli.tune_command import tune
from castalia.utils.preemption import preempt

__all__ = ["app", "main"]

app = typer.Typer(
    name="castalia",
    help="Deep learning with scikit-learn's API, and a doctor for any PyTorch training.",
    rich_markup_mode=None,  # rich takes longer to import than the rest together
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"castalia {__version__}")
        raise typer.Exit()


@app.callback()
def _everything(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option(help="Show the traceback of a bug.")] = False,
) -> None:
    if debug:
        os.environ[DEBUG] = "1"
    if context.invoked_subcommand != "doctor":  # which leaves a script's environment alone
        # Idle threads that spin slow small steps many times over; torch reads this when imported.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        with suppress(ValueError):  # in another thread than the main one
            signal.signal(signal.SIGTERM, preempt)


for verb in (
    fit,
    tune,
    predict,
    generate,
    sample,
    ask,
    evaluate,
    explain,
    export,
    run,
    serve,
    studio,
    report,
    diagnose,
    cure,
    runs,
    models,
    lab,
    course,
    demo,
    completion,
):
    app.command()(guarded(verb))
# What follows the script's name belongs to the script.
app.command(context_settings={"allow_interspersed_args": False})(guarded(doctor))


def main() -> None:
    """Run the command line."""
    if VARIABLE in os.environ:  # a shell asks for words
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    app(prog_name="castalia")
