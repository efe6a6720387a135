"""How GPT reads texts, pairs, pairs in both orders, and choices."""

import numpy as np
import pandas as pd
import pytest
import torch

from castalia.data.text import LayoutAdapter, as_choices
from castalia.errors import InvalidData, InvalidParameter

CONTEXT, ANSWERS = "it rained", ["she got wet", "she flew", "it rained"]


def fitted(X, layout="auto", context=32):
    adapter = LayoutAdapter("words", context=context, layout=layout)
    return adapter.fit(adapter.check(X, "fit"))


def read(adapter, X):
    """Return each row in words: < start, | delimiter, > extract, without padding."""
    names = {i: w for w, i in adapter.tokenizer.vocabulary.items()}
    names |= dict(zip(range(adapter.known, adapter.known + 3), "<|>", strict=True))
    ids = adapter.rows(adapter.check(X, "fit"), None).take(torch.arange(len(X)))
    return [
        [" ".join(names[i] for i in seq.tolist() if i != adapter.padding) for seq in row]
        for row in ids.reshape(len(X), -1, ids.shape[-1])
    ]


@pytest.mark.parametrize(
    ("layout", "X", "rows"),
    [
        ("auto", ["so good"], [["< so good >"]]),
        ("auto", [("it rained", "it did")], [["< it rained | it did >"]]),
        ("similarity", [("a b", "c")], [["< a b | c >", "< c | a b >"]]),
        (
            "auto",
            [(CONTEXT, ANSWERS)],
            [[f"< it rained | {answer} >" for answer in ANSWERS]],
        ),
    ],
    ids=["text", "pair", "similarity", "choice"],
)
def test_tokens_stand_as_in_the_paper(layout, X, rows):
    adapter = fitted(X, layout)
    assert read(adapter, X) == rows
    assert adapter.readings == len(rows[0])
    assert adapter.layout == ("choice" if len(rows[0]) == 3 else adapter.layout)


def test_the_tokens_of_the_task_are_new_and_padding_is_the_last():
    adapter = fitted(["so good"])
    assert adapter.known == len(adapter.tokenizer)
    row = adapter.rows(adapter.check(["so"], "fit"), None).take(torch.tensor([0]))[0]
    assert row[0] == adapter.known
    assert row[2] == adapter.known + 2
    assert (row[3:] == adapter.padding).all()


def test_of_a_long_pair_the_longer_text_is_cut_and_extract_stays_last():
    X = [("a b c d e f g h", "i")]
    adapter = fitted(X, context=8)
    assert read(adapter, X) == [["< a b c d | i >"]]
    assert read(fitted(["a b c d e f g"], context=5), ["a b c d e f g"]) == [["< a b c >"]]


def test_choices_come_as_answers_of_a_context_or_as_pairs():
    one = as_choices([(CONTEXT, ANSWERS)], "fit")
    assert one.shape == (1, 3, 2)
    other = as_choices([[(CONTEXT, answer) for answer in ANSWERS]], "fit")
    assert np.array_equal(one, other)
    assert np.array_equal(as_choices(one, "fit"), one)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([(CONTEXT, ANSWERS), (CONTEXT, ANSWERS[:2])], "row 0 has 3 and row 1 has 2"),
        ([(CONTEXT, ANSWERS[:1])], "two or more; row 0 has 1"),
        ([(CONTEXT, ANSWERS), "text"], r"must be \(context, \[answers\]\).*place 1"),
        ([(CONTEXT, [1.5, "x"])], "a text must be a string; got 1.5"),
    ],
    ids=["uneven", "one", "mixed", "number"],
)
def test_choices_that_do_not_fit_together_are_refused(X, said):
    with pytest.raises(InvalidData, match=said):
        fitted(X)


def test_rows_must_be_of_the_kind_of_the_training():
    adapter = fitted(["so good"])
    with pytest.raises(InvalidData, match="must hold texts.*'text'; got pairs of texts"):
        adapter.check([("a", "b")], "predict")
    adapter = fitted([(CONTEXT, ANSWERS)])
    with pytest.raises(InvalidData, match="must have 3 answers, as in training; got 2"):
        adapter.check([(CONTEXT, ANSWERS[:2])], "predict")
    with pytest.raises(InvalidParameter, match="`layout` must be .*got 'pairs'"):
        LayoutAdapter(layout="pairs")


def test_a_column_of_a_table_is_read_whatever_its_index():
    adapter = fitted(pd.Series(["so good", "bad"], index=[7, 3]))
    assert read(adapter, pd.Series(["bad"], index=[9]).to_numpy()) == [["< bad >"]]
