"""Texts larger than memory: encoded once into a file of token ids, read block by block."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.dataset_files import cache
from castalia.data.text.token_rows import block_starts
from castalia.data.tokenizers import Tokenizer
from castalia.data.utf8_files import read_lines, read_pieces
from castalia.errors import InvalidData, WriteFailed
from castalia.protocols import Rows
from castalia.utils.atomic_files import atomic_write, digest, writing
from castalia.utils.file_locks import FolderLock

__all__ = ["Corpus", "CorpusRows", "TokenFile", "as_corpus"]

FORMAT = 1
TOGETHER = 32  # pieces that are encoded at once, in parallel
KEPT = 8  # such groups between two notes of how far the encoding is: some 16 MB of text
SUFFIXES = (".txt", ".txt.gz")
LARGE = 8 << 20  # bytes of text files that are not held in memory
LEARNT = 32 << 20  # bytes of text that a tokenizer of bytes is learnt from
MAPPED = 64 << 20  # bytes read of a mapped file before its pages are given back
POLL = 0.2  # seconds between two questions whether another process has encoded the files
_IDS, _ABOUT, _SO_FAR = "ids.bin", "about.json", "progress-32.json"


@dataclass(frozen=True)
class TokenFile:
    """Token ids in a file.

    Attributes
    ----------
    ids
        The ids, mapped into memory, (L,).
    fingerprint
        Checksum of the ids.
    mapping
        The mapped file.
    """

    ids: np.ndarray
    fingerprint: str
    mapping: mmap.mmap

    def release(self) -> None:
        """Give back the memory of what was read; the system still has the file in its cache."""
        if hasattr(self.mapping, "madvise"):
            self.mapping.madvise(mmap.MADV_DONTNEED)


class Corpus:
    r"""Text files of any size, for language models.

    The first model that is fitted encodes the files into one file of token ids, two or four bytes
    each, which is kept in a cache and mapped into memory from then on: a training holds its
    batches, never the texts. An encoding that is interrupted goes on where it was, and of several
    processes one encodes while the others wait. Files that change, and other tokenizers, get a file
    of their own.

    Parameters
    ----------
    source
        A UTF-8 file; a folder, for all its ``.txt`` and ``.txt.gz`` files and those of its folders,
        in the order of their names; or several of either.
    lines
        Whether each line is a text of its own; otherwise each file is.
    folder
        Where ids are kept; None: ``corpora`` in ``CASTALIA_DATA``, or in ``~/.cache/castalia``.

    Notes
    -----
    Long files are encoded in pieces of about 65,000 characters, cut behind a line where there is
    one: with tokenizers whose pieces run across lines, ids there may differ from those of the whole
    text.

    Examples
    --------
    >>> import tempfile
    >>> from castalia.data.tokenizers import CharTokenizer
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("abab\n", encoding="utf-8")
    >>> corpus = Corpus(folder / "a.txt", folder=folder / "ids")
    >>> corpus.encode(CharTokenizer().fit(corpus)).ids.tolist()
    [3, 5, 6, 5, 6, 4, 3]
    """

    def __init__(
        self,
        source: str | PathLike[str] | Iterable[str | PathLike[str]],
        *,
        lines: bool = False,
        folder: str | PathLike[str] | None = None,
    ) -> None:
        given = [source] if isinstance(source, str | PathLike) else list(source)
        self.sources, self.lines = [Path(path) for path in given], lines
        self.folder = cache() / "corpora" if folder is None else Path(folder)

    def __repr__(self) -> str:
        return f"Corpus({', '.join(map(str, self.sources))})"

    @property
    def files(self) -> list[Path]:
        """The files, in the order in which they are read."""
        return [file for path in self.sources for file in _files(path)]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(path.stat().st_size for path in self.files)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts, piece by piece."""
        for path in self.files:
            yield from self._texts(path, "Corpus")

    def sample(self) -> Iterable[str]:
        """Return some of the texts, spread evenly, for a tokenizer that need not see all."""
        every = -(-self.size // LEARNT)
        return self if every <= 1 else list(islice(self, 0, None, every))

    def _texts(self, path: Path, owner: str) -> Iterator[str]:
        if self.lines:
            return (line for line in read_lines(path, owner) if line.strip())
        return read_pieces(path, owner)

    def encode(self, tokenizer: Tokenizer, owner: str = "Corpus.encode") -> TokenFile:
        """Return the ids of all texts, ``</s> text </s> text … </s>``, cached in a file."""
        home = self.folder / self._key(tokenizer)
        kind = np.dtype(np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32)
        with writing(owner, home):
            self._make(home, tokenizer, kind, owner)
        about = json.loads((home / _ABOUT).read_text(encoding="utf-8"))
        with (home / _IDS).open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        ids = np.frombuffer(mapping, kind, len(mapping) // kind.itemsize)
        if len(ids) != about["tokens"]:
            raise InvalidData(
                f"{owner}: `{home / _IDS}` must hold {about['tokens']:,} token ids; it holds "
                f"{len(ids):,}. Delete `{home}` to have it rebuilt."
            )
        return TokenFile(ids, about["sha256"], mapping)

    def _make(self, home: Path, tokenizer: Tokenizer, kind: np.dtype[Any], owner: str) -> None:
        """Encode the files, unless that is done, or wait for the process that does."""
        aside = home.with_name(f".{home.name}.part")
        while not (home / _ABOUT).is_file():
            aside.mkdir(parents=True, exist_ok=True)
            lock = FolderLock(aside)
            try:
                lock.acquire(owner)
            except (WriteFailed, FileNotFoundError):
                time.sleep(POLL)
                continue
            try:
                self._write(aside, tokenizer, kind, owner)
                os.replace(aside, home)
            except InvalidData:
                shutil.rmtree(aside)
                raise
            finally:
                lock.release()

    def _key(self, tokenizer: Tokenizer) -> str:
        """Return a name that changes with the files and with the tokenizer."""
        files = self.files
        stats = [path.stat() for path in files]
        known = [
            [str(path.resolve()), found.st_size, found.st_mtime_ns]
            for path, found in zip(files, stats, strict=True)
        ]
        text = json.dumps([FORMAT, known, self.lines, tokenizer.fingerprint])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _write(self, folder: Path, tokenizer: Tokenizer, kind: np.dtype[Any], owner: str) -> None:
        """Write the ids, from where an earlier process came to."""
        groups, tokens = _so_far(folder)
        found = tokenizer.find_id("end")
        end = [] if found is None else [found]
        with (folder / _IDS).open("ab") as file:
            file.truncate(tokens * kind.itemsize)
            for number, (texts, ends) in enumerate(self._groups(owner)):
                if number < groups:
                    continue
                for ids in self._framed(tokenizer.encode(texts), end, not number, ends):
                    file.write(np.asarray(ids, dtype=kind).tobytes())
                    tokens += len(ids)
                if (number + 1) % KEPT == 0:
                    _force(file)
                    atomic_write(folder / _SO_FAR, json.dumps([number + 1, tokens]))
            _force(file)
        about = {
            "tokens": tokens,
            "sha256": digest(folder / _IDS),
            "files": [str(p) for p in self.files],
        }
        atomic_write(folder / _ABOUT, json.dumps(about, indent=1))

    def _framed(
        self, rows: list[list[int]], end: list[int], begins: bool, ends: bool
    ) -> Iterator[list[int]]:
        """Yield ids with the end token before the first text and behind each."""
        if begins:
            yield end
        for ids in rows:
            yield ids
            if self.lines and ids:
                yield end
        if ends and not self.lines:
            yield end

    def _groups(self, owner: str) -> Iterator[tuple[list[str], bool]]:
        """Yield texts, some at a time, and whether a file ends with them."""
        for path in self.files:
            texts, hollow = self._texts(path, owner), True
            following = next(texts, None)
            while following is not None:
                some = [following, *islice(texts, TOGETHER - 1)]
                hollow = hollow and not any(text.strip() for text in some)
                following = next(texts, None)
                yield some, following is None
            if hollow:
                raise InvalidData(f"{owner}: `{path}` must hold a text; it has none. Leave it out.")


def _force(file: Any) -> None:
    """Have what was written on disk."""
    file.flush()
    os.fsync(file.fileno())


def _so_far(folder: Path) -> tuple[int, int]:
    """Return how many groups of texts are encoded, and how many ids they have."""
    try:
        groups, tokens = json.loads((folder / _SO_FAR).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0, 0
    return groups, tokens


def as_corpus(X: Any) -> Any:
    """Return large text files as a corpus, and anything else as it is.

    Parameters
    ----------
    X
        A ``pathlib.Path``, or several in a list; a folder stands for its ``.txt`` files.
    """
    paths = [X] if isinstance(X, Path) else X
    if not isinstance(paths, list | tuple) or not paths:
        return X
    if not all(isinstance(path, Path) and path.exists() for path in paths):
        return X
    corpus = Corpus(paths)
    folders = any(path.is_dir() for path in paths)
    return corpus if folders or corpus.size > LARGE else X


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        if not path.is_file():
            raise InvalidData(f"Corpus: `{path}` must be a file or a folder; there is none.")
        return [path]
    found = sorted(p for p in path.rglob("*") if p.is_file() and p.name.endswith(SUFFIXES))
    if not found:
        raise InvalidData(
            f"Corpus: the folder `{path}` must hold .txt files; it holds none. Name files with "
            "other endings themselves."
        )
    return found


class CorpusRows(Rows):
    """Blocks of a file of ids, (N, T + 1), read when a batch is taken.

    Parameters
    ----------
    source
        The ids.
    length
        Inputs of a block, T; each has one id more, the last target.
    stride, rest
        As for ``cut_blocks``.
    """

    def __init__(
        self, source: TokenFile, length: int, stride: int | None = None, *, rest: bool = True
    ) -> None:
        self.source, self._read = source, 0
        self.starts, self.length = block_starts(len(source.ids), length, stride, rest=rest)
        self.shape = (1, self.length + 1)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the blocks at these positions."""
        places = self.starts[index.cpu().numpy(), None] + np.arange(self.length + 1)
        found = self.source.ids[places]
        self._read += len(found) * mmap.PAGESIZE + found.nbytes
        if self._read > MAPPED:
            self.source.release()
            self._read = 0
        return torch.from_numpy(found.astype(np.int64))

    def behind(self, row: int, length: int) -> CorpusRows:
        """Return what begins with a block, up to the end of the file, in blocks of a length."""
        ids = self.source.ids[int(self.starts[row]) :]
        source = replace(self.source, ids=ids, fingerprint=f"{self.source.fingerprint}-{row}")
        return CorpusRows(source, length)

    def fingerprint(self) -> str:
        """Return a mark of the blocks."""
        return f"{self.source.fingerprint}-{self.length}-{len(self)}"
