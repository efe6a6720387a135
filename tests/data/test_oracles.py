"""Sources of examples whose best possible error is known."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from castalia.data.oracles import FunctionOracle, NormalOracle, parity_table
from castalia.errors import InvalidParameter


def test_parity_is_its_truth_table():
    X, y = parity_table(3)
    assert X.tolist()[:3] == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert y.tolist() == [0, 1, 1, 0, 1, 0, 0, 1]
    with pytest.raises(InvalidParameter, match="`bits` must be at least 1; got 0"):
        parity_table(0)


@pytest.mark.parametrize("priors", [None, [0.8, 0.2]])
def test_no_rule_errs_less_than_the_bayes_error_and_the_posterior_errs_so(priors):
    oracle = NormalOracle(np.array([[0.0, 0.0], [1.5, 1.0]]), 1.2, priors)
    X, y = oracle.draw(40_000)
    best, sigma = oracle.bayes_error(), 0.5 / 200
    assert np.mean(oracle.posterior(X).argmax(axis=1) != y) == pytest.approx(best, abs=4 * sigma)
    learnt = LinearDiscriminantAnalysis().fit(X[:500], y[:500])
    assert np.mean(learnt.predict(X) != y) > best - 4 * sigma
    assert NormalOracle(np.zeros((2, 1)), 1.0, priors).bayes_error() == min(oracle.shares)


def test_posteriors_are_calibrated_and_several_classes_are_averaged():
    oracle = NormalOracle(np.array([[0.0], [1.0], [3.0]]))
    X, y = oracle.draw(30_000)
    p = oracle.posterior(X)
    np.testing.assert_allclose(p.mean(axis=0), oracle.shares, atol=0.01)
    errs = np.mean(p.argmax(axis=1) != y)
    assert errs == pytest.approx(oracle.bayes_error(50_000), abs=0.01)


def test_a_function_errs_as_often_as_its_answers_are_flipped():
    oracle = FunctionOracle(lambda X: (X[:, 0] * X[:, 1] > 0).astype(int), features=2, flips=0.2)
    X, y = oracle.draw(20_000, seed=3)
    wrong = np.mean(oracle.function(X) != y)
    assert wrong == pytest.approx(oracle.bayes_error(), abs=0.012)
    assert FunctionOracle(oracle.function, 2).draw(50)[1].tolist() == (
        oracle.function(FunctionOracle(oracle.function, 2).draw(50)[0]).tolist()
    )
    with pytest.raises(InvalidParameter, match="`flips` must be from 0 to 1/2; got 0.7"):
        FunctionOracle(oracle.function, 2, flips=0.7)
