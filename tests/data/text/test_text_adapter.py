"""Texts with one label each: padding, cutting, refusing."""

import numpy as np
import pytest
import torch

from castalia.data.text import DocumentAdapter, TextAdapter
from castalia.data.text.document_adapter import sentences_of
from castalia.data.tokenizers import ByteBPETokenizer
from castalia.errors import InvalidData, InvalidParameter

TEXTS = ["a good film", "bad", "it is long " * 10]


def fitted(**settings):
    adapter = TextAdapter(**settings)
    texts = adapter.check(TEXTS, "Model")
    return adapter.fit(texts), texts


def rows(adapter, texts):
    return adapter.rows(texts, np.float32).take(torch.arange(len(texts)))


def test_the_mask_is_where_ids_are_no_padding():
    adapter, texts = fitted(context=16)
    kept = (rows(adapter, texts) != adapter.padding).sum(dim=1)
    assert kept.tolist() == [3, 1, 16]
    assert adapter.extra == {"vocabulary": 11, "padding": 0, "context": 16}


def test_rows_are_no_longer_than_the_longest_text_needs():
    adapter, texts = fitted(context=512)
    assert rows(adapter, texts).shape == (3, 32)


def test_a_tokenizer_without_padding_gets_an_id_for_it():
    adapter, texts = fitted(tokenizer=ByteBPETokenizer(vocabulary_size=270))
    assert adapter.padding == len(adapter.tokenizer)
    assert adapter.vocabulary == adapter.padding + 1
    assert rows(adapter, texts).max() == adapter.padding


def test_boundaries_stay_when_a_text_is_cut():
    adapter, texts = fitted(context=8, boundaries=True)
    found, made = rows(adapter, texts), adapter.tokenizer
    assert (found[:, 0] == made.id_of("begin")).all()
    assert found[2, -1] == made.id_of("end")
    assert found[1].tolist()[2:] == [made.id_of("end")] + [adapter.padding] * 5


def test_texts_longer_than_the_context_are_refused_where_that_is_asked():
    adapter = TextAdapter(context=8, long="refuse")
    texts = adapter.check(TEXTS, "Model")
    with pytest.raises(
        InvalidData, match="Model: a text must have at most 8 tokens; text 2 has 30"
    ):
        adapter.fit(texts)
    with pytest.raises(InvalidParameter, match="`long` must be 'cut' or 'refuse'; got 'drop'"):
        TextAdapter(long="drop")


@pytest.mark.parametrize("adapter", [TextAdapter, DocumentAdapter])
def test_empty_and_missing_texts_are_named(adapter):
    with pytest.raises(InvalidData, match="text 1 is empty"):
        adapter().check(["a", " "], "Model")
    with pytest.raises(InvalidData, match="a text must be a string; got nan at place 0"):
        adapter().check([np.nan], "Model")


@pytest.mark.parametrize("made", [TextAdapter(context=16), DocumentAdapter()])
def test_blocks_for_prediction_hold_the_ids_of_training(made):
    texts = made.check(TEXTS, "Model")
    made.fit(texts)
    again = type(made).from_state(made.state())
    assert torch.equal(torch.cat(list(again.blocks(texts, np.float32))), rows(made, texts))


def test_sentences_end_at_their_marks_and_at_lines():
    text = 'He said: "No." She left. 3.5 is a number!\nA line\n\nwithout end'
    wanted = ['He said: "No.', "She left.", "3.5 is a number!", "A line", "without end"]
    assert sentences_of(text) == wanted


def test_documents_are_padded_in_both_directions():
    adapter = DocumentAdapter(sentences=3, words=4)
    texts = adapter.check(["one two. three.", "a b c d e f. g. h. i."], "Model")
    found = rows(adapter.fit(texts), texts) != adapter.padding
    assert found.sum(dim=2).tolist() == [[3, 2, 0], [4, 2, 2]]
