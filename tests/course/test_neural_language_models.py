"""Language models by networks beside those by counting: rows LM, PRE and SEQ of the course."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.data.tokenizers import CharTokenizer
from castalia.models.language import (
    GPTLanguageModel,
    NGramLanguageModel,
    RNNLanguageModel,
    WindowLanguageModel,
)
from castalia.nets.language import RecurrentLM
from castalia.objectives import CausalLM
from castalia.protocols import Batch
from castalia.testing import toy

CHAIN = toy("chain")[0]
SMALL = {"tokenizer": "words", "random_state": 0, "batch_size": 8, "lr": 1e-2}


def echoes(n=120, length=16, lag=4, seed=0):
    """Texts in which a word mostly repeats the one four places before: too far for a trigram."""
    random = np.random.default_rng(seed)
    words = random.integers(4, size=(n, length))
    for t in range(lag, length):
        again = random.random(n) < 0.9
        words[again, t] = words[again, t - lag]
    return [" ".join("abcd"[i] for i in row) for row in words]


ECHOES, NEW_ECHOES = echoes(), echoes(seed=1)[:60]


def test_a_window_network_beats_the_ngram_model_of_its_order():
    settings = {**SMALL, "window": 2, "dim": 8, "hidden": 16, "context": 32, "epochs": 30}
    model = WindowLanguageModel(**settings).fit(CHAIN[:200])
    counted = NGramLanguageModel(order=3).fit(CHAIN[:200])
    assert model.perplexity(CHAIN[200:]) < counted.perplexity(CHAIN[200:])


def test_a_convolutional_language_model_beats_the_unigram_model():
    settings = {**SMALL, "window": 2, "depth": 2, "dim": 8, "hidden": 16, "context": 32}
    model = WindowLanguageModel(**settings, epochs=10).fit(CHAIN[:200])
    counted = NGramLanguageModel(order=1).fit(CHAIN[:200])
    assert model.perplexity(CHAIN[200:]) < 0.6 * counted.perplexity(CHAIN[200:])


@pytest.mark.parametrize("kind", ["rnn", "gpt"])
def test_a_model_that_remembers_beats_the_trigram_model(kind):
    if kind == "rnn":
        settings = {**SMALL, "hidden": 32, "context": 17, "epochs": 25}
        model = RNNLanguageModel(**settings).fit(ECHOES)
    else:
        sizes = {"dim": 32, "depth": 2, "heads": 2, "dropout": 0.0, "context": 34}
        model = GPTLanguageModel(**{**SMALL, "lr": 5e-3}, **sizes, epochs=30).fit(ECHOES)
    counted = NGramLanguageModel(order=3).fit(ECHOES)
    assert model.perplexity(NEW_ECHOES) < 0.8 * counted.perplexity(NEW_ECHOES)


def test_a_stacked_lstm_on_characters_needs_fewer_bits_than_a_trigram():
    texts = toy("reviews")[0]
    settings = {"hidden": 32, "depth": 2, "context": 32, "batch_size": 4, "lr": 2e-2}
    model = RNNLanguageModel(**settings, tokenizer="characters", epochs=4, random_state=0)
    model.fit(texts[:150])
    losses = [line["loss"] for line in model.history_]
    assert losses[-1] < losses[len(losses) // 2] < losses[0]
    counted = NGramLanguageModel(order=3, tokenizer=CharTokenizer()).fit(texts[:150])
    bits = [-m.score(texts[150:]) / np.log(2) for m in (model, counted)]
    assert bits[0] < 0.8 * bits[1]


@pytest.mark.parametrize("kind", ["rnn", "gpt"])
def test_what_is_sampled_has_the_statistics_of_the_corpus(kind):
    if kind == "rnn":
        model = RNNLanguageModel(**SMALL, cell="elman", hidden=16, context=16, epochs=12)
    else:
        sizes = {"dim": 16, "depth": 1, "heads": 2, "dropout": 0.0, "context": 32}
        model = GPTLanguageModel(**SMALL, **sizes, epochs=12)
    model.fit(CHAIN)
    drawn = model.generate([""] * 300, tokens=30, random_state=0)
    shares, successors = zip(*(_statistics(texts) for texts in (CHAIN, drawn)), strict=True)
    assert np.abs(shares[0] - shares[1]).sum() / 2 < 0.06
    assert successors[1] == pytest.approx(successors[0], abs=0.05)


def _statistics(texts):
    """Return the share of each word, and how often the usual successor follows."""
    words = [text.split() for text in texts]
    counts = np.array([sum(row.count(w) for row in words) for w in "abcdef"])
    pairs = [(a, b) for row in words for a, b in zip(row, row[1:], strict=False)]
    usual = np.mean(["abcdef".index(b) == ("abcdef".index(a) + 1) % 6 for a, b in pairs])
    return counts / counts.sum(), usual


def test_training_approaches_the_entropy_of_the_chain():
    settings = {**SMALL, "window": 1, "dim": 8, "hidden": 16, "context": 32, "epochs": 40}
    model = WindowLanguageModel(**{**settings, "lr": 5e-3}).fit(CHAIN)
    assert model.perplexity(toy_chain(seed=5)) == pytest.approx(_perplexity(), rel=0.03)


def toy_chain(seed):
    from castalia.testing.toys import chain

    return chain(seed=seed)[0]


def _perplexity():
    """Return the chain's own perplexity: of its successors, its ends and its beginnings."""
    usual, other = 0.9 * (0.8 + 0.2 / 6), 0.9 * 0.2 / 6
    after = -(usual * np.log(usual) + 5 * other * np.log(other) + 0.1 * np.log(0.1))
    words = 10  # of a text on average: each is followed by one more event, one begins it
    return np.exp((np.log(6) + words * after) / (words + 1))


def test_losses_with_forced_inputs_are_the_same_at_once_and_step_by_step():
    torch.manual_seed(0)
    net, ids = RecurrentLM(9, hidden=6).eval(), torch.randint(9, (3, 12))
    at_once = CausalLM().terms(net, Batch(ids), "train")["loss"]
    cache, losses = net.cache(3, 12), []
    for t in range(11):  # the true token is fed, whatever was predicted
        logits = net.head(net.features(ids[:, t : t + 1], cache=cache)[:, -1])
        losses.append(F.cross_entropy(logits, ids[:, t + 1]))
    assert_close(torch.stack(losses).mean(), at_once)
