"""What texts may come as: series of any index, and no tables, mappings or generators."""

import numpy as np
import pandas as pd
import pytest

from castalia.data.text import LayoutAdapter, PairAdapter, SentenceAdapter, as_texts
from castalia.errors import InvalidData

ADAPTERS = [PairAdapter, LayoutAdapter, SentenceAdapter]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_series_is_read_in_its_order_whatever_its_index(adapter):
    texts = pd.Series(["one", "two"], index=[7, 3])
    assert adapter().check(texts, "fit").tolist() == ["one", "two"]
    rows = pd.Series([("one", "two"), ("three", "four")], index=[1, 2])
    listed = adapter().check(rows, "fit").tolist()
    assert list(map(tuple, listed)) == rows.tolist()


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    "X, said",
    [
        (pd.DataFrame({"text": ["one"]}), "got a table of 1 columns"),
        ({"one": "two"}, "must be a list of texts; got {'one': 'two'}"),
        ({"one"}, "must be a list of texts; got {'one'}"),
        (iter(["one"]), "got a list_iterator, which can be read only once"),
        (3, "must be a list of texts; got 3"),
    ],
    ids=["table", "mapping", "set", "iterator", "number"],
)
def test_what_holds_no_texts_in_order_is_refused(adapter, X, said):
    with pytest.raises(InvalidData, match=said):
        adapter().check(X, "fit")


def test_a_pair_that_is_none_is_named_by_its_place():
    rows = pd.Series([("one", "two"), "three"], index=[4, 5], dtype=object)
    with pytest.raises(InvalidData, match="a pair of texts, .* got 'three' at place 1"):
        PairAdapter().check(rows, "fit")


def test_arrays_of_words_become_plain_strings():
    assert [type(text) for text in as_texts(np.array(["one"]), "fit")] == [str]
