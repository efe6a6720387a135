"""Texts larger than memory: encoded once into a file of token ids, read block by block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from castalia.errors import InvalidData
from castalia.protocols import Rows
from castalia.utils.atomic_files import atomic_folder, writing

__all__ = ["Corpus", "CorpusRows", "TokenFile"]

FORMAT = 1
TOGETHER = 4  # pieces that are encoded at once
SUFFIXES = (".txt", ".txt.gz")
_IDS, _ABOUT = "ids.bin", "about.json"


@dataclass(frozen=True)
class TokenFile:
    """Token ids in a file.

    Attributes
    ----------
    ids
        The ids, mapped into memory, (L,).
    fingerprint
        Checksum of the ids.
    """

    ids: np.ndarray
    fingerprint: str


class Corpus:
    r"""Text files of any size, for language models.

    The first model that is fitted encodes the files into one file of token ids, two or four bytes
    each, which is kept in a cache and mapped into memory from then on: a training holds its
    batches, never the texts. Files that change, and other tokenizers, get a file of their own.

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

    def __iter__(self) -> Iterator[str]:
        """Yield the texts, piece by piece."""
        for path in self.files:
            yield from self._texts(path, "Corpus")

    def _texts(self, path: Path, owner: str) -> Iterator[str]:
        if self.lines:
            return (line for line in read_lines(path, owner) if line.strip())
        return read_pieces(path, owner)

    def encode(self, tokenizer: Tokenizer, owner: str = "Corpus.encode") -> TokenFile:
        """Return the ids of all texts, ``</s> text </s> text … </s>``, cached in a file."""
        home = self.folder / self._key(tokenizer)
        kind = np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32
        if not (home / _ABOUT).is_file():
            with writing(owner, home), atomic_folder(home) as aside:
                self._write(aside, tokenizer, kind, owner)
        about = json.loads((home / _ABOUT).read_text(encoding="utf-8"))
        ids = np.memmap(home / _IDS, dtype=kind, mode="r")
        if len(ids) != about["tokens"]:
            raise InvalidData(
                f"{owner}: `{home / _IDS}` must hold {about['tokens']:,} token ids; it holds "
                f"{len(ids):,}. Delete `{home}` to have it rebuilt."
            )
        return TokenFile(ids, about["sha256"])

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

    def _write(self, folder: Path, tokenizer: Tokenizer, kind: Any, owner: str) -> None:
        seal, count = hashlib.sha256(), 0
        with (folder / _IDS).open("wb") as file:
            for ids in self._ids(tokenizer, owner):
                raw = np.asarray(ids, dtype=kind).tobytes()
                seal.update(raw)
                file.write(raw)
                count += len(ids)
        about = {"tokens": count, "sha256": seal.hexdigest(), "files": [str(p) for p in self.files]}
        (folder / _ABOUT).write_text(json.dumps(about, indent=1), encoding="utf-8")

    def _ids(self, tokenizer: Tokenizer, owner: str) -> Iterator[list[int]]:
        """Yield the ids of the stream, some at a time."""
        found = tokenizer.find_id("end")
        end = [] if found is None else [found]
        yield end
        for path in self.files:
            empty = True
            texts = self._texts(path, owner)
            while some := list(islice(texts, TOGETHER)):
                for ids in tokenizer.encode(some):
                    empty = empty and not ids
                    yield [*ids, *end] if self.lines and ids else ids
            if empty:
                raise InvalidData(
                    f"{owner}: `{path}` must hold a text; it has no token. Leave it out."
                )
            if not self.lines:
                yield end


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
        self.source = source
        self.starts, self.length = block_starts(len(source.ids), length, stride, rest=rest)
        self.shape = (1, self.length + 1)

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, index: Tensor, width: int | None = None) -> Tensor:
        """Return the blocks at these positions."""
        places = self.starts[index.cpu().numpy(), None] + np.arange(self.length + 1)
        return torch.from_numpy(self.source.ids[places].astype(np.int64))

    def behind(self, row: int, length: int) -> CorpusRows:
        """Return what begins with a block, up to the end of the file, in blocks of a length."""
        ids = self.source.ids[int(self.starts[row]) :]
        return CorpusRows(TokenFile(ids, f"{self.source.fingerprint}-{row}"), length)

    def fingerprint(self) -> str:
        """Return a mark of the blocks."""
        return f"{self.source.fingerprint}-{self.length}-{len(self)}"
