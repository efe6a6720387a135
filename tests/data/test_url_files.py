"""Tables in many files at an address: read as the same files on disk are."""

import fsspec
import numpy as np
import pandas as pd
import pytest

from castalia import read
from castalia.errors import DataWarning, InvalidData


@pytest.fixture
def parts():
    """Three shards in memory, below an address."""
    system = fsspec.filesystem("memory")
    for i in range(3):
        table = pd.DataFrame({"a": np.arange(4.0) + 4 * i, "y": list("uvuv")})
        with system.open(f"/shards/{i}.parquet", "wb") as file:
            table.to_parquet(file)
        with system.open(f"/lines/{i}.csv", "w") as file:
            table.to_csv(file, index=False)
    yield system
    system.store.clear()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "url", ["memory://shards", "memory://shards/*.parquet", "memory://lines/*.csv"]
)
def test_a_folder_and_a_pattern_give_every_row_once(parts, url, stream):
    table = read(url, target="y", stream=stream)
    rows = pd.concat([chunk.to_pandas() for chunk in table.chunks(5)])
    assert sorted(rows["a"]) == list(range(12))


def test_the_wider_type_is_taken_as_of_files_on_disk(parts):
    with parts.open("/shards/0.parquet", "wb") as file:
        pd.DataFrame({"a": [1, 2], "y": ["u", "v"]}).to_parquet(file)
    table = read("memory://shards", target="y", stream=False)
    assert table.column("a").tolist() == [1.0, 2.0, *range(4, 12)]


def test_files_that_do_not_fit_are_named_and_a_password_is_not(parts):
    other = pd.DataFrame({"b": [1.0], "y": ["u"]})
    with parts.open("/shards/1.parquet", "wb") as file:
        other.to_parquet(file)
    with pytest.raises(InvalidData, match=r"shards/1.parquet` must have the columns of .* `a`"):
        read("memory://shards", target="y")
    with parts.open("/shards/1.parquet", "wb") as file:
        pd.DataFrame({"a": ["one"], "y": ["u"]}).to_parquet(file)
    with pytest.raises(InvalidData, match=r"column `a` of `.*shards/1.parquet` must be double"):
        read("memory://shards", target="y")
    parts.pipe_file("/shards/1.parquet", b"PAR1 and no more")
    with pytest.raises(InvalidData, match=r"shards/1.parquet` must be a whole table"):
        read("memory://shards", target="y")
    with pytest.warns(DataWarning, match=r"1 of 3 files cannot be read .*shards/1.parquet"):
        assert len(read("memory://shards", target="y", broken="skip")) == 8
    with pytest.raises(InvalidData, match="`nosuch://host/x/\\*.csv`") as caught:
        read("nosuch://me:secret@host/x/*.csv", target="y")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidData, match="it holds 0 files of 0 kinds"):
        read("memory://nothing/*.parquet")
