"""Orders within queries: the loss, its weights, and planted scores."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import ndcg_score
from torch import nn
from torch.testing import assert_close

from castalia import MLPRegressor, Ranking, Training
from castalia.errors import InvalidData
from castalia.models.strategies.rank_learner import PairwiseRank, ndcg, pair_accuracy, swap_gains
from castalia.protocols import Batch

NET = MLPRegressor(hidden=(16,), epochs=40, lr=0.02, training=Training(validation=0))


def planted(n, seed):
    random = np.random.default_rng(seed)
    X, query = random.normal(size=(n, 4)), np.arange(n) // 8
    hidden = np.tanh(X[:, 0]) + X[:, 1]
    relevance = np.digitize(hidden, [-1, 0, 1]) + 4 * (query % 3)  # queries are not comparable,
    X[:, 3] += query % 3  # and this column only says which it is
    return X, relevance, query


@pytest.mark.parametrize("loss", ["ranknet", "lambdarank"])
def test_planted_scores_are_put_in_order(loss):
    X, y, query = planted(240, 0)
    model = Ranking(NET, loss=loss, random_state=0).fit(X, y, groups=query)
    unseen, truth, others = planted(240, 1)
    assert model.score(unseen, truth, groups=others) > 0.95
    assert model.ndcg(unseen, truth % 4, groups=others) > 0.95


def test_only_pairs_of_one_query_count():
    s = torch.tensor([[1.0], [3.0], [2.0]])
    y, query = torch.tensor([[2.0], [1.0], [0.0]]), torch.tensor([0, 0, 1])
    terms = PairwiseRank().terms(nn.Identity(), Batch(s, (y, query)), "train")
    assert_close(terms["loss"], torch.log1p(torch.exp(torch.tensor(2.0))))


def test_a_pair_weighs_what_swapping_it_does_to_the_ndcg():
    y, s = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([0.3, 0.9, 0.5])
    gains = swap_gains(s, y, torch.zeros(3))
    before = ndcg(y.numpy(), s.numpy())
    for i, j in ((0, 1), (0, 2), (1, 2)):
        swapped = s.clone()
        swapped[i], swapped[j] = s[j], s[i]
        change = abs(ndcg(y.numpy(), swapped.numpy()) - before)
        assert float(gains[i, j]) == pytest.approx(change, rel=1e-5)


def test_the_measures_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    y, s = random.integers(0, 4, 12), random.normal(size=12)
    assert ndcg(y, s) == pytest.approx(ndcg_score([2.0**y - 1], [s]))
    with pytest.raises(InvalidData, match="`y` must differ within a query"):
        pair_accuracy(np.ones(3), np.arange(3.0))


def test_relevances_that_are_equal_in_every_query_are_refused():
    X, _, query = planted(24, 0)
    with pytest.raises(
        InvalidData, match="must differ within a query; got one relevance in each of 3"
    ):
        Ranking(NET).fit(X, query % 2, groups=query)


def test_rows_of_no_weight_are_as_good_as_absent():
    X, y, query = planted(48, 0)
    kept = np.arange(48) % 5 > 0
    net = clone(NET).set_params(epochs=2)
    some = Ranking(net, random_state=0).fit(X, y, groups=query, sample_weight=kept.astype(float))
    alone = Ranking(net, random_state=0).fit(X[kept], y[kept], groups=query[kept])
    np.testing.assert_allclose(some.predict(X), alone.predict(X))
