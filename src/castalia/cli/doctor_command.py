"""``castalia doctor``: run a training script unchanged and say what is wrong with its training."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from castalia.errors import InvalidParameter

if TYPE_CHECKING:
    from castalia.cli.doctor_page import LivePage
    from castalia.diagnose.diagnosis import Diagnosis
    from castalia.diagnose.finding_record import Finding
    from castalia.diagnose.output.webhook import Webhook
    from castalia.diagnose.script import Session

__all__ = ["doctor"]

CALLER = "castalia doctor"
NOTHING = (
    "No training was seen in this process, so there is nothing to diagnose "
    "(worker processes are not watched)."
)
INTERRUPTED = 130  # as shells say it: 128 and the number of the signal
FOUND = 3  # `--fail-on` found something, or `--stop-on` ended the script


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
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show the training in a web page while it runs; or print nothing before the end. "
            "By default errors are printed as soon as they are certain.",
            show_default=False,
        ),
    ] = None,
    stop_on: Annotated[
        str, typer.Option(help="'error': end the script, with exit code 3, at a certain error.")
    ] = "",
    fail_on: Annotated[
        str, typer.Option(help="'error' or 'warning': exit code 3 when that bad or worse is found.")
    ] = "",
    patch: Annotated[
        bool, typer.Option("--patch", help="Print remedies as a diff of the script.")
    ] = False,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here, for CI.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write SARIF here, for code hosts.")] = None,
    webhook: Annotated[str, typer.Option(help="Post findings as JSON to this address.")] = "",
) -> None:
    """Run a training script unchanged, watch it, and say what is wrong with the training.

    Options come before the script; all that follows it is the script's own, but for a last
    `--live` where neither `--live` nor `--no-live` stands before it. The exit code is the script's,
    or 3 where `--stop-on` or `--fail-on` asks for it.
    """
    if live is None and args and args[-1] == "--live":
        args, live = args[:-1], True
    _check_mute(mute or [])
    _check_severity("--stop-on", stop_on, ("error",))
    _check_severity("--fail-on", fail_on, ("error", "warning"))
    subject = _subject(script, module)
    wishes = _Wishes(
        subject=subject,
        folder=_folder(out) if files else None,
        quiet=quiet,
        mute=tuple(mute or ()),
        live=live is not False and not quiet,
        page=live is True,
        stop=bool(stop_on),
        fail_on=fail_on,
        patch=patch,
        junit=junit and junit.absolute(),  # the script may go elsewhere
        sarif=sarif and sarif.absolute(),
        webhook=_webhook(webhook, subject),
    )
    visit = _Visit(wishes)
    code = visit.run(script, args or [], module)
    if visit.at_home:
        code = visit.tell(code)
    raise SystemExit(code)


@dataclass(frozen=True)
class _Wishes:
    """What the options ask for."""

    subject: str
    folder: Path | None
    quiet: bool
    mute: tuple[str, ...]
    live: bool
    page: bool
    stop: bool
    fail_on: str
    patch: bool
    junit: Path | None
    sarif: Path | None
    webhook: Webhook | None

    @property
    def silent(self) -> bool:
        """Whether nobody would see a diagnosis."""
        written = self.folder or self.junit or self.sarif or self.webhook or self.page
        return self.quiet and not (written or self.fail_on)


def _check_severity(option: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        names = " or ".join(f"'{name}'" for name in known)
        raise InvalidParameter(f"doctor: `{option}` must be {names}; got {value!r}.")


def _page(subject: str, command: str) -> LivePage:
    from castalia.cli.doctor_page import LivePage

    return LivePage(subject, command)


def _webhook(url: str, subject: str) -> Webhook | None:
    if not url:
        return None
    from castalia.diagnose.output.webhook import Webhook

    return Webhook(url, subject)


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

    def __init__(self, wishes: _Wishes) -> None:
        self.wishes = wishes
        self.session: Session | None = None
        self.fault = ""
        self.stdout, self.stderr, self.process = sys.stdout, sys.stderr, os.getpid()
        self.place = _Place()
        self.page: LivePage | None = None
        self.command = shlex.join(["castalia", *sys.argv[1:]])

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
        wishes = self.wishes
        try:
            with self.place.ours():
                from castalia.diagnose.script import Session

                wanted = wishes.live or wishes.page or wishes.webhook
                listener = self._live if wanted else None
                if wishes.page:
                    self.page = _page(wishes.subject, self.command)
                beat = self.page.beat if self.page else None
                self.session = Session(wishes.mute, listener, wishes.stop, beat)
            self.session.start()
        except Exception as error:
            self.session, self.fault = None, f"{type(error).__name__}: {error}"

    def _live(self, found: Finding) -> None:
        """Print a line while the script runs; what the script itself prints stays as it is."""
        if self.wishes.webhook:
            self.wishes.webhook.post(found)
        if self.page:
            self.page.finding(found)
        if self.wishes.live:
            place = f" ({found.source})" if found.source else ""
            _say(self.stderr, f"{CALLER}: {found}{place}")

    def tell(self, code: int) -> int:
        """Print and write what was found; return the exit code."""
        found = None
        try:
            with self.place.ours():
                found = self._tell()
                if self.page and self.session:
                    self.page.end(self.session.records, found, code)
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:
            self.fault = self.fault or f"{type(error).__name__}: {error}"
        if self.fault:
            _say(sys.stderr, f"{CALLER}: the diagnosis failed ({self.fault}).")
        return code or (FOUND if found and self._fails(found) else 0)

    def _fails(self, found: Diagnosis) -> bool:
        serious = {"error": ("error",), "warning": ("error", "warning")}
        return found.worst in serious.get(self.wishes.fail_on, ())

    def _tell(self) -> Diagnosis | None:
        if self.session is not None:
            self.session.stop()
        if self.session is None or not self.session.saw_training:
            self._tell_nothing()
            return None
        if self.wishes.silent:
            return None
        found = self.session.diagnosis(self.wishes.subject)
        self._print(f"\n{found}")
        if self.wishes.folder is not None:
            data, page = _write(found, self.wishes.folder)
            self._print(f"Written: {data} and {page.name}")
        self._pass_on(found)
        return found

    def _tell_nothing(self) -> None:
        self._print(f"{CALLER}: {NOTHING[0].lower()}{NOTHING[1:]}")
        if self.wishes.folder is not None:
            from castalia.diagnose import Diagnosis

            subject = self.wishes.subject
            found = self.session.diagnosis(subject) if self.session else Diagnosis(subject=subject)
            _write(replace(found, notes=(NOTHING, *found.notes)), self.wishes.folder)

    def _pass_on(self, found: Diagnosis) -> None:
        """Give the diagnosis to CI servers, code hosts and web addresses; show it as a diff."""
        wishes = self.wishes
        if wishes.patch:
            from castalia.diagnose.script.source_patch import proposed_diff

            self._print(proposed_diff(found) or "No remedy can be written as a diff.")
        if wishes.junit:
            _put(wishes.junit, found.to_junit(wishes.fail_on or "warning"))
        if wishes.sarif:
            _put(wishes.sarif, found.to_sarif())
        if wishes.webhook:
            for one in found.findings:
                wishes.webhook.post(one)
            wishes.webhook.close()
            for fault in wishes.webhook.faults[:1]:
                _say(sys.stderr, f"{CALLER}: `--webhook` was not reached ({fault}).")

    def _print(self, words: str) -> None:
        if not self.wishes.quiet:
            _say(self.stdout, words)


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


def _put(path: Path, text: str) -> None:
    from castalia.utils.atomic_files import atomic_write, writing

    with writing(CALLER, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text)


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
