"""Files that hold texts with something beside them: classes, translations, tags of words."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path

import numpy as np

from castalia.data.utf8_files import read_lines, read_text
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import plural, shorten

__all__ = ["read_conll", "read_folder", "read_parallel"]

SUFFIXES = (".txt", ".txt.gz")
StrPath = str | PathLike[str]


def read_folder(folder: StrPath) -> tuple[list[str], np.ndarray | None]:
    r"""Return the texts of a folder of ``.txt`` files, and the class of each.

    Folders inside it are classes, named after them; without any, there are no classes. Files come
    in the order of their names; they are UTF-8 and may be gzipped, ``.txt.gz``.

    Returns
    -------
    texts, classes
        N strings, and an array (N,) of names or None.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> for name, text in {"good": "so fine", "bad": "so dull"}.items():
    ...     (home / name).mkdir()
    ...     _ = (home / name / "1.txt").write_text(text, encoding="utf-8")
    >>> texts, classes = read_folder(home)
    >>> texts, classes.tolist()
    (['so dull', 'so fine'], ['bad', 'good'])
    """
    home = Path(folder)
    if not home.is_dir():
        raise InvalidData(f"read_folder: `{home}` must be a folder; there is none.")
    loose = _texts_in(home)
    classes = {path.name: _texts_in(path) for path in sorted(home.iterdir()) if path.is_dir()}
    classes = {name: files for name, files in classes.items() if files}
    if loose and classes:
        raise InvalidData(
            f"read_folder: `{home}` must hold texts or folders of texts; got both, "
            f"{plural(len(loose), 'file')} such as `{loose[0].name}` beside the folder "
            f"`{next(iter(classes))}`. Move one of them away."
        )
    if not loose and not classes:
        raise InvalidData(f"read_folder: `{home}` must hold .txt files; it holds none.")
    files = loose or [file for found in classes.values() for file in found]
    labels = [name for name, found in classes.items() for _ in found]
    return [read_text(file, "read_folder") for file in files], np.array(labels) if labels else None


def _texts_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and p.name.endswith(SUFFIXES))


def read_parallel(source: StrPath, target: StrPath) -> tuple[list[str], list[str]]:
    r"""Return the lines of two files that translate each other, line by line.

    Lines that are empty in both are left out.

    Parameters
    ----------
    source, target
        UTF-8 files, gzipped or not, such as ``train.en`` and ``train.de``.

    Returns
    -------
    texts, answers
        N strings each.

    Examples
    --------
    >>> import tempfile
    >>> home = Path(tempfile.mkdtemp())
    >>> _ = (home / "a.en").write_text("one\ntwo\n", encoding="utf-8")
    >>> _ = (home / "a.de").write_text("eins\nzwei\n", encoding="utf-8")
    >>> read_parallel(home / "a.en", home / "a.de")
    (['one', 'two'], ['eins', 'zwei'])
    """
    texts, answers = (list(read_lines(Path(p), "read_parallel")) for p in (source, target))
    if len(texts) != len(answers):
        raise InvalidData(
            f"read_parallel: `{source}` and `{target}` must have the same number of lines; got "
            f"{len(texts):,} and {len(answers):,}."
        )
    pairs = list(zip(texts, answers, strict=True))
    half = [i for i, (a, b) in enumerate(pairs) if bool(a.strip()) != bool(b.strip())]
    if half:
        hollow = target if texts[half[0]].strip() else source
        raise InvalidData(
            f"read_parallel: a line must hold a text in both files or in neither; "
            f"{plural(len(half), 'line')} of {len(pairs):,} do not, first line {half[0] + 1}, "
            f"which is empty in `{hollow}`. Take such lines out of both."
        )
    kept = [pair for pair in pairs if pair[0].strip()]
    if not kept:
        raise InvalidData(f"read_parallel: `{source}` must hold a text; the file is empty.")
    return [a for a, _ in kept], [b for _, b in kept]


def read_conll(
    path: StrPath, *, words: int | None = None, tags: int | None = None
) -> tuple[list[list[str]], list[list[str]]]:
    r"""Return sentences and the tags of their words from a file with a word on each line.

    Columns stand apart by tabs or spaces, and an empty line ends a sentence. Lines of
    ``-DOCSTART-`` are left out; in files named ``.conllu``, so are comments and the lines of
    contracted and empty words.

    Parameters
    ----------
    path
        A UTF-8 file, gzipped or not.
    words, tags
        Columns, counted from 0, or from the end with negative numbers; None: the first and the
        last, or in ``.conllu`` files the form and the universal part of speech.

    Returns
    -------
    sentences, tags
        N lists of words, and N lists of as many tags.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "train.conll"
    >>> _ = path.write_text("Ann NNP B-PER\nsleeps VBZ O\n\nBob NNP B-PER\n", encoding="utf-8")
    >>> read_conll(path)
    ([['Ann', 'sleeps'], ['Bob']], [['B-PER', 'O'], ['B-PER']])
    """
    path = Path(path)
    universal = path.name.removesuffix(".gz").endswith(".conllu")
    word = (1 if universal else 0) if words is None else words
    tag = (3 if universal else -1) if tags is None else tags
    sentences: list[list[str]] = [[]]
    marks: list[list[str]] = [[]]
    for fields in _columns(path, universal, word, tag):
        if fields:
            sentences[-1].append(fields[word])
            marks[-1].append(fields[tag])
        elif sentences[-1]:
            sentences.append([])
            marks.append([])
    if not sentences[-1]:
        sentences.pop(), marks.pop()
    if not sentences:
        raise InvalidData(f"read_conll: `{path}` must hold at least one word; got none.")
    return sentences, marks


def _columns(path: Path, universal: bool, *wanted: int) -> Iterator[list[str]]:
    """Yield the columns of each line, and nothing where a sentence ends."""
    width = 0
    for number, line in enumerate(read_lines(path, "read_conll"), start=1):
        fields = line.split("\t") if "\t" in line else line.split()
        if not line.strip():
            yield []
        elif fields[0] == "-DOCSTART-" or (universal and not fields[0].isdecimal()):
            continue
        else:
            width = width or _width(path, fields, wanted)
            if len(fields) != width:
                raise InvalidData(
                    f"read_conll: every line of `{path}` must have {plural(width, 'column')}, as "
                    f"the first; got {len(fields)} in line {number}, {shorten(line, 40)!r}."
                )
            yield fields


def _width(path: Path, fields: list[str], wanted: tuple[int, ...]) -> int:
    """Return the number of columns, which must be enough for those that are wanted."""
    width = len(fields)
    missing = [column for column in wanted if not -width <= column < width]
    if missing or width < 2:
        column = missing[0] if missing else 1
        raise InvalidParameter(
            f"read_conll: `{path}` must have a column {column} and one of words beside it; its "
            f"lines have {plural(width, 'column')}, such as {shorten(' '.join(fields), 40)!r}."
        )
    return width
