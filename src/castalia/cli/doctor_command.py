"""``castalia doctor``: run a training script unchanged and say what is wrong with its training."""

from __future__ import annotations

import contextlib
import os
import random
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from castalia.errors import InvalidParameter

if TYPE_CHECKING:
    from castalia.diagnose.script import Session

__all__ = ["doctor"]

CALLER = "castalia doctor"
NOTHING = (
    "No training was seen in this process, so there is nothing to diagnose "
    "(worker processes are not watched)."
)
INTERRUPTED = 130  # as shells say it: 128 and the number of the signal


def doctor(
    script: Annotated[
        str, typer.Argument(help="The training script; with -m, a module as in `python -m`.")
    ],
    args: Annotated[list[str] | None, typer.Argument(help="Its own arguments.")] = None,
    module: Annotated[bool, typer.Option("-m", help="Run a module instead of a file.")] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for diagnosis.json and diagnosis.html.")
    ] = Path(),
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing.")] = False,
    mute: Annotated[
        list[str] | None, typer.Option(help="A finding not wanted, such as CST207; repeatable.")
    ] = None,
    files: Annotated[bool, typer.Option("--files/--no-files", help="Write the two files.")] = True,
) -> None:
    """Run a training script unchanged, watch it, and say what is wrong with the training.

    Options come before the script; all that follows it is the script's own. The exit code is the
    script's.
    """
    _check_mute(mute or [])
    folder = _folder(out) if files else None
    visit = _Visit(tuple(mute or ()))
    code = visit.run(script, args or [], module)
    if visit.at_home:
        code = visit.tell(code, _subject(script, module), folder, quiet)
    raise SystemExit(code)


def _check_mute(codes: list[str]) -> None:
    for code in codes:
        if not re.fullmatch(r"CST\d{3}", code):  # the vocabulary itself would bring in torch
            raise InvalidParameter(f"doctor: `--mute` must be a code such as CST207; got {code}.")


def _folder(out: Path) -> Path:
    folder = out.absolute()  # the script may go elsewhere
    if folder.exists() and not folder.is_dir():
        raise InvalidParameter(f"doctor: `--out` must be a folder; got '{out}', a file.")
    return folder


class _Visit:
    """One run of a script under watch."""

    def __init__(self, mute: tuple[str, ...]) -> None:
        self.mute = mute
        self.session: Session | None = None
        self.fault = ""
        self.stdout, self.process = sys.stdout, os.getpid()
        self.place = _Place()

    @property
    def at_home(self) -> bool:
        """Whether this is the process to speak: no fork of it, and the first of several."""
        return os.getpid() == self.process and os.environ.get("RANK", "0") == "0"

    def run(self, script: str, args: list[str], module: bool) -> int:
        """Run the script as Python would; return its exit code."""
        from castalia.utils.scripts import NoProgram, after_import, run_as_main

        if self.at_home:
            after_import("torch", self._begin)
        try:
            run_as_main(script, args, module=module, caller="doctor")
        except NoProgram:
            raise
        except SystemExit as end:
            return _exit_code(end)
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException as error:
            _show(error)
            return 1
        return 0

    def _begin(self) -> None:
        """Start watching, now that torch is there; before, the script may have set it up."""
        try:
            with self.place.ours():
                from castalia.diagnose.script import Session

                self.session = Session(self.mute)
            self.session.start()
        except Exception as error:
            self.session, self.fault = None, f"{type(error).__name__}: {error}"

    def tell(self, code: int, subject: str, folder: Path | None, quiet: bool) -> int:
        """Print and write what was found; return the exit code."""
        try:
            with self.place.ours():
                self._tell(subject, folder, quiet)
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:
            self.fault = self.fault or f"{type(error).__name__}: {error}"
        if self.fault:
            _say(sys.stderr, f"{CALLER}: the diagnosis failed ({self.fault}).")
        return code

    def _tell(self, subject: str, folder: Path | None, quiet: bool) -> None:
        if self.session is not None:
            self.session.stop()
        if self.session is None or not self.session.saw_training:
            self._tell_nothing(subject, folder, quiet)
            return
        if quiet and folder is None:
            return
        found = self.session.diagnosis(subject)
        if not quiet:
            _say(self.stdout, f"\n{found}")
        if folder is not None:
            data, page = _write(found, folder)
            if not quiet:
                _say(self.stdout, f"Written: {data} and {page.name}")

    def _tell_nothing(self, subject: str, folder: Path | None, quiet: bool) -> None:
        if not quiet:
            _say(self.stdout, f"{CALLER}: {NOTHING[0].lower()}{NOTHING[1:]}")
        if folder is not None:
            from castalia.diagnose import Diagnosis

            found = self.session.diagnosis(subject) if self.session else Diagnosis(subject=subject)
            _write(replace(found, notes=(NOTHING, *found.notes)), folder)


def _subject(script: str, module: bool) -> str:
    return script if module else Path(script).name


def _exit_code(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return int(end.code or 0)
    _say(sys.stderr, str(end.code))
    return 1


def _show(error: BaseException) -> None:
    """Show an error of the script as Python would."""
    from castalia.utils.scripts import without_frames

    home = Path(__file__).parents[1]
    ours = ("cli", "utils/scripts.py", "diagnose/script", "diagnose/monitor")
    without_frames(error, [str(home / place) for place in ours])
    sys.excepthook(type(error), error, error.__traceback__)


def _say(stream: TextIO | None, words: str) -> None:
    """Write a line; a stream that is closed or cannot spell it is no reason to fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        for other in (sys.stdout, sys.stderr):
            other.flush()
        spelling = getattr(stream, "encoding", None) or "utf-8"
        stream.write(words.encode(spelling, "replace").decode(spelling) + "\n")  # type: ignore
        stream.flush()  # type: ignore[union-attr]


def _write(found: Any, folder: Path) -> tuple[Path, Path]:
    from castalia.utils.atomic_files import atomic_write, writing

    data, page = folder / "diagnosis.json", folder / "diagnosis.html"
    with writing(CALLER, folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(data, found.to_json())
        found.report(page)
    return data, page


class _Place:
    """Where our packages are imported from, which a script's own files must not shadow."""

    def __init__(self) -> None:
        self.path = sys.path[0 if sys.flags.safe_path else 1 :]  # without a script's folder
        self.shadowed: dict[str, Any] = {}

    @contextlib.contextmanager
    def ours(self) -> Iterator[None]:
        """Import and work as if there were no script; then leave its names to the script."""
        theirs, before = list(sys.path), set(sys.modules)
        sys.modules.update(self.shadowed)
        sys.path[:] = self.path
        try:
            with warnings.catch_warnings(), _same_random_numbers():
                warnings.simplefilter("ignore")
                yield
        finally:
            sys.path[:] = theirs
            taken = _modules_of({*theirs} - {*self.path}) - sys.stdlib_module_names - {"castalia"}
            for name in set(sys.modules) - before:
                if name.split(".")[0] in taken:
                    self.shadowed[name] = sys.modules.pop(name)


@contextlib.contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Keep the script's random numbers from packages that draw some when they are imported."""
    states = [(random.setstate, random.getstate())]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"].random
        states.append((numpy.set_state, numpy.get_state()))
    try:
        yield
    finally:
        for put_back, state in states:
            put_back(state)


def _modules_of(folders: set[str]) -> set[str]:
    """Return the names that files and folders can be imported under."""
    names: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            names |= {name.removesuffix(".py") for name in os.listdir(folder or ".")}
    return names
