"""The Kalman filter against the joint normal distribution, the plain recursion and long series."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch.testing import assert_close

from castalia import KalmanFilter
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.sequence.affine_scan import affine_scan, plain_affine
from castalia.models.sequence.kalman_covariances import FilterTable, SmootherTable, square_root
from castalia.models.sequence.kalman_recursion import LinearGaussian, plain_filter, plain_smooth

NAMES = LinearGaussian._fields


def system(n=3, m=2, u=0, seed=0):
    random = np.random.default_rng(seed)
    f = random.normal(size=(n, n))
    roots = [random.normal(size=(k, k)) for k in (n, m, n)]
    q, r, p = (a @ a.T + 0.1 * np.eye(len(a)) for a in roots)
    return LinearGaussian(
        0.95 * f / np.abs(np.linalg.eigvals(f)).max(),
        random.normal(size=(m, n)),
        q,
        r,
        random.normal(size=n),
        p,
        random.normal(size=(n, u)),
        random.normal(size=(m, u)),
    )


def estimator(given, **settings):
    fields = {k: v for k, v in given._asdict().items() if v.size}
    return KalmanFilter(**fields, **settings)


def joint(given, t, u):
    """Return mean and covariance of all states and measurements at once, by linear algebra."""
    n, m = given.observation.shape[1], given.observation.shape[0]
    # x = powers @ noises: x_t = sum_{s<=t} F^{t-s} w_s
    powers = np.zeros((t * n, t * n))
    for i in range(t):
        for j in range(i + 1):
            block = np.linalg.matrix_power(given.transition, i - j)
            powers[i * n : i * n + n, j * n : j * n + n] = block
    drives = np.concatenate(
        [given.mean + given.control @ u[0], *(given.control @ v for v in u[1:])]
    )
    noises = np.zeros((t * n, t * n))
    for i in range(t):
        at = slice(i * n, i * n + n)
        noises[at, at] = given.process_noise if i else given.covariance
    mean, cov = powers @ drives, powers @ noises @ powers.T
    h = np.kron(np.eye(t), given.observation)
    y_mean = h @ mean + (u @ given.feedthrough.T).ravel()
    return mean, cov, h, y_mean, h @ cov @ h.T + np.kron(np.eye(t), given.measurement_noise), (n, m)


@pytest.mark.parametrize("u", [0, 2])
def test_filter_and_smoother_are_the_posterior_of_the_joint_normal_distribution(u):
    given, t, random = system(u=u), 6, np.random.default_rng(1)
    y, inputs = random.normal(size=(t, 2)), random.normal(size=(t, u))
    y[2], y[4, 0] = np.nan, np.nan
    mean, cov, h, y_mean, y_cov, (n, m) = joint(given, t, inputs)
    model = estimator(given).fit(y, inputs=inputs if u else None)
    asked = {"inputs": inputs if u else None}
    seen = ~np.isnan(y.ravel())
    likelihood = multivariate_normal(y_mean[seen], y_cov[np.ix_(seen, seen)]).logpdf(
        y.ravel()[seen]
    )
    assert model.score_samples(y, **asked)[0] == pytest.approx(likelihood, rel=1e-10)
    for last in (t, 3):  # the whole series, and a filter's part of it
        use = np.flatnonzero(seen[: last * m])
        gain = np.linalg.solve(y_cov[np.ix_(use, use)], (cov @ h.T)[:, use].T).T
        wanted = mean + gain @ (y.ravel()[use] - y_mean[use])
        spread = cov - gain @ (cov @ h.T)[:, use].T
        at = slice((last - 1) * n, last * n)
        means, covs = model.filter(y, **asked)
        np.testing.assert_allclose(means[last - 1], wanted[at], atol=1e-10)
        np.testing.assert_allclose(covs[last - 1], spread[at, at], atol=1e-10)
    means, covs = model.smooth(y, **asked)
    np.testing.assert_allclose(means.ravel(), wanted if last == t else means.ravel(), atol=1e-10)
    whole = np.flatnonzero(seen)
    gain = np.linalg.solve(y_cov[np.ix_(whole, whole)], (cov @ h.T)[:, whole].T).T
    smoothed = mean + gain @ (y.ravel()[whole] - y_mean[whole])
    spread = cov - gain @ (cov @ h.T)[:, whole].T
    np.testing.assert_allclose(means.ravel(), smoothed, atol=1e-10)
    for i in range(t):
        at = slice(i * n, i * n + n)
        np.testing.assert_allclose(covs[i], spread[at, at], atol=1e-10)


@pytest.mark.parametrize("gaps", ["none", "rows", "channels"])
def test_shared_covariances_and_the_scan_give_the_plain_recursion(gaps):
    given, random = system(), np.random.default_rng(2)
    y = random.normal(size=(900, 2))
    if gaps == "rows":
        y[random.random(900) < 0.05] = np.nan
    elif gaps == "channels":
        y[random.random((900, 2)) < 0.05] = np.nan
    model = estimator(given).fit(y)
    for found, plain in ((model.filter, plain_filter), (model.smooth, plain_smooth)):
        means, covs = found(y)
        wanted_means, wanted_covs = plain(given, y)[:2]
        np.testing.assert_allclose(means, wanted_means, atol=1e-9)
        np.testing.assert_allclose(covs, wanted_covs, atol=1e-9)
    assert model.score_samples(y)[0] == pytest.approx(plain_filter(given, y)[2], rel=1e-11)


def test_a_series_alone_answers_as_in_a_batch_of_other_lengths():
    given, random = system(), np.random.default_rng(3)
    parts = [random.normal(size=(t, 2)) for t in (5, 40, 33, 1)]
    model = estimator(given).fit(parts)
    means, covs = model.smooth(parts)
    for part, mean, cov in zip(parts, means, covs, strict=True):
        alone = model.smooth(part)
        np.testing.assert_allclose(mean, alone[0], atol=1e-12)
        np.testing.assert_allclose(cov, alone[1], atol=1e-12)
    each = [model.score_samples(part)[0] for part in parts]
    np.testing.assert_allclose(model.score_samples(parts), each, rtol=1e-12)


@pytest.mark.parametrize("steps", [1, 40, 700])
def test_the_affine_scan_is_the_affine_recursion(steps):
    random = torch.Generator().manual_seed(0)
    table = 0.5 * torch.randn(3, 4, 4, generator=random).double()
    which = (torch.rand(2, steps, generator=random) < 0.1).long() * 2
    offsets, first = (torch.randn(2, *s, 4, generator=random).double() for s in ((steps,), ()))
    wanted = plain_affine(table, which, offsets, first)
    assert_close(affine_scan(table, which, offsets, first), wanted, rtol=1e-10, atol=1e-10)


def test_few_covariances_serve_many_steps():
    table = FilterTable(system())
    mask = np.ones((5000, 2), dtype=bool)
    mask[1000] = mask[3000] = False
    steps = table.walk(mask)
    assert len(table.roots) < 400
    assert steps[999] == steps[2999] == steps[4999]
    smoother = SmootherTable(table)
    smoother.walk(steps)
    assert len(smoother.covariances) < 800


def test_square_roots_stay_positive_over_a_hundred_thousand_steps_where_the_plain_form_fails():
    step = 1e-3  # position and velocity, the position measured nearly without noise
    given = LinearGaussian(
        np.array([[1.0, step], [0.0, 1.0]]), np.array([[1.0, 0.0]]), np.diag([0.0, 1e-9]),
        np.array([[1e-16]]), np.zeros(2), 1e6 * np.eye(2), np.zeros((2, 0)), np.zeros((1, 0)),
    )  # fmt: skip
    table = FilterTable(given)
    table.walk(np.ones((100_000, 1), dtype=bool))
    assert min(np.linalg.svd(root, compute_uv=False)[-1] for root in table.roots) > 0
    covs = plain_filter(given, np.zeros((50, 1)))[1]
    assert np.linalg.eigvalsh(covs).min() <= 0  # what the square root is for
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    np.testing.assert_allclose(square_root(singular) @ square_root(singular).T, singular)


def test_smoothing_beats_filtering_beats_the_measurement():
    random = np.random.default_rng(0)
    given = LinearGaussian(
        np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]]), 0.01 * np.eye(2),
        np.array([[4.0]]), np.zeros(2), np.eye(2), np.zeros((2, 0)), np.zeros((1, 0)),
    )  # fmt: skip
    model = estimator(given, random_state=0).fit(random.normal(size=5))
    y, x = model.sample(800)
    errors = [
        np.square(guess - x[:, 0]).mean()
        for guess in (model.smooth(y)[0][:, 0], model.filter(y)[0][:, 0], y[:, 0])
    ]
    assert errors[0] < 0.8 * errors[1] < 0.5 * errors[2]
    whitened = (model.filter(y)[0] - x) @ np.linalg.inv(
        np.linalg.cholesky(model.filter(y)[1][-1])
    ).T
    assert whitened[50:].std() == pytest.approx(1, abs=0.15)


@pytest.mark.filterwarnings("ignore::castalia.errors.TrainingWarning")
@pytest.mark.parametrize("gaps", [False, True])
def test_every_step_of_em_raises_the_likelihood_up_to_that_of_the_truth(gaps):
    true = KalmanFilter(
        transition=[[0.9, 0.3], [-0.3, 0.9]], observation=[[1.0, 0.0], [0.5, 0.5]],
        process_noise=0.1 * np.eye(2), measurement_noise=0.2 * np.eye(2), mean=[0, 0],
        covariance=np.eye(2), random_state=0,
    ).fit(np.zeros((3, 2)))  # fmt: skip
    y, _ = true.sample(50, 5)
    if gaps:
        y[np.random.default_rng(0).random(y.shape) < 0.1] = np.nan
    model = KalmanFilter(state=2, steps=30, tol=0).fit(y)
    assert np.diff(model.log_likelihoods_).min() > -1e-10
    assert model.log_likelihoods_[-1] > true.score(y) - 0.01
    turns = np.sort(np.abs(np.angle(np.linalg.eigvals(model.transition_))))
    assert turns == pytest.approx(np.abs(np.angle(0.9 + 0.3j)), abs=0.05)


def test_given_matrices_stay_and_inputs_are_learnt():
    random = np.random.default_rng(0)
    u = random.normal(size=(400, 1))
    x = np.zeros(401)
    for t in range(400):
        x[t + 1] = 0.8 * x[t] + 2 * u[t, 0] + 0.05 * random.normal()
    y = x[1:, None] + 0.1 * random.normal(size=(400, 1))
    model = KalmanFilter(
        transition=[[0.8]], observation=[[1.0]], feedthrough=[[0.0]], tol=1e-5
    ).fit(y, inputs=u)
    assert model.transition_.tolist() == [[0.8]]
    assert model.control_[0, 0] == pytest.approx(2, abs=0.05)
    assert model.process_noise_[0, 0] ** 0.5 == pytest.approx(0.05, abs=0.03)
    assert model.measurement_noise_[0, 0] ** 0.5 == pytest.approx(0.1, abs=0.03)
    with pytest.raises(InvalidData, match="`inputs` must be given"):
        model.filter(y)
    ahead, spread = model.forecast(y[:300], 2, inputs=u[:300], future=u[300:302])
    assert np.abs(ahead - y[300:302]).max() < 1
    assert 0 < spread[0, 0, 0] < spread[1, 0, 0]


def test_the_forecast_is_what_a_gap_would_be_filled_with():
    given = system()
    y = np.random.default_rng(0).normal(size=(50, 2))
    model = estimator(given).fit(y)
    means, covs = model.forecast(y, 3)
    longer = np.vstack([y, np.full((3, 2), np.nan)])
    states, spreads = model.filter(longer)
    np.testing.assert_allclose(means, states[-3:] @ given.observation.T)
    wanted = given.observation @ spreads[-3:] @ given.observation.T + given.measurement_noise
    np.testing.assert_allclose(covs, wanted)


@pytest.mark.parametrize(
    "settings, X, said",
    [
        (
            {"transition": np.eye(3), "observation": np.eye(2)},
            np.zeros((4, 2)),
            r"`observation` must have shape \(2, 3\)",
        ),
        ({"process_noise": [[-1.0]]}, np.zeros(4), "`process_noise` must be symmetric"),
        ({"covariance": "wide"}, np.zeros(4), "`covariance` must be an array of finite numbers"),
        ({}, np.full((4, 1), np.nan), "every channel must be measured .*; channel 0 never is"),
        ({"control": [[1.0]]}, np.zeros(4), "`inputs` must be given"),
        (
            {
                "transition": [[1.0]],
                "observation": [[1.0]],
                **dict.fromkeys(("process_noise", "measurement_noise", "covariance"), [[0.0]]),
                "mean": [0.0],
            },
            np.zeros(4),
            "`measurement_noise` must leave every measurement some doubt",
        ),
    ],
)
def test_what_cannot_be_is_refused(settings, X, said):
    with pytest.raises((InvalidData, InvalidParameter), match=f"KalmanFilter: {said}"):
        KalmanFilter(**settings).fit(X)


def test_too_few_steps_of_em_are_reported_and_inputs_must_fit():
    y = system(), np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(TrainingWarning, match="after 2 steps of EM"):
        KalmanFilter(state=2, steps=2, tol=0).fit(y[1])
    with pytest.raises(InvalidData, match="as many steps as X"):
        KalmanFilter().fit(y[1], inputs=np.zeros((29, 1)))
