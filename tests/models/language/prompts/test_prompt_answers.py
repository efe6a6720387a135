"""Prompting: scores of endings against the networks' own logits, choices, answers, bad input."""

import numpy as np
import pytest
import torch

from castalia.data.prompts import TRANSLATE_LIST
from castalia.data.tokenizers import BPETokenizer, CharTokenizer
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.language import (
    T5,
    GPTLanguageModel,
    NGramLanguageModel,
    RNNLanguageModel,
    Seq2Seq,
    WindowLanguageModel,
    answer,
    choose,
    ending_scores,
)
from castalia.testing import toy

TEXTS = toy("chain")[0][:60]
SMALL = {"tokenizer": "words", "epochs": 1, "random_state": 0}
KINDS = {
    "gpt": (GPTLanguageModel, {"dim": 8, "depth": 1, "heads": 2, "context": 8}),
    "rnn": (RNNLanguageModel, {"hidden": 8, "context": 8}),
    "window": (WindowLanguageModel, {"window": 3, "dim": 8, "hidden": 8, "context": 8}),
}
PAIRS = {
    "t5": (T5, {"dim": 8, "depth": 1, "heads": 2, "head_dim": 4, "hidden": 8, "context": 12}),
    "seq2seq": (Seq2Seq, {"dim": 8, "hidden": 8, "context": 12}),
}
ENDINGS = [" a", " b c", " f e d"]


@pytest.fixture(scope="module")
def models():
    made = {kind: cls(**SMALL, **own).fit(TEXTS) for kind, (cls, own) in KINDS.items()}
    X, y = toy("reversal")
    small = {**SMALL, "tokenizer": "whitespace"}
    return made | {
        kind: cls(**small, **own).fit(X[:50], y[:50]) for kind, (cls, own) in PAIRS.items()
    }


def by_hand(model, prompt, ending):
    """Sum log p of an ending's tokens from the logits of one text."""
    made, end = model.tokenizer_, model.adapter_.end
    before, ids = [end, *made.encode(prompt)], [end, *made.encode(prompt + ending)]
    with torch.no_grad():
        logs = model.module_.eval()(torch.tensor([ids])).log_softmax(dim=-1)[0]
    return sum(float(logs[t - 1, ids[t]]) for t in range(len(before), len(ids)))


@pytest.mark.parametrize("kind", KINDS)
def test_an_ending_scores_what_the_network_gives_its_tokens(kind, models):
    model = models[kind]
    found = ending_scores(model, "a b c", ENDINGS, normalise=False)
    assert found == pytest.approx([by_hand(model, "a b c", e) for e in ENDINGS], abs=1e-5)
    each = ending_scores(model, "a b c", ENDINGS)
    assert each == pytest.approx(found / [1, 2, 3])


@pytest.mark.parametrize("kind", PAIRS)
def test_an_answer_scores_what_the_decoder_gives_its_tokens_and_its_end(kind, models):
    model = models[kind]
    adapter, net, texts = model.adapter_, model.module_, ["a b c d e", "h g f a"]
    answers = [["e d", "a"], ["a f g h", "b"]]
    found = ending_scores(model, texts, answers, normalise=False)
    for text, row, scores in zip(texts, answers, found, strict=True):
        source = torch.tensor([adapter.encode(np.array([text], dtype=object))[0]])
        for said, score in zip(row, scores, strict=True):
            ids = [model._start_of(adapter), *adapter.tokenizer.encode(said), adapter.end]
            with torch.no_grad():
                logs = net.eval()(source, torch.tensor([ids[:-1]])).log_softmax(dim=-1)[0]
            by_hand = sum(float(logs[t, ids[t + 1]]) for t in range(len(ids) - 1))
            assert score == pytest.approx(by_hand, abs=1e-5)


def test_counts_score_endings_as_they_rank_them():
    for boundaries in (True, False):
        model = NGramLanguageModel(order=2, boundaries=boundaries).fit(TEXTS)
        found = ending_scores(model, "a b", ENDINGS, normalise=False)
        assert found == pytest.approx(model.rank("a b", [e.strip() for e in ENDINGS]))


@pytest.mark.parametrize("kind", [*KINDS, *PAIRS])
def test_prompts_together_score_as_each_by_itself(kind, models):
    prompts, rows = ["a b", "f e d c"], [[" a", " b c"], [" d e f"]]
    together = ending_scores(models[kind], prompts, rows)
    assert together.shape == (2, 2)
    assert together[1, 1] == -np.inf
    for prompt, row, found in zip(prompts, rows, together, strict=True):
        alone = ending_scores(models[kind], prompt, row)
        assert found[: len(row)] == pytest.approx(alone, abs=1e-5)


def test_without_normalising_a_uniform_model_takes_the_shortest_choice():
    model = GPTLanguageModel(**SMALL, dim=8, depth=1, heads=2).fit(TEXTS)
    with torch.no_grad():
        for parameter in model.module_.parameters():
            parameter.zero_()
    each = -np.log(len(model.tokenizer_))
    assert ending_scores(model, "a", ENDINGS) == pytest.approx([each] * 3)
    assert ending_scores(model, "a", ENDINGS, normalise=False) == pytest.approx(
        [each, 2 * each, 3 * each]
    )
    assert choose(model, "a", ENDINGS[::-1], normalise=False) == " a"


def test_pieces_that_join_prompt_and_ending_count_for_all_endings():
    tokenizer = BPETokenizer(vocabulary_size=40).fit(["the cat sat"] * 5)
    model = GPTLanguageModel(
        dim=8, depth=1, heads=2, tokenizer=tokenizer, epochs=1, random_state=0
    ).fit(["the cat sat"] * 5)
    own, cat, cab = tokenizer.encode(["the ca", "the cat", "the cab"])
    shared = next(t for t in range(9) if not (own[: t + 1] == cat[: t + 1] == cab[: t + 1]))
    assert shared < len(own)  # otherwise there is nothing to see
    found = ending_scores(model, "the ca", ["t", "b"], normalise=False)
    for score, ids in zip(found, (cat, cab), strict=True):
        stream = np.array([model.adapter_.end, *ids])
        assert score == pytest.approx(model._logs([stream])[0][shared:].sum(), abs=1e-5)


def test_a_prompt_longer_than_the_context_is_cut_at_its_beginning(models):
    model, prompt = models["gpt"], " ".join("abcdef" * 4)
    with pytest.warns(DataWarning, match="cut to the last 8, .* Give fewer examples"):
        found = ending_scores(model, prompt, [" a", " b"])
    for score, end in zip(found, "ab", strict=True):
        ids = np.array(model.tokenizer_.encode(f"{prompt} {end}"))[-9:]
        assert score == pytest.approx(model._logs([ids])[0][-1], abs=1e-5)
    with pytest.warns(DataWarning, match="cut to the last 8"):
        answer(model, prompt, tokens=1)
    with pytest.warns(DataWarning, match="cut to the first 10"):
        choose(models["t5"], prompt, ["a", "b"])


def test_choices_of_a_prompt_come_back_as_they_were_given():
    texts = ["sea = mer", "cheese = fromage", "cheese = fromage blanc"] * 3
    model = NGramLanguageModel(order=3).fit(texts)
    prompts = [TRANSLATE_LIST(word) for word in ("sea", "cheese")]
    assert choose(model, prompts[0], ["fromage", "mer"]) == "mer"
    assert choose(model, prompts, ["fromage", "mer"]) == ["mer", "fromage"]
    assert choose(model, [str(p) for p in prompts], [[" mer", " de"], [" fromage"]]) == [
        " mer",
        " fromage",
    ]


def test_an_answer_ends_before_the_next_example():
    model = NGramLanguageModel(order=4, tokenizer=CharTokenizer()).fit(["a = b\n" * 20])
    prompt = TRANSLATE_LIST("a", examples=[("a", "b")])
    assert answer(model, [prompt] * 2, tokens=6) == ["b", "b"]
    assert answer(model, prompt.text, tokens=8) == "b\na = b"


def test_a_model_of_two_parts_answers_by_its_own_search(models):
    model, texts = models["t5"], ["a b c d", "h g f a"]
    assert answer(model, texts) == [text.strip() for text in model.predict(texts)]


@pytest.mark.parametrize(
    "prompt, choices, said",
    [
        ("a b", [], "at least one prompt, and a list of choices"),
        ("a b", "yes", "a list of choices; got 1 prompts and the choices 'yes'"),
        ([], [" a"], "got 0 prompts"),
        ("a b", [" a", " a"], "different texts, none of them empty"),
        ("a b", [" a", " "], "different texts, none of them empty"),
        (["a", "b"], [[" a"], [" b"], [" c"]], "one for each of the 2; got 3"),
        ("a b", [" unheard", " unseen"], "it reads some of .* alike"),
    ],
)
@pytest.mark.parametrize("kind", ["gpt", "t5"])
def test_choices_that_cannot_be_compared_are_refused(kind, prompt, choices, said, models):
    with pytest.raises(InvalidData, match=said):
        choose(models[kind], prompt, choices)


def test_what_cannot_be_prompted_is_refused():
    with pytest.raises(InvalidParameter, match="must be a fitted language model"):
        choose("gpt-2", "a", [" b"])
    ids = GPTLanguageModel(dim=8, depth=1, heads=2, epochs=1).fit([[1, 2, 3] * 10])
    with pytest.raises(InvalidData, match="it was fitted on token ids"):
        choose(ids, "a", [" b"])
    with pytest.raises(InvalidData, match="at least one prompt; got none"):
        answer(ids, [])
