"""Classifiers of texts: padding, attention, bad input."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language import AttentionClassifier, TransformerClassifier
from castalia.testing import toy

TEXTS, LABELS = toy("reviews")
KINDS = {
    "transformer": (TransformerClassifier, {"dim": 8, "depth": 1, "heads": 2}),
    "attention": (AttentionClassifier, {"dim": 8, "hidden": 4}),
}


def make(kind, **settings):
    cls, own = KINDS[kind]
    return cls(**{"epochs": 2, "batch_size": 32, "random_state": 0, **own, **settings})


@pytest.mark.parametrize("pool", ["mean", "attention", "first"])
def test_padding_never_changes_an_answer(pool):
    model = make("transformer", pool=pool).fit(TEXTS[:60], LABELS[:60])
    ids = next(model.adapter_.blocks(np.array(TEXTS[:4], dtype=object), np.float32))
    more = torch.nn.functional.pad(ids, (0, 9), value=model.adapter_.padding)
    assert_close(model.module_(more), model.module_(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_gets_the_same_answer_alone_and_beside_a_long_one(kind):
    model = make(kind).fit(TEXTS[:60], LABELS[:60])
    alone = model.predict_proba(["it was a good film ."])
    beside = model.predict_proba(["it was a good film .", " ".join(TEXTS[:5])])
    assert alone[0] == pytest.approx(beside[0], abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_may_be_words_and_several_at_once(kind):
    words = np.array(["no", "yes"])[LABELS[:60]]
    assert set(make(kind).fit(TEXTS[:60], words).predict(TEXTS[:5])) <= {"no", "yes"}
    both = np.stack([LABELS[:60], 1 - LABELS[:60]], axis=1)
    assert make(kind).fit(TEXTS[:60], both).predict(TEXTS[:5]).shape == (5, 2)


def test_attention_falls_on_the_words_and_the_sentence_that_decide():
    model = make("attention", hidden=8, epochs=15, batch_size=16, lr=1e-2, dropout=0.0)
    model.fit(TEXTS[:200], LABELS[:200])
    assert model.score(TEXTS[200:], LABELS[200:]) > 0.95
    documents = ["i saw it here . it was a poor film . it is long ."] * 2
    words, sentences = model.attention(documents)[0]
    assert [len(w) for w in words] == [5, 6, 4]
    assert sentences.argmax() == 1
    assert sentences.sum() == pytest.approx(1, abs=1e-5)
    assert all(w.sum() == pytest.approx(1, abs=1e-5) for w in words)


def test_long_texts_are_cut_or_refused():
    long = ["good " * 20, "bad " * 20]
    assert make("transformer", context=8).fit(long * 10, [1, 0] * 10).adapter_.length == 8
    with pytest.raises(InvalidData, match="at most 8 tokens; text 0 has 20. Raise `context`"):
        make("transformer", context=8, long="refuse").fit(long * 10, [1, 0] * 10)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_text_is_refused(kind):
    with pytest.raises(InvalidData, match="text 1 is empty"):
        make(kind).fit(["a", "", "b"], [0, 1, 0])
    with pytest.raises(InvalidData, match="must be a list of texts; got one string"):
        make(kind).fit("a text", [0])
    with pytest.raises(InvalidData, match="requires y"):
        make(kind).fit(TEXTS)


def test_heads_must_divide_the_width():
    with pytest.raises(InvalidParameter, match="`dim` must be a multiple of heads=3; got 8"):
        make("transformer", heads=3).fit(TEXTS[:20], LABELS[:20])
