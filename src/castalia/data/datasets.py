"""Small, well-known tables by name."""

from __future__ import annotations

from castalia.data.dataset_files import KnownFile, cache, check_known, locate
from castalia.data.tables.csv_source import CsvSource
from castalia.data.tables.dataset import Dataset
from castalia.data.tables.table_reader import in_memory, read_table

__all__ = ["available", "cache", "load"]


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
    "foetal-ecg": KnownFile(
        "foetal-ecg/foetal_ecg.csv.gz",
        "f3ed56a1b7af394973930e141f9b75696f8c8c21e74fdbfd926b46bf5a73625b",
        "DaISy, KU Leuven (cutaneous potential recordings of a pregnant woman, 2500 samples of "
        "eight leads), comma-separated with a header line",
    ),
    "penguins": KnownFile(
        "penguins.csv",
        "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93",
        "palmerpenguins (CC0)",
        shipped=True,
    ),
    "titanic": KnownFile(
        "titanic.csv",
        "7d118fef8b6ccf7f81111877bc388536f7b1e498a655e3d649d19aaa010e9f6f",
        "the training table of Kaggle's Titanic competition (891 rows)",
    ),
    "wine-quality-red": KnownFile(
        "winequality-red.csv",
        "c9614512e980f1cbd221c796daa97f00c4898c3cd1716863abac60f6cd1a522e",
        _UCI,
        _WINE,
    ),
    "wine-quality-white": KnownFile(
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


def load(name: str) -> Dataset:
    """Load a known table; `penguins` comes with the library, others are looked up in `cache`.

    Raises
    ------
    InvalidData
        If the file is not there or is not the one it should be; the message says what to put where.

    Examples
    --------
    >>> load("penguins").schema.names("categorical")
    ['species', 'island', 'sex']
    """
    check_known(name, _KNOWN, "datasets.load")
    known = _KNOWN[name]
    path = locate(name, known)
    if known.names is None:
        return read_table(path, stream=False)
    return in_memory(Dataset(CsvSource(path, names=known.names)))
