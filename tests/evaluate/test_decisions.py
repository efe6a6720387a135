import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, precision_score, recall_score

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.evaluate import expected_cost, f_beta, optimal_threshold, precision_recall

LABELS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30)


@settings(max_examples=40)
@given(LABELS, st.sampled_from([0.5, 1.0, 2.0]))
def test_precision_recall_and_f_equal_scikit_learn_s(pairs, beta):
    true, said = np.array(pairs).T.astype(int)
    precision, recall = precision_recall(true, said)
    undefined = {"zero_division": np.nan}
    np.testing.assert_equal(precision, precision_score(true, said, **undefined))
    np.testing.assert_equal(recall, recall_score(true, said, **undefined))
    if true.any():
        theirs = fbeta_score(true, said, beta=beta, zero_division=0)
        assert f_beta(precision, recall, beta) == pytest.approx(theirs)
    else:
        assert math.isnan(f_beta(precision, recall, beta))


def test_the_rare_disease_of_the_notes():
    true = np.zeros(1_000_000, dtype=int)
    true[0] = 1
    never, always = np.zeros_like(true), np.ones_like(true)
    assert (true == never).mean() == pytest.approx(0.999999)
    precision, recall = precision_recall(true, never)
    assert math.isnan(precision)  # the notes say zero; it is 0/0
    assert recall == 0
    assert precision_recall(true, always) == (1e-6, 1.0)


def test_f_measures_of_the_notes():
    assert f_beta(0.5, 1.0) == pytest.approx(2 / 3)
    assert f_beta(0.5, 1.0, 0.5) == pytest.approx(5 / 9)
    assert f_beta(0.5, 1.0, 2) == pytest.approx(5 / 6)
    assert f_beta(0.0, 0.0) == 0.0
    with pytest.raises(InvalidParameter, match="`beta` must be above 0; got 0"):
        f_beta(0.5, 0.5, 0)


@pytest.mark.parametrize("costs", [(1.0, 1.0), (9.0, 1.0), (1.0, 4.0)])
def test_no_threshold_costs_less_than_the_optimal_one(costs):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=100_000)
    true = (rng.uniform(size=len(p)) < p).astype(int)
    alarm, miss = costs

    def cost(threshold):
        said = (p > threshold).astype(int)
        return expected_cost(true, said, false_positive=alarm, false_negative=miss)

    best = cost(optimal_threshold(alarm, miss))
    assert best == pytest.approx(alarm * miss / (2 * (alarm + miss)), rel=0.03)
    assert all(best <= cost(threshold) + 2e-3 for threshold in np.linspace(0.05, 0.95, 19))


def test_bad_costs_and_shapes_are_refused():
    with pytest.raises(InvalidParameter, match="costs must be finite and not negative"):
        optimal_threshold(-1, 1)
    with pytest.raises(ShapeMismatch, match="one entry per row"):
        expected_cost([1, 0], [1])


def test_a_positive_class_that_is_no_label_is_refused():
    with pytest.raises(InvalidParameter, match="`'no'` or `'yes'`; got 1"):
        precision_recall(["yes", "no"], ["yes", "no"])
    with pytest.raises(InvalidParameter, match="`positive` must be one of the labels"):
        expected_cost(["yes", "no"], ["no", "yes"])
    with pytest.raises(InvalidParameter, match="costs must be finite"):
        optimal_threshold(math.nan, 1.0)
