"""Estimators of texts on next to nothing: they work, or say in one sentence why they cannot."""

import numpy as np
import pytest

import castalia
from castalia.errors import CastaliaError, InvalidData

SMALL = {"dim": 8, "hidden": 8, "depth": 1, "heads": 2, "min_count": 1, "epochs": 1}
PAIRS = ("Seq2Seq", "Transformer")
VECTORS = ("Word2Vec", "FastText", "GloVe")
WRITERS = (
    "NGramLanguageModel",
    "WindowLanguageModel",
    "RNNLanguageModel",
    "GPTLanguageModel",
    "BERT",
    "T5",
    *PAIRS,
)
TEXTS = {
    "no text": [],
    "empty": [""],
    "spaces": ["  ", "\n"],
    "one token": ["a"],
    "one token twice": ["a", "a"],
    "two tokens": ["a b"],
    "one sentence": ["the cat sat on the mat"],
}


def made(name, **settings):
    model = getattr(castalia, name)()
    known = model.get_params(deep=False)
    return model.set_params(**{k: v for k, v in (SMALL | settings).items() if k in known})


def refusal(name, X):
    """Return why an estimator refuses texts, or nothing."""
    try:
        made(name, random_state=0).fit(*([X, X] if name in PAIRS else [X]))
    except CastaliaError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("name", [*VECTORS, *WRITERS])
def test_next_to_no_text_is_learnt_from_or_refused_in_one_sentence(name, case):
    said = refusal(name, TEXTS[case])
    assert said or case != "no text"
    assert not said or (said.startswith(f"{name}: ") and "\n" not in said)


@pytest.mark.parametrize("name", [n for n in WRITERS if n != "NGramLanguageModel"])
def test_one_sentence_is_enough_for_a_network(name):
    X = TEXTS["one sentence"]
    model = made(name, random_state=0).fit(*([X, X] if name in PAIRS else [X]))
    assert np.isfinite(model.history_[-1]["loss"])


@pytest.mark.parametrize("name", ["Word2Vec", "FastText"])
def test_words_that_are_all_dropped_by_subsampling_are_told(name):
    said = f"{name}: subsampling must leave .* with `subsample`=1e-06 all 6 were dropped"
    with pytest.raises(InvalidData, match=said):
        made(name, random_state=0, subsample=1e-6).fit(TEXTS["one sentence"])
    made(name, random_state=0, subsample=0.0).fit(TEXTS["one sentence"])


@pytest.mark.parametrize("name", VECTORS)
def test_words_without_neighbours_have_no_vectors(name):
    with pytest.raises(InvalidData, match=f"{name}: some words must stand within one window"):
        made(name).fit(["a", "b", "c"])
