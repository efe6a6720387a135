"""Scores of a search by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import mean_reciprocal_rank, ndcg, recall_at

TRUE = np.array([[1, 0, 0, 1], [0, 0, 1, 0]])
SCORE = np.array([[0.1, 0.9, 0.3, 0.8], [0.2, 0.9, 0.5, 0.1]])  # ranks 4 and 2; 2


def test_three_scores_by_hand():
    assert recall_at(TRUE, SCORE, k=1) == 0
    assert recall_at(TRUE, SCORE, k=2) == (1 / 2 + 1) / 2
    assert recall_at(TRUE, SCORE, k=4) == 1
    assert mean_reciprocal_rank(TRUE, SCORE) == 1 / 2
    first = (1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3))
    assert ndcg(TRUE, SCORE) == pytest.approx((first + 1 / np.log2(3)) / 2)


@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_the_discounted_gain_is_that_of_scikit_learn(k):
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, size=(20, 12))
    true[:, 0] = 1
    score = rng.permuted(np.tile(np.linspace(0, 1, 12), (20, 1)), axis=1)  # no two are equal
    assert ndcg(true, score, k=k) == pytest.approx(ndcg_score(true, score, k=k))


def test_one_right_document_may_be_given_by_its_number():
    table = np.eye(4)[[1, 3]]
    for measure in (recall_at, mean_reciprocal_rank, ndcg):
        assert measure([1, 3], SCORE) == measure(table, SCORE)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(InvalidData, match="relevant document.*query 1 does not"):
        ndcg([[1, 0], [0, 0]], [[1, 2], [1, 2]])
    with pytest.raises(ShapeMismatch, match=r"got \(2, 4\) and \(3,\)"):
        recall_at([0, 1, 2], SCORE)
    with pytest.raises(InvalidParameter, match="`k` must be"):
        recall_at(TRUE, SCORE, k=0)
