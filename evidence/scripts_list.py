"""The public scripts of ``scripts.toml``, and a folder of each that is ready to run.

Nothing of a script is kept here but the few words that an edit replaces. A clone is a folder
``owner/name`` with the repository's files as of the commit that the list names.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from evidence.scripts_files import FILES

LIST = Path(__file__).with_name("scripts.toml")
HALVES = ("tune", "look", "fresh", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


@dataclass(frozen=True)
class Script:
    """One public training script.

    Attributes
    ----------
    name
        Short and unique.
    repository, commit, path
        Where it is.
    half
        "tune": the doctor's rules may be mended on it; "look": looked at once, and mended on
        since; the others: the same, one after another. All scripts of a repository are
        in the same.
    kind, trains
        A word such as "vision", and what is trained.
    args
        Its arguments.
    edits
        Pairs of words and what takes their place, or triples that begin with another file.
    stand_ins
        Packages and data that stand in for what cannot be had, of ``scripts_packages``.
    files
        Data files written beside it, of ``scripts_files``.
    root
        Whether it is run from the top of its repository rather than from its own folder.
    seed
        What all random numbers start from.
    fine
        Codes that a person judged right or acceptable of the script as it is, each with the
        reason.
    faults
        Codes that are a right first answer for a fault in this very script, each fault with its
        codes and the reason; "none" for one that does no harm here.
    """

    name: str
    repository: str
    commit: str
    path: str
    half: str
    kind: str
    trains: str
    args: tuple[str, ...] = ()
    edits: tuple[tuple[str, ...], ...] = ()
    stand_ins: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    root: bool = False
    seed: int = 0
    fine: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)


def scripts() -> list[Script]:
    """Return the list."""
    with LIST.open("rb") as file:
        table = tomllib.load(file)
    found = [
        Script(commit=one["commit"], half=one["half"], repository=repository, **_tuples(script))
        for repository, one in table.items()
        for script in one["script"]
    ]
    if len({one.name for one in found}) < len(found):
        raise ValueError("scripts: names must be unique.")
    return found


def _tuples(script: dict) -> dict:
    lists = ("args", "edits", "stand_ins", "files")
    return {k: tuple(v) if k in lists else v for k, v in script.items()}


def prepare(script: Script, clones: Path, folder: Path, fault: str = "") -> Path:
    """Copy a clone, edit it, and return the script's file."""
    shutil.copytree(clones / script.repository, folder, symlinks=True)
    file = folder / script.path
    for *other, old, new in script.edits:
        _replace(folder / other[0] if other else file, old, new)
    if fault in SOURCE_FAULTS:
        pattern, new = SOURCE_FAULTS[fault]
        file.write_text(pattern.sub(new, file.read_text()))
    for name in script.files:
        FILES[name](folder if script.root else file.parent)
    return file


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if old not in text:
        raise ValueError(f"scripts: {file.name} must hold {old!r}, which an edit replaces.")
    file.write_text(text.replace(old, new))


# Faults that are planted into the source: a pattern, and what takes its place.
SOURCE_FAULTS = {
    "no_zero_grad": (re.compile(r"\b[\w.\[\]]+\.zero_grad\([^)]*\)"), "None"),
    "eval_mode": (re.compile(r"(?<=\w)\.train\(\)"), ".eval()"),
}
