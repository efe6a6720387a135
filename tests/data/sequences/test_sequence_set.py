"""Sequences: every way to give them, and every way to give them wrongly."""

import numpy as np
import pytest
import torch

from castalia.data import Sequences
from castalia.data.sequences import SequenceAdapter, SequenceRows, as_sequences
from castalia.errors import InvalidData


def test_all_ways_to_give_sequences_mean_the_same():
    array = np.arange(12.0).reshape(2, 3, 2)
    wanted = [array[0], array[1]]
    for X in (array, torch.from_numpy(array), wanted, Sequences(wanted), (array, [3, 3])):
        found = as_sequences(X, "owner")
        assert [part.tolist() for part in found] == [part.tolist() for part in wanted]
    assert as_sequences(array[..., 0], "owner")[0].shape == (3, 1)


def test_a_padded_array_with_lengths_is_cut():
    found = Sequences.padded(np.arange(8.0).reshape(2, 4, 1), [1, 3])
    assert [part.ravel().tolist() for part in found] == [[0.0], [4.0, 5.0, 6.0]]


@pytest.mark.parametrize(
    "X, words",
    [
        ([np.zeros((2, 1)), np.zeros((0, 1))], "sequence 1 is empty"),
        ([], "one sequence at least; got none"),
        ([np.zeros((2, 1)), np.zeros((2, 3))], "first has 1 and sequence 1 has 3"),
        ((np.zeros((2, 4, 1)), [1, 5]), "whole numbers from 1 to 4.*got 5 for sequence 1"),
        ((np.zeros((2, 4, 1)), [1, 2, 3]), "one for each of the 2 sequences; got 3"),
        ((np.zeros((2, 4, 1)), [0, 4]), "got 0 for sequence 0"),
        ([np.zeros((2, 2, 2))], r"shape \(2, 2, 2\)"),
        ([[[1, 2], [3]]], "equally many channels; sequence 0"),
        ("words", "several of them; got 'words'"),
    ],
)
def test_what_is_no_sequence_is_refused_in_a_sentence(X, words):
    with pytest.raises(InvalidData, match=words):
        as_sequences(X, "owner")


def test_a_table_is_told_apart_from_sequences():
    import pyarrow

    with pytest.raises(InvalidData, match="read_sequences"):
        as_sequences(pyarrow.table({"a": [1.0]}), "owner")


def test_missing_values_are_refused_or_filled_by_choice():
    X = [np.array([[1.0], [np.nan], [3.0]]), np.array([[np.inf], [5.0]])]
    with pytest.raises(InvalidData, match="got 2, first in sequence 0, step 1, channel `c0`"):
        SequenceAdapter().check(X, "owner")
    for how, wanted in (("forward", [1.0, 1.0, 3.0]), ("mean", [1.0, 3.0, 3.0])):
        adapter = SequenceAdapter(missing=how)
        adapter.fit(adapter.check(X, "owner"))
        steps = adapter.rows(adapter.check(X, "owner"), np.float64).take(torch.tensor([0, 1]))[0]
        found = steps[0, :, 0].numpy() * adapter.deviation + adapter.mean
        assert np.allclose(found, wanted)
        assert np.isclose(float(steps[1, 0, 0]), 0)  # nothing came before: the mean


def test_words_and_codes_become_categories_and_unseen_ones_zero():
    adapter = SequenceAdapter(categorical=(1,))
    X = [[["a", 7, 0.5], ["b", 8, 1.5]], [["a", 8, 2.5]]]
    adapter.fit(adapter.check(X, "owner"))
    assert (adapter.codes, adapter.categories, adapter.inputs) == ([0, 1], (3, 3), 3)
    new = adapter.check([[["z", 7, 1.5]]], "owner")
    assert adapter.rows(new, np.float32).take(torch.tensor([0]))[0].tolist() == [[0.0, 0.0, 1.0]]


def test_words_are_spelt_and_long_ones_lose_their_middle():
    adapter = SequenceAdapter(letters=4)
    adapter.fit(adapter.check([["ab", "ab", "abcabc"], ["abcabc"]], "owner"))
    found = adapter.rows(adapter.check([["ab", "abxxbc"]], "o"), np.float32).take(torch.tensor([0]))
    assert found[0].tolist() == [[1.0, 1.0, 2.0, 0.0, 0.0], [0.0, 1.0, 2.0, 2.0, 3.0]]


def test_rows_are_padded_to_the_longest_of_a_batch():
    lengths = torch.tensor([4, 1, 2])
    rows = SequenceRows(torch.arange(7.0)[:, None], lengths)
    x, found = rows.take(torch.tensor([2, 1]))
    assert x[..., 0].tolist() == [[5.0, 6.0], [4.0, 0.0]]
    assert found.tolist() == [2, 1]
