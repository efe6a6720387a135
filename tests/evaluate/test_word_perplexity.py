"""Perplexity by the convention that is stated: all factors count, and all of them divide."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import perplexity

P = [0.2, 0.5, 0.1, 0.4]


def test_the_first_factor_counts_unless_it_is_left_out_of_both():
    assert perplexity(P, kind="probability") == pytest.approx(3.976354, abs=1e-6)
    assert perplexity([P], kind="probability", first=False) == pytest.approx(3.684031, abs=1e-6)
    dropped = np.prod(P[1:]) ** (-1 / 4)  # what the notes' first line computes
    assert dropped == pytest.approx(2.659148, abs=1e-6)


@given(st.integers(1, 1000), st.integers(1, 50))
def test_k_equally_likely_words_give_k(k, length):
    assert perplexity(np.full(length, 1 / k), kind="probability") == pytest.approx(k)


def test_random_digits_give_ten():
    digits = np.random.default_rng(0).integers(10, size=1000)
    model = np.full((1000, 10), 0.1)
    assert perplexity(model[np.arange(1000), digits], kind="probability") == pytest.approx(10)


def test_bits_nats_losses_and_probabilities_agree():
    p = np.random.default_rng(0).uniform(0.01, 1, 30)
    wanted = perplexity(p, kind="probability")
    assert perplexity(np.log(p)) == pytest.approx(wanted)
    assert perplexity(np.log2(p), base=2) == pytest.approx(wanted)
    assert perplexity(-np.log2(p), kind="loss", base=2) == pytest.approx(wanted)


def test_it_is_exp_of_torchs_mean_cross_entropy_not_of_the_sum():
    torch.manual_seed(0)
    logits, target = torch.randn(12, 7), torch.randint(7, (12,))
    logs = logits.log_softmax(dim=1)[torch.arange(12), target]
    mean, total = (
        torch.nn.functional.cross_entropy(logits, target, reduction=r) for r in ("mean", "sum")
    )
    assert perplexity(logs) == pytest.approx(float(mean.exp()), rel=1e-5)
    assert float(-logs.sum()) == pytest.approx(float(total), rel=1e-5)
    assert float(total.exp()) > 1e6


def test_padding_does_not_count():
    rows = np.log([[0.5, 0.25, 0.9], [0.125, 0.9, 0.9]])
    mask = np.array([[True, True, False], [True, False, False]])
    wanted = 2 ** ((1 + 2 + 3) / 3)
    assert perplexity(rows, mask=mask) == pytest.approx(wanted)
    assert perplexity([rows[0, :2], rows[1, :1]]) == pytest.approx(wanted)
    assert perplexity(rows, mask=mask, first=False) == pytest.approx(4)
    left = np.array([[False, True, True], [True, True, True]])
    assert perplexity(rows, mask=left, first=False) == pytest.approx(0.9**-1)
    assert mask.tolist() == [[True, True, False], [True, False, False]]


def test_an_impossible_word_gives_infinity():
    assert perplexity([0.5, 0.0], kind="probability") == np.inf


@pytest.mark.parametrize(
    "values, settings, said",
    [
        ([], {}, "at least one predicted word"),
        ([-1.0, np.nan], {}, "no NaN; got 1 of 2"),
        ([0.5], {}, "of kind `log` must be at most 0; got 0.5"),
        ([1.5], {"kind": "probability"}, "must be from 0 to 1; got 1.5"),
        ([-1.0], {"kind": "loss"}, "must be at least 0; got -1"),
        ([-1.0], {"mask": [True, False]}, r"shape of the values, \(1,\); got \(2,\)"),
    ],
)
def test_values_that_cannot_be_are_refused(values, settings, said):
    with pytest.raises(InvalidData, match=said):
        perplexity(values, **settings)


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidParameter, match="`kind` must be"):
        perplexity([0.5], kind="odds")
    with pytest.raises(InvalidParameter, match="`base` must be"):
        perplexity([-0.5], base=1)
