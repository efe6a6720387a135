"""Every task as a text that answers a text: label words are scored, and the best one is said."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from castalia.data.text import TASKS
from castalia.errors import InvalidData
from castalia.models.language import BART, T5, Seq2Seq
from castalia.testing.toys import reversal

SMALL = {"tokenizer": "whitespace", "context": 24, "dim": 32, "depth": 1, "heads": 4}
SMALL |= {"head_dim": 8, "hidden": 64, "dropout": 0.0, "random_state": 0}


def two_tasks(n: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Sentences about good and bad things, and pairs that say the same or not, in T5's words."""
    random = np.random.default_rng(seed)
    words = {"positive": ["good", "fine", "great"], "negative": ["bad", "dull", "poor"]}
    sst2, rte, X, y = TASKS["sst2"], TASKS["rte"], [], []
    for i in range(n):
        kind = sst2.labels[random.integers(2)]
        first = f"a {random.choice(words[kind])} film"
        if i % 2:
            X += sst2.sources([first])
            y += sst2.answers([kind])
        else:
            other = sst2.labels[random.integers(2)]
            X += rte.sources([(first, f"it is {random.choice(words[other])}")])
            y += rte.answers([rte.labels[int(kind != other)]])
    return X, y


@pytest.fixture(scope="module")
def model() -> T5:
    return T5(**SMALL, epochs=40, batch_size=25, lr=1e-2).fit(*two_tasks(200))


def test_one_model_answers_two_tasks_by_the_words_of_their_labels(model):
    X, y = two_tasks(100, seed=1)
    for name in ("sst2", "rte"):
        rows = [(x, label) for x, label in zip(X, y, strict=True) if x.startswith(name)]
        said = model.choose([x for x, _ in rows], TASKS[name].labels)
        assert np.mean(said == np.array([label for _, label in rows])) > 0.85


def test_the_score_of_an_answer_is_its_log_probability_token_by_token(model):
    sources, answers = ["sst2 sentence: a good film", "rte"], ["positive", "negative film"]
    found = model.score_answers(sources, answers)
    encode, net = model.adapter_.tokenizer.encode, model.module_
    end, start = model.adapter_.end, model._start_of(model.adapter_)
    for i, source in enumerate(sources):
        for k, answer in enumerate(answers):
            wanted = [*encode(answer), end]
            read = torch.tensor([[start, *wanted[:-1]]])
            with torch.no_grad():
                logs = net(torch.tensor([[*encode(source), end]]), read)[0].log_softmax(dim=-1)
            expected = sum(float(logs[t, token]) for t, token in enumerate(wanted))
            assert found[i, k] == pytest.approx(expected, rel=1e-4)
    assert (found < 0).all()


def test_scores_do_not_depend_on_what_is_scored_beside_them(model):
    X, _ = two_tasks(12, seed=2)
    labels = TASKS["rte"].labels
    whole = model.score_answers(X, labels)
    alone = np.concatenate([model.score_answers([x], labels) for x in X])
    assert_allclose(whole, alone, atol=1e-4)
    with pytest.raises(InvalidData, match="score_answers: X must be a list of texts"):
        model.score_answers(X, "entailment")


@pytest.mark.parametrize("kind", [BART, Seq2Seq], ids=["BART", "Seq2Seq"])
def test_other_text_to_text_models_score_answers_too(kind):
    X, y = reversal(40)
    sizes = {"dim": 16, "heads": 2, "depth": 1} if kind is BART else {"dim": 8, "hidden": 8}
    model = kind(tokenizer="whitespace", **sizes, epochs=1, random_state=0).fit(X, y)
    scores = model.score_answers(X[:3], y[:2])
    assert scores.shape == (3, 2)
    assert np.isfinite(scores).all()
