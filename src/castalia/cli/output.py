"""Words and tables on standard output, or on standard error when that belongs to JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

__all__ = ["AsJson", "Output", "finite_json"]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]


class Output:
    """Where a verb writes.

    Parameters
    ----------
    as_json
        Whether standard output is for one JSON object; words then go to standard error.
    """

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        stream = sys.stderr if as_json else sys.stdout
        self.terminal = bool(stream is not None and stream.isatty())

    def say(self, words: str = "", style: str = "") -> None:
        """Write one line."""
        colours: dict[str, dict[str, Any]] = {
            "head": {"bold": True},
            "good": {"fg": "green"},
            "bad": {"fg": "red"},
        }
        look = colours.get(style, {}) if self.terminal else {}
        typer.echo(typer.style(words, **look) if look else words, err=self.as_json)

    def wrapped(self, words: str, mark: str = "", style: str = "") -> None:
        """Write a paragraph, broken at the width of the terminal and indented under its mark."""
        import shutil
        import textwrap

        width = min(shutil.get_terminal_size().columns, 100) if self.terminal else 10_000
        for line in textwrap.wrap(
            words, width, initial_indent=f"  {mark}", subsequent_indent=" " * (2 + len(mark))
        ):
            self.say(line, style)

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> None:
        """Write a table; columns whose number is in ``right`` are aligned to the right."""
        if self.terminal:
            self._rich_table(heads, rows, right)
            return
        widths = [max(len(str(line[i])) for line in (heads, *rows)) for i in range(len(heads))]
        for line in (heads, *rows):
            cells = (
                str(c).rjust(w) if str(i) in right else str(c).ljust(w)
                for i, (c, w) in enumerate(zip(line, widths, strict=True))
            )
            self.say("  " + "  ".join(cells).rstrip())

    def _rich_table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: str) -> None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, head in enumerate(heads):
            table.add_column(head, justify="right" if str(i) in right else "left")
        for row in rows:
            table.add_row(*(str(cell).replace("[", "\\[") for cell in row))
        Console(stderr=self.as_json).print(table)

    def data(self, found: Any) -> None:
        """Write the JSON object, when it is wanted."""
        if self.as_json:
            typer.echo(json.dumps(finite_json(found), ensure_ascii=False))


def finite_json(value: Any) -> Any:
    """Replace numbers that JSON lacks by None, and paths by text.

    >>> finite_json({"a": (float("nan"), 1)})
    {'a': [None, 1]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): finite_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(v) for v in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)
