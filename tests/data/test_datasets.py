"""Tables by name."""

import pytest

from castalia.data import dataset_files, datasets
from castalia.errors import InvalidData, InvalidParameter


def test_penguins_come_with_the_library():
    data = datasets.load("penguins")
    assert len(data) == 344
    assert data.schema.names("categorical") == ["species", "island", "sex"]
    assert sum(column.missing for column in data.schema) == 19


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(
        InvalidParameter, match=r"`wine-quality-red`.*got 'penguin'. Did you mean `penguins`\?"
    ):
        datasets.load("penguin")


def test_an_absent_file_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    with pytest.raises(
        InvalidData, match=r"titanic.csv; there is no such file.*SHA-256 7d118fef.*Kaggle"
    ):
        datasets.load("titanic")


def test_a_damaged_file_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    (tmp_path / "titanic.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidData, match="another one or damaged"):
        datasets.load("titanic")


def test_wine_gets_its_column_names(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    path = tmp_path / "winequality-red.csv"
    path.write_text("7.4,0.7,0,1.9,0.076,11,34,0.9978,3.51,0.56,9.4,5\n" * 2)
    monkeypatch.setattr(
        dataset_files, "digest", lambda _: datasets._KNOWN["wine-quality-red"].sha256
    )
    data = datasets.load("wine-quality-red")
    assert len(data) == 2
    assert data.columns[-1] == "quality"


def test_the_cache_defaults_to_the_home_folder(monkeypatch):
    monkeypatch.delenv("CASTALIA_DATA", raising=False)
    assert datasets.cache().parts[-2:] == (".cache", "castalia")
