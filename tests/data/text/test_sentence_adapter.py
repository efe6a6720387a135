"""Sentences as rows: ids, numbers of words and spellings."""

import numpy as np
import pytest
import torch

from castalia.data.text import SentenceAdapter, spell
from castalia.data.text.sentence_adapter import BEGINS, ENDS, FIRST, LAST
from castalia.data.tokenizers import ByteBPETokenizer, WordPieceTokenizer
from castalia.errors import InvalidData

TEXTS = ["the cat sat", "cats"]


def rows(X, **settings):
    adapter = SentenceAdapter(**settings)
    X = adapter.check(X, "fit")
    return adapter, adapter.fit(X).rows(X, None).take(torch.arange(len(X)))


def test_a_text_stands_between_begin_and_end_and_its_tokens_are_numbered():
    adapter, found = rows(TEXTS)
    assert found.shape == (2, 2, 8)
    ids = found[:, 0].tolist()
    assert adapter.tokenizer.decode(ids[0], special=True).startswith("<s> the cat sat </s> <pad>")
    assert ids[1][0] == adapter.begin
    assert ids[1][2:] == [adapter.end] + [adapter.padding] * 5
    assert found[:, 1].tolist() == [[0, 1, 2, 3, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]]


def test_a_listed_word_is_numbered_at_its_first_piece():
    pieces = WordPieceTokenizer.from_pieces(["play", "##ing", "the", "cat", "##s"])
    adapter, found = rows([["the", "cats", "playing"]], tokenizer=pieces)
    assert found[0, 1].tolist() == [0, 1, 2, 0, 3, 0, 0, 0]
    assert adapter.check([["cats"]], "predict").tolist() == [("cats",)]


def test_unknown_words_are_spelled():
    adapter, found = rows(TEXTS, spelled=50)
    assert adapter.letters == 6  # cats, its begin and its end
    new = next(adapter.blocks(adapter.check(["the dog"], "embed"), None))
    assert new[0, 0, 2] == adapter.tokenizer.id_of("unknown")
    letters = [BEGINS, *(1 + b for b in b"dog"), ENDS, 0]
    assert new[0, 2:, 2].tolist() == letters
    assert new[0, 2:, 0].tolist() == [FIRST, 0, 0, 0, 0, 0]
    assert new[0, 2:, 3].tolist() == [LAST, 0, 0, 0, 0, 0]


def test_spellings_are_bytes_and_lose_their_end():
    assert spell(["é"], 5).tolist() == [[BEGINS, 0xC3 + 1, 0xA9 + 1, ENDS, 0]]
    assert spell(["abcdef"], 4).tolist() == [[BEGINS, 98, 99, ENDS]]


def test_pieces_of_any_tokenizer_are_spelled():
    adapter, found = rows(["naïve café", "</s> is text"], tokenizer=ByteBPETokenizer(), spelled=9)
    inside = found[:, 1] > 0
    assert (found[:, 2][inside] == BEGINS).all()
    assert (found[:, 2:].sum(dim=1)[~inside & (found[:, 0] == adapter.padding)] == 0).all()


def test_long_sentences_are_cut_or_refused():
    adapter, found = rows(["a b c d e"], context=5)
    assert found.shape[2] == 5
    assert found[0, 0, -1] == adapter.end
    refusing = SentenceAdapter(context=5, long="refuse")
    with pytest.raises(InvalidData, match="fit: a text must have at most 3 tokens; text 0 has 5"):
        refusing.fit(refusing.check(["a b c d e"], "fit"))


@pytest.mark.parametrize(
    ("X", "words", "said"),
    [
        (["a", ""], False, "text 1 is empty"),
        ([["a"], []], False, "a list of words, at least one; got"),
        (["a b"], True, "a text must be a list of words"),
        ([np.nan], False, "a text must be a string; got nan"),
    ],
)
def test_what_is_no_sentence_is_refused(X, words, said):
    with pytest.raises(InvalidData, match=said):
        SentenceAdapter(words=words).check(X, "fit")
