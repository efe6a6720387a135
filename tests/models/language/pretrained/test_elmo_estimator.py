"""ELMo: vectors that depend on the sentence, in both directions, and tasks on a mix of them."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.testing import assert_close

from castalia.base import load, save
from castalia.data.tokenizers import WordPunctTokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language import ELMo, ELMoClassifier, ELMoTagger, NGramLanguageModel
from castalia.testing.toys import chain, tagged

TINY = {"dim": 8, "dropout": 0.0, "batch_size": 25, "lr": 3e-2, "random_state": 0}
TOPICS = ("river water shore sand", "money loan credit cash")


def sentences(topic, n, seed=0):
    """Sentences with the word bank between words of one topic."""
    words = np.random.default_rng(seed).choice(TOPICS[topic].split(), size=(n, 4))
    return [f"{a} {b} bank {c} {d}" for a, b, c, d in words]


RIVER, MONEY = (sentences(topic, 3, seed=1) for topic in (0, 1))


@cache
def senses():
    return ELMo(**TINY, epochs=10).fit(sentences(0, 50) + sentences(1, 50))


@cache
def chained():
    return ELMo(**{**TINY, "batch_size": 40}, context=16, depth=1, epochs=10).fit(chain()[0][:200])


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def banks(model, texts, **settings):
    """Return the vector of the word bank in each text."""
    return [rows[2] for rows in model.embed(texts, **settings)]


def test_both_perplexities_are_below_those_of_single_words():
    seen, unseen = chain()[0][:200], chain()[0][200:]
    single = (
        NGramLanguageModel(order=1, tokenizer=WordPunctTokenizer()).fit(seen).perplexity(unseen)
    )
    model = chained()
    both = [model.perplexity(unseen, direction=d) for d in ("forward", "backward")]
    assert max(both) < 0.6 * single
    assert model.perplexity(unseen) == pytest.approx(np.sqrt(both[0] * both[1]))
    assert model.score(unseen) == pytest.approx(-np.log(model.perplexity(unseen)))


def test_a_word_has_another_vector_in_another_sense():
    model = senses()
    static = banks(model, RIVER + MONEY, layer=0)
    assert all(cosine(static[0], other) == pytest.approx(1) for other in static)
    top = banks(model, RIVER + MONEY, layer=-1)
    across = [cosine(a, b) for a in top[:3] for b in top[3:]]
    within = [cosine(top[i], top[j]) for i, j in ((0, 1), (1, 2), (3, 4), (4, 5))]
    assert max(across) < min(0.9, *within)


def test_the_layers_of_a_token_are_those_of_the_network():
    model = senses()
    rows = next(model.adapter_.blocks(model.adapter_.check(MONEY[:1], ""), None))
    layers = torch.stack(model.module_.layers(rows))[:, 0, 1:-1].detach()
    assert_close(torch.from_numpy(model.embed(MONEY[:1])[0]), layers.mean(dim=0))
    for layer in (0, 1, -1):
        assert_close(torch.from_numpy(model.embed(MONEY[:1], layer=layer)[0]), layers[layer])
    assert_close(model.transform(MONEY)[0], model.embed(MONEY[:1])[0].mean(axis=0))


def test_a_text_and_its_words_get_the_same_vectors():
    model = senses()
    assert_close(*(model.embed([x])[0] for x in (MONEY[0], MONEY[0].split())))


def test_a_word_never_met_has_a_vector_of_its_own_where_words_are_spelled():
    plain = senses()
    spelled = ELMo(**{**TINY, "epochs": 1}, spelled=True).fit(RIVER + MONEY)
    for model, differ in ((plain, False), (spelled, True)):
        one, other = model.embed(["the xylophone", "the quartz"], layer=0)
        assert np.allclose(one[1], other[1], atol=1e-5) != differ


def test_a_task_on_a_frozen_start_learns_the_mix_and_the_head_only():
    base = chained()
    X = chain()[0][:60]
    y = [text.count("a") > text.count("d") for text in X]
    model = ELMoClassifier(start=base, epochs=3, lr=0.05, batch_size=20, random_state=0).fit(X, y)
    start, now = base.module_.state_dict(), model.module_.encoder.state_dict()
    assert now.keys() == start.keys() - {"output.weight", "output.bias"}
    assert all(torch.equal(now[name], start[name]) for name in now)
    assert (model.module_.mix.scores != 0).all()
    assert model.module_.mix.gamma != 1
    assert model.layer_shares_.sum() == pytest.approx(1)
    tuned = clone(model).set_params(train="all", epochs=1).fit(X, y)
    assert not torch.equal(tuned.module_.encoder.tokens.weight, base.module_.tokens.weight)


def test_what_was_pretrained_helps_where_labels_are_few():
    texts = sentences(0, 60, seed=2) + sentences(1, 60, seed=2)
    X, y = [text.replace("bank", "thing") for text in texts], [0] * 60 + [1] * 60
    few = [0, 119]  # one of each
    settings = {**TINY, "depth": 1, "epochs": 30}
    scores = [
        ELMoClassifier(**settings, start=start).fit([X[i] for i in few], [0, 1]).score(X, y)
        for start in (None, senses())
    ]
    assert scores[1] > scores[0] + 0.1


def test_a_tagger_hears_both_neighbours():
    X, y = _between(200)
    model = ELMoTagger(**TINY, depth=1, epochs=10).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.98


def _between(n):
    """Sentences in which a word's tag says whether a stands before it, and whether behind it."""
    X = [tuple(row) for row in np.random.default_rng(0).choice(list("abc"), size=(n, 7)).tolist()]
    tags = [[f"{x[i - 1 : i] == ('a',)} {x[i + 1 : i + 2] == ('a',)}" for i in range(7)] for x in X]
    return X, tags


def test_saved_models_keep_their_start(tmp_path):
    X, y = tagged(30)
    base = ELMo(**{**TINY, "epochs": 1}, hidden=12, spelled=True).fit(list(X))
    save(base, tmp_path / "base")
    model = ELMoTagger(start=tmp_path / "base", epochs=1, random_state=0).fit(X, y)
    assert torch.equal(
        model.module_.encoder.tokens.project.weight, base.module_.tokens.project.weight
    )
    save(model, tmp_path / "tagger")
    assert load(tmp_path / "tagger").predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize(
    ("act", "error", "said"),
    [
        (lambda: senses().embed(MONEY, layer=3), InvalidParameter, "from 0 to 2.*got 3"),
        (lambda: senses().embed(MONEY, pool="max"), InvalidParameter, "None or 'mean'; got 'max'"),
        (lambda: senses().perplexity(MONEY, direction="up"), InvalidParameter, "got 'up'"),
        (lambda: ELMo(hidden=8, dim=8).fit(MONEY), InvalidParameter, "ELMo: `hidden` .*dim=8"),
        (
            lambda: ELMoClassifier(train="head").fit(MONEY, [0, 1, 0]),
            InvalidParameter,
            "random weights would be kept",
        ),
        (
            lambda: ELMoClassifier(start=ELMo()).fit(MONEY, [0, 1, 0]),
            ValueError,
            "not fitted",
        ),
        (lambda: ELMoTagger().fit(MONEY, [["A"]] * 3), InvalidData, "must be a list of words"),
    ],
)
def test_what_makes_no_sense_is_named(act, error, said):
    with pytest.raises(error, match=said):
        act()
