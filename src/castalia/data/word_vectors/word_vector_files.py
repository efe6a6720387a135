r"""Files of word2vec.

Both kinds begin with a line of two whole numbers, words and dim. As text, every word follows on a
line of its own with its numbers behind it. In binary, a word in UTF-8 is followed by a space and
dim little-endian float32 numbers; the authors' program puts a line feed behind each, gensim none.
"""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from castalia.data.utf8_files import read_bytes
from castalia.data.word_vectors.word_queries import WordQueries, WordVectors
from castalia.errors import DamagedFile, InvalidData
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import shorten

__all__ = ["read_word_vectors", "write_word_vectors"]

Kind = Literal["text", "binary"]


def write_word_vectors(path: str | Path, vectors: WordQueries, *, kind: Kind | None = None) -> None:
    """Write words and vectors as word2vec does, in float32.

    Parameters
    ----------
    path
        Where to; gzipped if it ends in ``.gz``.
    vectors
        A fitted `Word2Vec`, `FastText` or `GloVe`, or `WordVectors`.
    kind
        ``"text"`` or ``"binary"``; by default binary if the name ends in ``.bin`` or ``.bin.gz``.
    """
    path = Path(path)
    words, table = vectors.words_, np.asarray(vectors.vectors_, dtype="<f4")
    spaced = [word for word in words if not word or any(sign in word for sign in " \n")]
    if spaced:
        raise InvalidData(
            "write_word_vectors: words must be free of spaces and line feeds, which end them in "
            f"the file; got {spaced[0]!r}."
        )
    head = f"{len(words)} {table.shape[1]}\n".encode()
    body = _binary(words, table) if _kind(path, kind) == "binary" else _text(words, table)
    raw = head + body
    with writing("write_word_vectors", path):
        atomic_write(path, gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def read_word_vectors(path: str | Path, *, kind: Kind | None = None) -> WordVectors:
    """Read a file of word2vec.

    Parameters
    ----------
    path
        The file; gzipped if it ends in ``.gz``.
    kind
        ``"text"`` or ``"binary"``; by default binary if the name ends in ``.bin`` or ``.bin.gz``.

    Raises
    ------
    InvalidData
        If there is no such file, or it is not of that kind.
    DamagedFile
        If it is cut off or holds what it should not; the message says where.
    """
    path = Path(path)
    stream = BytesIO(b"".join(read_bytes(path, "read_word_vectors", damaged=DamagedFile)))
    first = stream.readline().split()
    if len(first) != 2 or not all(word.isdigit() for word in first):
        raise InvalidData(
            f"read_word_vectors: `{path}` must begin with the number of words and their dim; got "
            f"{shorten(repr(b' '.join(first)[:60]))}. GloVe's own files lack that line: put it "
            "before them."
        )
    n_words, dim = _sizes(path, first, len(stream.getbuffer()))
    read = _read_binary if _kind(path, kind) == "binary" else _read_text
    words, table = read(path, stream, n_words, dim)
    if len(set(words)) < len(words):
        raise DamagedFile(f"read_word_vectors: `{path}` must hold each word once; some come twice.")
    return WordVectors(words, table)


def _sizes(path: Path, first: list[bytes], length: int) -> tuple[int, int]:
    """Return the number of words and numbers a word, unless memory for them is out of reason."""
    if max(map(len, first)) < 16:
        n_words, dim = int(first[0]), int(first[1])
        if n_words * (1 + dim) <= length + 2**18:
            return n_words, dim
    raise DamagedFile(
        f"read_word_vectors: `{path}` must hold as many words and numbers as its first line says; "
        f"{shorten(repr(b' '.join(first)), 60)} do not fit into {length:,} bytes."
    )


def _kind(path: Path, kind: Any) -> str:
    if kind not in (None, "text", "binary"):
        raise InvalidData(f"word vectors: `kind` must be 'text' or 'binary'; got {kind!r}.")
    return kind or ("binary" if path.name.removesuffix(".gz").endswith(".bin") else "text")


def _text(words: list[str], table: np.ndarray) -> bytes:
    numbers = " %.9g" * table.shape[1] + "\n"  # nine digits give every float32 back
    rows = zip(words, table.tolist(), strict=True)
    return "".join(word + numbers % tuple(row) for word, row in rows).encode()


def _binary(words: list[str], table: np.ndarray) -> bytes:
    rows = zip(words, table, strict=True)
    return b"".join(word.encode() + b" " + row.tobytes() + b"\n" for word, row in rows)


def _read_text(path: Path, stream: BytesIO, n_words: int, dim: int) -> tuple[list[str], np.ndarray]:
    words, table = [], np.empty((n_words, dim), dtype=np.float32)
    for number in range(n_words):
        line = stream.readline()
        fields = line.rstrip(b" \r\n").split(b" ")
        try:
            words.append(fields[0].decode("utf-8"))
            table[number] = np.array(fields[1:], dtype=np.float32)
        except ValueError as error:
            got = "the end of the file" if not line else f"{len(fields) - 1} fields"
            raise DamagedFile(
                f"read_word_vectors: line {number + 2} of `{path}` must be a word and {dim} "
                f"numbers; got {got}{_beginning(line)}."
            ) from error
    return words, table


def _beginning(line: bytes) -> str:
    return f", beginning {shorten(repr(line[:40]))}" if line else ""


def _read_binary(
    path: Path, stream: BytesIO, n_words: int, dim: int
) -> tuple[list[str], np.ndarray]:
    raw, at = stream.getvalue(), stream.tell()
    words, table = [], np.empty((n_words, dim), dtype=np.float32)
    for number in range(n_words):
        space = raw.find(b" ", at)
        end = space + 1 + 4 * dim
        if space < 0 or end > len(raw):
            raise DamagedFile(
                f"read_word_vectors: `{path}` must hold {n_words} words with {dim} numbers each; "
                f"it ends in number {number + 1}. It may be cut off, or be of kind 'text'."
            )
        try:
            words.append(raw[at:space].lstrip(b"\n").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DamagedFile(
                f"read_word_vectors: word {number + 1} of `{path}` must be UTF-8; got "
                f"{shorten(repr(raw[at:space][:40]))} at byte {at}."
            ) from error
        table[number] = np.frombuffer(raw, "<f4", dim, space + 1)
        at = end
    return words, table
