"""Hidden states as hmmlearn, filterpy and reservoirpy find them."""

import numpy as np
import pytest
import torch
from filterpy.kalman import KalmanFilter as TheirFilter
from hmmlearn.hmm import GaussianHMM
from reservoirpy.nodes import Reservoir as TheirReservoir
from tests.models.sequence.test_kalman_estimator import estimator, system

from castalia import HiddenMarkovModel
from castalia.errors import TrainingWarning
from castalia.models.sequence import random_reservoir

START = np.full(3, 1 / 3)
MOVE = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])
MEANS = np.array([[-2.0, 0.0], [0.0, 2.0], [2.0, -1.0]])


@pytest.fixture(scope="module")
def seen():
    random = np.random.default_rng(0)
    states = [0]
    for _ in range(239):
        states.append(random.choice(3, p=MOVE[states[-1]]))
    return MEANS[states] + random.normal(size=(240, 2))


def test_baum_welch_and_paths_are_those_of_hmmlearn(seen):
    model = HiddenMarkovModel(states=3, steps=5, tol=0, reg_covar=0, warm_start=True)
    model.given(start=START, transition=MOVE, means=MEANS, covariances=np.ones((3, 2)))
    with pytest.warns(TrainingWarning, match="after 5 steps"):
        model.fit(seen.reshape(3, 80, 2))
    theirs = GaussianHMM(
        3, n_iter=5, tol=-np.inf, init_params="", covars_prior=0, means_prior=0, min_covar=0
    )
    theirs.startprob_, theirs.transmat_ = START, MOVE
    theirs.means_, theirs.covars_ = MEANS, np.ones((3, 2))
    theirs.fit(seen, [80] * 3)
    np.testing.assert_allclose(model.transition_, theirs.transmat_, atol=1e-8)
    np.testing.assert_allclose(model.means_, theirs.means_, atol=1e-8)
    assert model.score_samples(seen)[0] == pytest.approx(theirs.score(seen), abs=1e-6)
    np.testing.assert_array_equal(model.predict(seen), theirs.predict(seen))
    np.testing.assert_allclose(model.predict_proba(seen), theirs.predict_proba(seen), atol=1e-8)


def test_filter_and_smoother_are_those_of_filterpy():
    given = system(n=3, m=2)
    y = np.random.default_rng(1).normal(size=(60, 2))
    theirs = TheirFilter(dim_x=3, dim_z=2)
    theirs.F, theirs.H = given.transition, given.observation
    theirs.Q, theirs.R = given.process_noise, given.measurement_noise
    theirs.x, theirs.P = given.mean, given.covariance
    means, covariances, _, _ = theirs.batch_filter(y, update_first=True)
    smoothed, spreads, _, _ = theirs.rts_smoother(means, covariances)
    model = estimator(given).fit(y)
    for found, true in zip(model.filter(y), (means, covariances), strict=True):
        np.testing.assert_allclose(found, true, atol=1e-9)
    for found, true in zip(model.smooth(y), (smoothed, spreads), strict=True):
        np.testing.assert_allclose(found, true, atol=1e-9)


@pytest.mark.parametrize("leak", [1.0, 0.3])
def test_a_reservoir_runs_as_reservoirpy_s_does(leak):
    ours = random_reservoir(40, 2, radius=0.8, bias=0.2, leak=leak, seed=0)
    x = np.random.default_rng(2).normal(size=(50, 2))
    theirs = TheirReservoir(
        W=ours.weights.toarray(), Win=ours.inputs, bias=ours.bias, lr=leak, dtype=np.float64
    )
    found = ours.run(torch.from_numpy(x)[None])[0].numpy()
    np.testing.assert_allclose(found, theirs.run(x), atol=1e-10)
