"""Lines of the user's own code: where a loss, an optimizer or a layer comes from."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FrameType

from castalia.diagnose.finding_record import Finding, SourceLine

__all__ = ["calling_line", "class_line", "located"]

# Where a finding is caused: the first of these that is known. "layer" is the layer it names.
CAUSED_BY = {
    "CST101": ("optimizer", "step"),
    "CST102": ("optimizer", "step"),
    "CST103": ("layer", "module"),
    "CST104": ("backward",),
    "CST105": ("loss", "backward"),
    "CST106": ("layer", "module"),
    "CST107": ("layer", "module"),
    "CST108": ("layer", "module"),
    "CST109": ("layer", "module"),
    "CST110": ("optimizer", "backward"),
    "CST112": ("backward",),
    "CST113": ("data", "optimizer"),
    "CST114": ("optimizer", "step"),
    "CST115": ("layer", "module"),
    "CST201": ("data",),
    "CST202": ("loss", "backward"),
    "CST203": ("data",),
    "CST204": ("loss", "data"),
    "CST205": ("data",),
    "CST206": ("data",),
    "CST207": ("data",),
    "CST209": ("data",),
    "CST301": ("layer", "loss", "backward"),
    "CST302": ("loss", "backward"),
    "CST303": ("layer", "module"),
    "CST304": ("loss", "backward"),
    "CST305": ("layer", "loss", "module"),
    "CST306": ("layer", "loss", "module"),
    "CST404": ("optimizer", "module"),
    "CST406": ("module",),
    "CST501": ("loss", "backward"),
    "CST502": ("loss", "backward"),
    "CST503": ("loss", "backward"),
    "CST504": ("loss", "backward"),
    "CST505": ("module",),
}


def calling_line() -> SourceLine | None:
    """Return the innermost line of the user's code that led here; None where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else _line(frame.f_code.co_filename, frame.f_lineno)


def class_line(cls: type) -> SourceLine | None:
    """Return where a class of the user's is defined; None for anybody else's."""
    try:
        path = inspect.getsourcefile(cls)
        if path is None or not _is_users(path):
            return None
        return _line(path, inspect.getsourcelines(cls)[1])
    except (OSError, TypeError):  # typed at a prompt, or built in
        return None


def located(found: Finding, lines: Mapping[str, SourceLine]) -> Finding:
    """Return a finding, and its symptoms, with the line that causes it.

    Parameters
    ----------
    found
        A finding.
    lines
        Lines by what they do: ``"loss"``, ``"backward"``, ``"optimizer"``, ``"step"``, ``"data"``,
        ``"module"``; and under the names of layers.
    """
    kinds = CAUSED_BY.get(found.code, ())
    if found.code == "CST110" and "optimizer" not in found.summary:
        kinds = ("layer", *kinds)  # frozen or cut off where it stands
    names = [_layers(found.where) if kind == "layer" else (kind,) for kind in kinds]
    known = (lines.get(name) for group in names for name in group)
    source = next((line for line in known if line is not None), None)
    symptoms = tuple(located(symptom, lines) for symptom in found.symptoms)
    return replace(found, source=found.source or source, symptoms=symptoms)


def _layers(where: str | None) -> tuple[str, ...]:
    """Return what a place may be called: `body.0.weight` is of the layer `body.0`."""
    return () if where is None else (where, where.rpartition(".")[0])


def _line(path: str, number: int) -> SourceLine:
    return SourceLine(_shown(path), number, linecache.getline(path, number).strip())


def _shown(path: str) -> str:
    """Return a path as seen from the current folder, where it lies in it."""
    try:
        near = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if near.startswith("..") else near


@cache
def _is_users(path: str) -> bool:
    """Whether a file is neither Python's, nor an installed package's, nor ours."""
    if path.startswith("<") and not path.startswith("<ipython"):
        return False
    full = os.path.realpath(path)
    return not full.startswith(_others()) and f"{os.sep}site-packages{os.sep}" not in full


@cache
def _others() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    homes = {os.path.realpath(sysconfig.get_paths()[name]) for name in names}
    homes.add(str(Path(__file__).resolve().parents[1]))
    return tuple(home + os.sep for home in homes)
