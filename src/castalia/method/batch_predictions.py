"""Predictions for tables in many files, larger than memory: a file of answers for each.

Answers are written aside and renamed when they are whole, so a file that is there is done: after an
interruption the same command goes on with what is left, and no row is answered twice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from joblib import Parallel, delayed, effective_n_jobs

from castalia.data import read
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.predictions import ENDINGS, Predictions, answer_rows, read_new_rows
from castalia.method.report.plain_values import plain
from castalia.method.saved_model import find_formats, load_model
from castalia.utils.atomic_files import atomic_file, writing
from castalia.utils.process_ranks import rank_and_world

__all__ = ["answer_files", "predict_files"]

Pairs = Sequence[tuple[Path, Path]]
Answered = tuple[Path, int | None]

ROWS = 65_536  # answered at a time
SHARES = 8  # of the files, a worker of a cluster: few, as each loads the model
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def predict_files(
    model: str | os.PathLike[str],
    files: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    name: str | None = None,
    text: str | None = None,
    strict: bool = False,
    keep: Sequence[str] = (),
    encoding: str | None = None,
    formulas: bool = False,
) -> Iterator[tuple[Path, int | None]]:
    """Predict the rows of every file into a file of the same name in a folder.

    Under ``torchrun`` every process takes its share of the files, and inside
    ``castalia.cluster`` every worker some of them after the others, in any order; workers on other
    machines must see the same folders.

    Parameters
    ----------
    model
        Folder of a run or of a saved model.
    files
        Tables; answers are in their format where that can be written, else in Parquet.
    out
        The folder; made where it is missing.
    name, text, strict, keep, encoding
        As for ``predict``.
    formulas
        As for ``Predictions.write``.

    Yields
    ------
    path, rows
        A file of answers, and how many it got now; None: it was there.
    """
    rank, world = rank_and_world()
    pairs = answer_files(files, out)[rank::world]
    work = partial(
        _predicted,
        model,
        name,
        formulas,
        text=text,
        strict=strict,
        keep=keep,
        encoding=encoding,
    )
    jobs = effective_n_jobs(None)
    if jobs == 1:
        yield from work(pairs)
        return
    shares = [pairs[i :: SHARES * jobs] for i in range(min(SHARES * jobs, len(pairs)))]
    found = Parallel(return_as="generator_unordered")(delayed(_listed)(work, s) for s in shares)
    for answers in found:
        yield from answers


def _listed(work: Callable[..., Iterator[Answered]], pairs: Pairs) -> list[Answered]:
    return list(work(pairs))


def _predicted(
    model: str | os.PathLike[str],
    name: str | None,
    formulas: bool,
    pairs: Pairs,
    *,
    text: str | None,
    strict: bool,
    keep: Sequence[str],
    encoding: str | None,
) -> Iterator[Answered]:
    """Predict one file after the other."""
    estimator, formats = load_model(model, name), find_formats(model)
    for source, path in pairs:
        if path.is_file():
            yield path, None
            continue
        table = read(source, stream=True, encoding=encoding, formats=formats)
        with writing("predict", path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                written = _AnswerFile(file, path.suffix, formulas)
                for chunk in table.chunks(ROWS):
                    rows = read_new_rows(model, estimator, chunk, text=text, keep=keep)
                    if strict and rows.unseen:
                        raise InvalidData(f"predict: `{source}`: {' '.join(rows.unseen)}")
                    written.add(answer_rows(estimator, rows, keep))
                written.close()
        yield path, len(table)


def answer_files(
    files: Sequence[str | os.PathLike[str]], out: str | os.PathLike[str]
) -> list[tuple[Path, Path]]:
    """Return each file with the one its answers go to: the same name, below the folder they share.

    >>> [str(path) for _, path in answer_files(["a/x.2024.csv", "a/b/x.csv.gz"], "out")]
    ['out/x.2024.csv', 'out/b/x.csv']
    """
    sources = [Path(file) for file in files]
    shared = os.path.commonpath([os.path.abspath(path.parent) for path in sources])
    pairs = []
    for path in sources:
        below = Path(os.path.relpath(os.path.abspath(path), shared))
        while below.suffix.lower() in COMPRESSED:
            below = below.with_suffix("")
        known = below.suffix.lower() if below.suffix.lower() in ENDINGS else ".parquet"
        pairs.append((path, Path(out) / below.with_suffix(known)))
    if len({path for _, path in pairs}) < len(pairs):
        raise InvalidParameter(
            "predict: files must have different names before their endings, as their answers will; "
            "put them in different folders."
        )
    return pairs


class _AnswerFile:
    """A CSV, Parquet or JSON-lines file that grows by some answers at a time."""

    def __init__(self, file: BinaryIO, ending: str, formulas: bool) -> None:
        self.file, self.ending, self.formulas = file, ending, formulas
        self.table: Any = None  # the writer of Parquet

    def add(self, found: Predictions) -> None:
        """Write some answers below those before."""
        if self.ending == ".parquet":
            self._add_table({name: pa.array(plain(v)) for name, v in found.columns.items()})
            return
        raw = found.to_bytes(self.ending, formulas=self.formulas)
        if self.ending == ".csv" and self.file.tell():  # the names are there
            names = Predictions({name: values[:0] for name, values in found.columns.items()})
            raw = raw[len(names.to_bytes(".csv", formulas=self.formulas)) :]
        self.file.write(raw)

    def _add_table(self, columns: dict[str, pa.Array]) -> None:
        made = pa.table(columns)
        if self.table is None:
            self.table = pq.ParquetWriter(self.file, made.schema)
        self.table.write_table(made.cast(self.table.schema))

    def close(self) -> None:
        """Write what stands at the end of a file."""
        if self.table is not None:
            self.table.close()
