"""Small, well-known tables by name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from castalia.data.dataset import Dataset
from castalia.data.read import in_memory, read
from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.atomic_files import digest
from castalia.utils.text import did_you_mean, listing

__all__ = ["Known", "available", "cache", "load", "locate"]


@dataclass(frozen=True)
class Known:
    """A file that is recognised by its checksum."""

    file: str
    sha256: str
    origin: str
    names: tuple[str, ...] | None = None  # for files without a header line
    shipped: bool = False


_WINE = (
    "fixed acidity",
    "volatile acidity",
    "citric acid",
    "residual sugar",
    "chlorides",
    "free sulfur dioxide",
    "total sulfur dioxide",
    "density",
    "pH",
    "sulphates",
    "alcohol",
    "quality",
)
_UCI = (
    "the UCI Machine Learning Repository, data set 186 (wine quality), "
    "comma-separated and without its header line"
)
_KNOWN = {
    "foetal-ecg": Known(
        "foetal-ecg/foetal_ecg.csv.gz",
        "f3ed56a1b7af394973930e141f9b75696f8c8c21e74fdbfd926b46bf5a73625b",
        "DaISy, KU Leuven (cutaneous potential recordings of a pregnant woman, 2500 samples of "
        "eight leads), comma-separated with a header line",
    ),
    "penguins": Known(
        "penguins.csv",
        "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93",
        "palmerpenguins (CC0)",
        shipped=True,
    ),
    "titanic": Known(
        "titanic.csv",
        "7d118fef8b6ccf7f81111877bc388536f7b1e498a655e3d649d19aaa010e9f6f",
        "the training table of Kaggle's Titanic competition (891 rows)",
    ),
    "wine-quality-red": Known(
        "winequality-red.csv",
        "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e",
        _UCI,
        _WINE,
    ),
    "wine-quality-white": Known(
        "winequality-white.csv",
        "659d419fff887f225bf977d20520bb64a64cae203e460087f809721d4430ba27",
        _UCI,
        _WINE,
    ),
}


def available() -> list[str]:
    """Return the names `load` knows.

    >>> available()
    ['foetal-ecg', 'penguins', 'titanic', 'wine-quality-red', 'wine-quality-white']
    """
    return sorted(_KNOWN)


def cache() -> Path:
    """Return the folder of tables: ``CASTALIA_DATA``, or ``~/.cache/castalia``."""
    return Path(os.environ.get("CASTALIA_DATA") or Path.home() / ".cache" / "castalia")


def load(name: str) -> Dataset:
    """Load a known table; `penguins` comes with the library, others are looked up in `cache`.

    Parameters
    ----------
    name
        One of `available`.

    Raises
    ------
    InvalidData
        If the file is not there or is not the one it should be; the message says what to put where.

    Examples
    --------
    >>> load("penguins").schema.names("categorical")
    ['species', 'island', 'sex']
    """
    if name not in _KNOWN:
        raise InvalidParameter(
            f"datasets.load: `name` must be {listing(available())}; got "
            f"{name!r}.{did_you_mean(str(name), _KNOWN)}"
        )
    known = _KNOWN[name]
    path = locate(name, known)
    if known.names is None:
        return read(path, stream=False)
    from castalia.data.csv_source import CsvSource

    return in_memory(Dataset(CsvSource(path, names=known.names)))


def locate(name: str, known: Known, owner: str = "datasets.load") -> Path:
    """Return where a known file lies, or say what to put where."""
    path = (Path(__file__).parent / "files" if known.shipped else cache()) / known.file
    there = path.is_file()
    if there and digest(path) == known.sha256:
        return path
    state = "that file is another one or damaged" if there else "there is no such file"
    raise InvalidData(
        f"{owner}: `{name}` must lie at {path}; {state}. Put {known.file} there (SHA-256 "
        f"{known.sha256}; "
        f"from {known.origin}), or set CASTALIA_DATA to the folder that holds it."
    )
