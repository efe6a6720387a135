"""Forecasters: what they forecast from what, with intervals that hold."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge

from castalia import RNNForecaster, TemporalConvNet, WindowRegressor
from castalia.base import load, save
from castalia.data import windows
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.sequence.forecaster import OUTPUTS
from castalia.models.sequence.window_ridge import PENALTIES
from castalia.train.runs import RunStore


def waves(steps=300, seed=0, noise=0.1):
    random = np.random.default_rng(seed)
    t = np.arange(steps)
    return np.column_stack([np.sin(t / 3), np.cos(t / 5)]) + noise * random.normal(size=(steps, 2))


QUICK = {"horizon": 3, "context": 12, "random_state": 0}


def test_a_linear_window_finds_the_least_squares_autoregression():
    series = waves(noise=0.3)[:, 0]
    model = WindowRegressor(**QUICK, level="none", epochs=300, lr=2e-2, batch_size=300)
    model.set_params(training__validation=0, training__patience=None).fit(series)
    past, future, _ = windows(series, 12, 3)
    wanted = LinearRegression().fit(past, future).predict(past)
    assert np.abs(model.predict_windows(series)[..., 0] - wanted).max() < 0.05


WHOLE = {"training__validation": 0, "training__patience": None, "training__precision": "float64"}


def pairs(series, shared):
    """Windows of standardised series: past, future and the last step, a row a channel or a step."""
    z = (series - series.mean(axis=0)) / series.std(axis=0)
    past, future, _ = windows(z, 12, 3)
    if shared:
        past, future = (
            np.moveaxis(part, 2, 1).reshape(-1, part.shape[1]) for part in (past, future)
        )
        return past, future, past[:, -1:]
    return past.reshape(len(past), -1), future.reshape(len(past), -1), None


@pytest.mark.parametrize("shared", [True, False])
def test_ridge_is_scikit_learns_of_the_windows(shared):
    series = waves(noise=0.3)
    model = WindowRegressor(**QUICK, level="none", shared=shared, solver="ridge", alpha=3.0)
    model.set_params(**WHOLE).fit(series)
    past, future, _ = pairs(series, shared)
    wanted = Ridge(alpha=3.0).fit(past, future)
    layer = model.module_.body.dense.layers[0]
    assert np.allclose(layer.weight.detach(), wanted.coef_, atol=1e-8)
    assert np.allclose(layer.bias.detach(), wanted.intercept_, atol=1e-8)


def test_ridge_counts_errors_in_units_of_the_series_and_not_of_the_window():
    series = waves(noise=0.3) * np.linspace(0.1, 3, 300)[:, None]
    model = WindowRegressor(**QUICK, level="window", shared=False, solver="ridge", alpha=0.0)
    model.set_params(**WHOLE).fit(series)
    least = model.history_[0]["loss"]
    layer = model.module_.body.dense.layers[0]
    wanted = windows(series, 12, 3).future
    for _ in range(3):
        with torch.no_grad():
            layer.weight.add_(1e-3 * torch.randn_like(layer.weight))
        missed = (model.predict_windows(series) - wanted) / series.std(axis=0)
        assert np.square(missed).mean() > least


def test_the_penalty_of_ridge_is_the_best_on_the_validation_windows():
    series = waves(noise=0.5, steps=120)
    model = WindowRegressor(**QUICK, solver="ridge").fit(series)
    losses = {
        alpha: WindowRegressor(**QUICK, solver="ridge", alpha=alpha).fit(series).history_[0]
        for alpha in PENALTIES
    }
    assert model.history_[0]["alpha"] == min(losses, key=lambda alpha: losses[alpha]["val_loss"])
    low, high = model.predict_interval(series, 0.8)
    assert (low < high).all()


@pytest.mark.parametrize("wrong", [{"hidden": (4,)}, {"output": "quantile"}])
def test_ridge_refuses_what_is_no_linear_map(wrong):
    with pytest.raises(InvalidParameter, match="for the solver 'ridge'"):
        WindowRegressor(**QUICK, solver="ridge", **wrong).fit(waves())
    with pytest.raises(InvalidParameter, match="must be 'sgd' to go on"):
        WindowRegressor(**QUICK, solver="ridge").partial_fit(waves())


def test_ridge_is_recorded_and_saved_like_a_training(tmp_path):
    model = WindowRegressor(**QUICK, solver="ridge").set_params(training__run=str(tmp_path / "run"))
    model.fit(waves())
    save(model, tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict(waves()), model.predict(waves()))
    assert RunStore(tmp_path).runs("run")[0]["status"] == "finished"
    assert model.fit(waves()).run_ == str(tmp_path / "run")


@pytest.mark.parametrize("output", OUTPUTS)
def test_intervals_of_every_output_hold_as_often_as_they_say(output):
    random = np.random.default_rng(0)
    series = random.poisson(5 + 4 * np.sin(np.arange(1000) / 3)).astype(float)
    model = WindowRegressor(**QUICK, output=output, epochs=30, lr=3e-2, batch_size=256)
    low, high = model.fit(series[:600]).interval_windows(series[600:], 0.8)
    wanted = windows(series[600:], 12, 3).future[..., None]
    assert 0.7 < np.mean((low <= wanted) & (wanted <= high)) < 0.92
    assert (low <= model.predict_windows(series[600:]) + 1e-6).all()


def test_a_forecast_follows_the_end_of_the_series():
    series = waves()
    model = WindowRegressor(**QUICK, epochs=30, lr=5e-3).fit(series[:250])
    ahead = model.predict(series[:250])
    assert ahead.shape == (3, 2)
    assert np.allclose(ahead, model.predict_windows(series)[250 - 12])
    several = model.predict([series[:250], series[:200]])
    assert np.allclose(several[0], ahead)
    assert several.shape == (2, 3, 2)


def test_only_the_target_is_forecast_and_the_other_channels_are_read():
    random = np.random.default_rng(0)
    cause = random.normal(size=400)
    series = np.column_stack([np.roll(cause, 1), cause])  # the second tells the first's next step
    both = WindowRegressor(
        horizon=1, context=4, target=0, shared=False, epochs=60, lr=0.01, random_state=0
    ).fit(series[1:])
    assert both.predict(series).shape == (1, 1)
    assert both.score(series[1:]) > 0.9


def test_missing_steps_are_carried_forward_by_choice():
    series = waves()
    holed = series.copy()
    holed[::7] = np.nan
    with pytest.raises(InvalidData, match="missing='forward'"):
        WindowRegressor(**QUICK, epochs=1).fit(holed)
    model = WindowRegressor(**QUICK, missing="forward", epochs=20, lr=5e-3).fit(holed)
    assert np.isfinite(model.predict(holed)).all()
    assert model.score(series) > 0.4


def test_a_series_far_out_of_range_is_forecast_from_its_own_level():
    series = waves()
    model = TemporalConvNet(**QUICK, hidden=8, depth=2, epochs=3).fit(series)
    assert np.allclose(model.predict(series + 1e4) - 1e4, model.predict(series), atol=0.05)


def test_a_constant_channel_is_no_obstacle():
    series = np.column_stack([waves()[:, 0], np.full(300, 7.0)])
    model = WindowRegressor(**QUICK, level="window", epochs=5).fit(series)
    assert np.allclose(model.predict(series)[:, 1], 7.0, atol=0.1)


def test_a_horizon_longer_than_the_series_is_refused():
    with pytest.raises(InvalidData, match="212 steps at least, 12 of the past and 200 to forecast"):
        WindowRegressor(context=12, horizon=200).fit(waves()[:100])
    model = WindowRegressor(**QUICK, epochs=1).fit(waves())
    with pytest.raises(InvalidData, match="12 steps at least.*series 0 has 5"):
        model.predict(waves()[:5])


def test_counts_below_zero_are_refused():
    with pytest.raises(InvalidData, match="counts of at least 0"):
        RNNForecaster(**QUICK, output="poisson").fit(waves())


def test_a_coverage_out_of_range_is_refused():
    model = WindowRegressor(**QUICK, epochs=1).fit(waves())
    with pytest.raises(InvalidParameter, match="`coverage` must be above 0"):
        model.predict_interval(waves(), 1.5)
