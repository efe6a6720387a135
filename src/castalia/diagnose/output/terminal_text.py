"""A diagnosis as lines of text, plain or coloured: both are made from the same lines."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from castalia.diagnose.diagnosis_record import DiagnosisRecord
from castalia.diagnose.finding_record import Finding
from castalia.diagnose.output.verdict_text import EXPLAINS, NOTES, verdict

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text


__all__ = ["Coloured", "Line", "lines", "plain"]

WIDTH = 96
TIED = "\u00a0"  # a space at which no line ends
COLOURS = {"error": "bold red", "warning": "bold yellow", "info": "bold cyan"}


@dataclass(frozen=True)
class Line:
    """A paragraph: pieces of text with their styles, hanging under a mark."""

    pieces: tuple[tuple[str, str], ...] = ()
    indent: int = 0
    mark: str = ""

    def __str__(self) -> str:
        """Return the text without styles."""
        return "".join(text for text, _ in self.pieces)


def lines(diagnosis: DiagnosisRecord) -> Iterator[Line]:
    """Yield the paragraphs of a diagnosis."""
    about = f"Diagnosis of {diagnosis.subject}" if diagnosis.subject else "Diagnosis"
    colour = COLOURS[diagnosis.worst or "info"] if diagnosis else "bold green"
    yield Line(((f"{about}: ", "bold"), (f"{verdict(diagnosis)}.", colour)))
    for found in diagnosis.findings:
        yield Line()
        yield from _finding(found, 0)
    if diagnosis.notes:
        yield Line()
        yield Line(((NOTES, "dim"),))
    for note in diagnosis.notes:
        yield Line(((note, "dim"),), 2, "· ")


def _finding(found: Finding, indent: int) -> Iterator[Line]:
    place = f" in `{found.where}`" if found.where else ""
    name = (f" {found.name}", "bold"), (place, "")
    weight = (f"  {found.severity}", COLOURS[found.severity]), (f"  {found.confidence:.2f}", "dim")
    yield Line(((found.code, "bold"), *name, *weight), indent)
    inner = indent + 2
    if found.source:
        yield Line(((f"{found.source}  ", "bold"), (found.source.text, "dim")), inner)
    if found.summary:
        yield Line(((found.summary, ""),), inner)
    for evidence in found.evidence:
        yield Line(((str(evidence), "dim"),), inner, "· ")
    for i, text in enumerate(str(found.remedy).splitlines()):
        yield Line(((text, "green"),), inner, "  " if i else "→ ")
    yield Line(((f"castalia explain {found.code}", "dim"),), inner)
    if found.symptoms:
        yield Line(((EXPLAINS, ""),), inner)
    for symptom in found.symptoms:
        yield from _finding(symptom, inner + 2)


def plain(diagnosis: DiagnosisRecord, width: int = WIDTH) -> str:
    """Return a diagnosis as text without colours."""
    return "\n".join(part for line in lines(diagnosis) for part in _wrap(line, width))


def _wrap(line: Line, width: int) -> list[str]:
    room = max(width, line.indent + 40)  # deep symptoms keep a readable column
    start = " " * line.indent + line.mark
    parts = textwrap.wrap(
        str(line).replace(" %", f"{TIED}%"),
        room,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [part.replace(TIED, " ") for part in parts] or [""]


class Coloured:
    """A diagnosis that ``rich`` prints in colour, at the width of the terminal.

    Parameters
    ----------
    diagnosis
        What to write.

    Examples
    --------
    >>> from rich.console import Console
    >>> from castalia.diagnose import Diagnosis
    >>> Console(no_color=True, width=60).print(Coloured(Diagnosis(subject="train.py")))
    Diagnosis of train.py: nothing wrong was found.
    """

    def __init__(self, diagnosis: DiagnosisRecord) -> None:
        self.diagnosis = diagnosis

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Yield the lines, wrapped."""
        from rich.text import Text

        for line in lines(self.diagnosis):
            start = " " * line.indent + line.mark
            room = max(min(options.max_width, WIDTH) - len(start), 40)
            text = Text.assemble(*line.pieces)
            for i, part in enumerate(text.wrap(console, room) or [text]):
                part.rstrip()
                yield Text(start if i == 0 else " " * len(start)) + part
