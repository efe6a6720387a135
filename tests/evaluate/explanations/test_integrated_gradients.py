import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from castalia import MLPClassifier, MLPRegressor, TabularClassifier, Training
from castalia.data import read
from castalia.errors import InvalidParameter
from castalia.evaluate import integrated_gradients, shapley_values
from castalia.evaluate.explanations.integrated_gradients import path_integral

PLAIN = Training(validation=0, verbose=False)
MODELS = {
    "embedded": MLPClassifier(
        hidden=(16,), activation="gelu", epochs=30, lr=1e-2, random_state=0, training=PLAIN
    ),
    "one-hot": TabularClassifier(
        hidden=(16,), activation="gelu", members=2, epochs=15, random_state=0, training=PLAIN
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def mixed(request):
    """A table of numbers with gaps and two categories, and a classifier trained on it."""
    random = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "colour": random.choice(["red", "blue", "sand"], n),
            "size in cm": random.normal(10, 3, n),
            "site": random.choice(["a", "b"], n),
            "age": random.normal(size=n),
        }
    )
    frame.loc[::7, "age"] = np.nan
    y = (frame["colour"] == "red") ^ (frame["size in cm"] > 10)
    data = read(frame)
    return data, MODELS[request.param].fit(data, np.where(y, "yes", "no"))


def test_values_add_up_to_the_output_minus_that_of_the_baseline(mixed):
    data, model = mixed
    found = integrated_gradients(model, data.take(np.arange(6)), data.take([20]), tolerance=1e-4)
    said = model.predict_proba(data.take(np.arange(6)))
    base = model.predict_proba(data.take([20]))[0]
    place = said.argmax(axis=1)
    wanted = said[np.arange(6), place] - base[place]
    np.testing.assert_allclose(found.values.sum(axis=1), wanted, atol=2e-4)
    assert found.columns == ["colour", "size in cm", "site", "age"]
    assert found.names == model.predict(data.take(np.arange(6))).tolist()


def test_many_background_rows_are_averaged(mixed):
    data, model = mixed
    rows = [30, 31, 35]
    one = [integrated_gradients(model, data.take([0]), data.take([i])).values for i in rows]
    all_of_them = integrated_gradients(model, data.take([0]), data.take(rows)).values
    np.testing.assert_allclose(all_of_them, np.mean(one, axis=0), atol=2e-4)


def test_a_column_equal_to_the_baseline_gets_nothing(mixed):
    data, model = mixed
    frame = pd.DataFrame({name: data.column(name)[:2] for name in data.columns})
    frame.loc[1, ["colour", "age"]] = frame.loc[0, ["colour", "age"]].to_numpy()
    both = read(frame)
    found = integrated_gradients(model, both.take([0]), both.take([1]))
    assert found.values[0, 0] == 0
    assert found.values[0, 3] == 0


def test_on_an_additive_network_both_methods_agree():
    X = np.random.default_rng(0).normal(size=(50, 3))
    linear = MLPRegressor(hidden=(), epochs=40, lr=5e-2, random_state=0).fit(X, X @ [1, -2, 0])
    by_path = integrated_gradients(linear, X[:3], X).values
    np.testing.assert_allclose(by_path, shapley_values(linear, X[:3], X).values, atol=1e-4)


def test_kinks_are_met_by_more_steps():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = MLPRegressor(hidden=(32, 32), epochs=20, lr=1e-2, random_state=0).fit(X, X[:, 0] ** 2)
    found = integrated_gradients(model, X[:4], X[10:11], steps=4, tolerance=1e-4)
    wanted = model.predict(X[:4]) - model.predict(X[10:11])
    np.testing.assert_allclose(found.values.sum(axis=1), wanted, atol=2e-3)


def test_the_network_and_the_gradients_of_the_user_are_left_alone(mixed):
    data, model = mixed
    before = {name: value.clone() for name, value in model.module_.state_dict().items()}
    for p in model.module_.parameters():
        p.grad = None
    integrated_gradients(model, data.take([0]), data.take([1]))
    assert all(torch.equal(before[n], v) for n, v in model.module_.state_dict().items())
    assert all(p.grad is None for p in model.module_.parameters())
    assert all(p.dtype == torch.float32 for p in model.module_.parameters())


def test_the_path_integral_holds_for_any_differentiable_function_of_several_parts():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(7, 9), nn.Tanh(), nn.Linear(9, 1)).double()

    def function(parts):
        return net(torch.cat([parts[0], parts[1].flatten(1)], dim=1))[:, 0]

    begin = [torch.zeros(5, 3).double(), torch.zeros(5, 2, 2).double()]
    end = [torch.randn(5, 3).double(), torch.randn(5, 2, 2).double()]
    parts = path_integral(function, begin, end, 20)
    total = sum(part.flatten(1).sum(dim=1) for part in parts)
    torch.testing.assert_close(total, (function(end) - function(begin)).detach())


def test_other_models_are_sent_to_shapley_values():
    X = np.zeros((3, 2))
    with pytest.raises(InvalidParameter, match="got LinearRegression. Use shapley_values"):
        integrated_gradients(LinearRegression().fit(X, X[:, 0]), X, X)


def test_steps_come_in_fours(mixed):
    data, model = mixed
    with pytest.raises(InvalidParameter, match="`steps` must be a multiple of 4; got 6"):
        integrated_gradients(model, data.take([0]), data.take([1]), steps=6)
