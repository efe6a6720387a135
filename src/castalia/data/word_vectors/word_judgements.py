"""Files of people's judgements on words: pairs with a score, and analogies."""

from __future__ import annotations

from pathlib import Path

from castalia.data.utf8_files import read_bytes
from castalia.errors import InvalidData

__all__ = ["read_analogies", "read_similarities"]


def read_similarities(path: str | Path, *, lower: bool = True) -> list[tuple[str, str, float]]:
    """Read a file with two words and a score on each line, such as WordSim-353.

    Parameters
    ----------
    path
        The file, gzipped if it ends in ``.gz``; white space between the columns.
    lower
        Whether to make words lower case.
    """
    found = []
    for number, line in _lines("read_similarities", path):
        try:
            first, second, score = line.split()
            found.append((first, second, float(score)))
        except ValueError as error:
            raise InvalidData(
                f"read_similarities: line {number} of `{path}` must be two words and a number; "
                f"got {line!r}."
            ) from error
    return [(a.lower(), b.lower(), s) for a, b, s in found] if lower else found


def read_analogies(
    path: str | Path, *, lower: bool = True
) -> dict[str, list[tuple[str, str, str, str]]]:
    """Read a file of analogies, four words a line and sections headed ``: name``.

    Parameters
    ----------
    path
        The file, gzipped if it ends in ``.gz``; ``questions-words.txt`` of word2vec is such a one.
    lower
        Whether to make words lower case.
    """
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    section: list[tuple[str, str, str, str]] = found.setdefault("", [])
    for number, line in _lines("read_analogies", path):
        if line.startswith(":"):
            section = found.setdefault(line[1:].strip(), [])
            continue
        words = (line.lower() if lower else line).split()
        if len(words) != 4:
            raise InvalidData(
                f"read_analogies: line {number} of `{path}` must be four words; got {line!r}."
            )
        section.append((words[0], words[1], words[2], words[3]))
    return {name: asked for name, asked in found.items() if asked}


def _lines(owner: str, path: str | Path) -> list[tuple[int, str]]:
    path = Path(path)
    try:
        text = b"".join(read_bytes(path, owner)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidData(
            f"{owner}: `{path}` must be a readable file of UTF-8 text; {error}."
        ) from error
    return [(i, line.strip()) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
