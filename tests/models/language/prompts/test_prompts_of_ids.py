"""Prompts given as token ids: continued where a model can, refused in one sentence elsewhere."""

import numpy as np
import pytest
import torch

from castalia.errors import InvalidData
from castalia.models.language import (
    GPTLanguageModel,
    NGramLanguageModel,
    RNNLanguageModel,
    Seq2Seq,
    answer,
    choose,
    ending_scores,
)
from castalia.testing.toys import chain, reversal

TEXTS = chain(40)[0]
SMALL = {"tokenizer": "words", "epochs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def models():
    X, y = reversal(20)
    return {
        "gpt": GPTLanguageModel(dim=8, depth=1, heads=2, context=8, **SMALL).fit(TEXTS),
        "rnn": RNNLanguageModel(hidden=8, context=8, **SMALL).fit(TEXTS),
        "ngram": NGramLanguageModel(order=2).fit(TEXTS),
        "seq2seq": Seq2Seq(dim=8, hidden=8, **SMALL | {"tokenizer": "whitespace"}).fit(X, y),
    }


@pytest.mark.parametrize("kind", ["gpt", "rnn"])
@pytest.mark.parametrize("make", [list, tuple, np.array, torch.tensor])
def test_ids_are_continued_as_their_text_is(kind, make, models):
    model, text = models[kind], "a b c"
    ids = model.tokenizer_.encode(text)
    found = model.generate(make(ids), 4, temperature=0)
    assert model.tokenizer_.decode(found) == model.generate(text, 4, temperature=0)


@pytest.mark.parametrize("kind", ["gpt", "rnn"])
def test_several_rows_of_ids_are_continued_each(kind, models):
    model = models[kind]
    rows = model.tokenizer_.encode(["a b c", "b"])
    each = [model.generate(row, 3, temperature=0) for row in rows]
    assert model.generate(rows, 3, temperature=0) == each
    square = np.array([rows[0], rows[0]])
    assert model.generate(square, 3, temperature=0) == [each[0], each[0]]


def test_no_ids_begin_a_text_anew(models):
    assert models["gpt"].generate([], 3, temperature=0)


@pytest.mark.parametrize(
    "prompt, said",
    [
        ([0, 10_000], "token ids must be at least 0 and below .*; got 10000"),
        ([1.5], "a text must be a string, a list of words or an array of whole numbers; got .1.5"),
        (["a", 3], "a text must be a string, .*; got .'a', 3"),
        (None, "a text must be a string, .*; got None"),
        (7, "a text must be a string, .*; got 7"),
    ],
    ids=["unknown", "fraction", "mixed", "none", "number"],
)
@pytest.mark.parametrize("kind", ["gpt", "rnn"])
def test_what_is_no_prompt_is_refused_by_networks(kind, prompt, said, models):
    with pytest.raises(InvalidData, match=f"LanguageModel.generate: {said}"):
        models[kind].generate(prompt)


def test_counts_continue_numbers_and_refuse_those_they_do_not_know(models):
    model = models["ngram"]
    words = model.vocabulary_.words
    found = model.generate([words.index("a")], 2, temperature=0)
    text = model.generate("a", 2, temperature=0)
    assert " ".join(words[i] for i in found) == text
    with pytest.raises(InvalidData, match="numbers must be at least 0 and below .*; got 999"):
        model.generate([999])
    for wrong in (None, 7, [1.5]):
        with pytest.raises(InvalidData, match="NGramLanguageModel: a text must be a string"):
            model.generate(wrong)


@pytest.mark.parametrize("kind", ["gpt", "rnn", "ngram", "seq2seq"])
@pytest.mark.parametrize("prompt", [[1, 2], [[1, 2]], np.array([1, 2]), 7, None], ids=str)
def test_tasks_are_put_in_words(kind, prompt, models):
    said = "a prompt must be a string or a Prompt; got .* Of token ids make a text by"
    for ask in (choose, ending_scores):
        with pytest.raises(InvalidData, match=f"choose: {said}"):
            ask(models[kind], prompt, [" a", " b"])
    with pytest.raises(InvalidData, match=f"answer: {said}"):
        answer(models[kind], prompt)


@pytest.mark.parametrize("choices", [[1, 2], [[1, 2], [3, 4]], [None, " a"]], ids=str)
def test_choices_are_texts(choices, models):
    with pytest.raises(InvalidData, match="choose: choices must be"):
        choose(models["gpt"], ["a", "b"], choices)


def test_a_translator_reads_texts_only(models):
    model = models["seq2seq"]
    for ask in (model.generate, model.predict, lambda X: model.choose(X, ["a", "b"])):
        with pytest.raises(InvalidData, match="Seq2Seq: a text must be a string; got 1 at"):
            ask([1, 2])
