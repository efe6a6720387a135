"""Every error as one sentence and an exit code: 0 fine, 2 the user can mend it, 1 a bug.

SIGTERM gives 75, for schedulers: the same command goes on.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

from castalia.errors import CastaliaError, CastaliaWarning
from castalia.utils.memory_errors import is_out_of_memory
from castalia.utils.preemption import REQUEUE, Preempted
from castalia.utils.text import shorten

__all__ = ["DEBUG", "SAID", "USER", "Interrupted", "guarded"]

DEBUG = "CASTALIA_DEBUG"
SAID = "CASTALIA_SAID"  # a folder with a file a sentence that one of several processes has said
_NEW = os.O_CREAT | os.O_EXCL
USER, BUG = 2, 1


class Interrupted(Exception):  # noqa: N818 - not an error
    """Ctrl-C or SIGTERM; the words say how to go on."""

    def __init__(self, words: str, code: int = USER) -> None:
        super().__init__(words)
        self.code = code


def guarded(verb: Callable[..., None]) -> Callable[..., None]:
    """Wrap a verb so that no error leaves it as a traceback."""

    @functools.wraps(verb)
    def wrapped(*args: Any, **options: Any) -> None:
        as_json = bool(options.get("as_json"))
        try:
            with _own_warnings(verb.__name__):
                verb(*args, **options)
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except Interrupted as stop:
            _leave(str(stop), stop.code, as_json)
        except Preempted:
            _leave("Ended by SIGTERM.", REQUEUE, as_json)
        except KeyboardInterrupt:
            _leave("Interrupted.", USER, as_json)
        except CastaliaError as error:
            _leave(str(error), USER, as_json)
        except OSError as error:
            _leave(_system_words(verb.__name__, error), USER, as_json)
        except Exception as error:
            if is_out_of_memory(error):
                _leave(f"{verb.__name__}: there is not enough memory for this data.", USER, as_json)
            _leave(_bug_words(error), BUG, as_json)

    return wrapped


@contextmanager
def _own_warnings(verb: str) -> Iterator[None]:
    """Write our warnings as notes, and none of other libraries; a script's stay its own."""
    if verb == "doctor" or os.environ.get(DEBUG):
        yield
        return

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, CastaliaWarning):
            typer.echo(f"Note: {message}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave(words: str, code: int, as_json: bool) -> None:
    """Say one sentence on standard error, and as JSON where that was asked for; then end."""
    line = " ".join(words.split())
    if not _is_new(line):
        raise typer.Exit(code)
    typer.echo(line if line.startswith("castalia") else f"castalia: {line}", err=True)
    if as_json:
        typer.echo(json.dumps({"error": line, "exit_code": code}, ensure_ascii=False))
    raise typer.Exit(code)


def _is_new(line: str) -> bool:
    """Whether no other process of the same command (``--workers``) has said a sentence."""
    folder = os.environ.get(SAID)
    if folder is None:
        return True
    with suppress(OSError):
        os.open(os.path.join(folder, hashlib.sha256(line.encode()).hexdigest()), _NEW)
        return True
    return not os.path.isdir(folder)


def _system_words(verb: str, error: OSError) -> str:
    where = f"`{error.filename}` " if error.filename else ""
    return (
        f"{verb}: {where}cannot be used ({error.strerror or error}). Nothing saved before is lost."
    )


def _bug_words(error: Exception) -> str:
    what = f"{type(error).__name__}: {shorten(str(error), 200)}"
    if os.environ.get(DEBUG):
        traceback.print_exc()
        return f"this is a bug in Castalia ({what})."
    with tempfile.NamedTemporaryFile(
        "w", prefix="castalia-", suffix=".log", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exc(file=file)
    return f"this is a bug in Castalia ({what}); the traceback is in {file.name}."
