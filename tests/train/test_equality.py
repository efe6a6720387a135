"""A step is the big-batch step, however it is taken."""

import copy
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from castalia import MLPClassifier, MLPRegressor, Training
from castalia.data import read
from castalia.errors import InvalidParameter
from castalia.objectives import L2, Objective, SquaredError
from castalia.objectives.objective import weighted_mean
from castalia.testing import train_tensors
from castalia.testing.toys import moons

RANDOM = torch.Generator().manual_seed(0)
X = torch.randn(53, 3, generator=RANDOM, dtype=torch.float64)  # an uneven last batch
Y = X[:, :1] * X[:, 1:2] + 0.1 * torch.randn(53, 1, generator=RANDOM, dtype=torch.float64)
WEIGHT = torch.rand(53, generator=RANDOM, dtype=torch.float64) + 0.1
QUIET = {"validation": 0}


def network(dropout=0.0):
    torch.manual_seed(1)
    layers = nn.Linear(3, 6), nn.Tanh(), nn.Dropout(dropout), nn.Linear(6, 1)
    return nn.Sequential(*layers).double()


def weights(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def trained(objective=None, *, weight=None, epochs=3, **settings):
    net = network()
    training = Training(**QUIET, **settings)
    objective = objective if objective is not None else SquaredError() + L2(0.01)
    state = train_tensors(
        net, objective, X, Y, weight=weight, training=training, epochs=epochs, lr=0.05
    )
    return weights(net), state


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("accumulate", [2, 3, 16, 50])
def test_accumulated_micro_batches_equal_the_big_batch(accumulate, weight):
    whole, plain = trained(weight=weight)
    pieces, parts = trained(weight=weight, accumulate=accumulate)
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-10)
    for one, other in zip(plain.history, parts.history, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-10)
        assert one["l2"] == pytest.approx(other["l2"], abs=1e-10)


def test_one_step_is_the_step_taken_by_hand():
    net, lr = network(), 0.05
    by_hand = copy.deepcopy(net)
    loss = weighted_mean((by_hand(X) - Y).square().mean(dim=1), WEIGHT)
    loss.backward()
    with torch.no_grad():
        for p in by_hand.parameters():
            p -= lr * p.grad
    training = Training(**QUIET, optimizer="sgd")
    train_tensors(net, SquaredError(), X, Y, weight=WEIGHT, training=training, batch_size=53, lr=lr)
    torch.testing.assert_close(weights(net), weights(by_hand), rtol=0, atol=1e-12)


# ---- out of memory ----


class Hungry(Objective):
    """Runs out of memory above some rows, as a large network would."""

    def __init__(self, most):
        self.most, self.refused, self.largest = most, 0, 0

    def terms(self, net, batch, phase):
        if len(batch.x) > self.most:
            self.refused += 1
            raise torch.OutOfMemoryError("no room")
        self.largest = max(self.largest, len(batch.x))
        return SquaredError().terms(net, batch, phase)


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("most", [9, 5, 1])
def test_out_of_memory_halves_the_micro_batch_and_keeps_the_batch(most, weight):
    whole, _ = trained(SquaredError(), weight=weight)
    hungry = Hungry(most)
    pieces, _ = trained(hungry, weight=weight)
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-10)
    assert hungry.largest <= most
    assert hungry.refused <= 4  # found once, not in every step


def test_a_row_that_does_not_fit_is_said_plainly():
    with pytest.raises(InvalidParameter, match="one row does not fit into the memory of cpu"):
        trained(Hungry(0))


# ---- number formats and compilation ----


def answers(**settings):
    X, y = moons(200)
    training = Training(**{"validation": 0, "precision": "float32", **settings})
    model = MLPClassifier(hidden=(8,), epochs=5, lr=0.01, random_state=0, training=training)
    return model.fit(X, y).predict_proba(X)


def test_bf16_stays_within_two_percent():
    half, full = answers(precision="bf16"), answers()
    assert not np.array_equal(half, full)
    np.testing.assert_allclose(half, full, atol=0.02)


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_compiled_network_stays_within_rounding():
    np.testing.assert_allclose(answers(compile=True), answers(), atol=1e-5)


# ---- seeds ----


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_the_same_seed_gives_the_same_bits_whatever_the_global_random_state(precision):
    X, y = moons(150)
    training = Training(precision=precision, validation=0.2)
    model = MLPClassifier(hidden=(8,), dropout=0.3, epochs=3, random_state=5, training=training)
    first = weights(model.fit(X, y).module_)
    torch.manual_seed(99)
    before = torch.get_rng_state()
    second = weights(model.fit(X, y).module_)
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.equal(first, weights(model.set_params(random_state=6).fit(X, y).module_))


# ---- streaming ----


def test_a_streamed_table_gives_the_bits_of_the_table_in_memory(tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(230, 3))
    table = np.column_stack([X, X[:, 0] - X[:, 1] ** 2])
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,c,y", comments="")
    found = []
    for stream in (False, True):
        data = read(tmp_path / "t.csv", target="y", stream=stream)
        training = Training(validation=0.1, precision="float64")
        model = MLPRegressor(
            hidden=(8,), epochs=3, batch_size=10, random_state=0, training=training
        )
        model.fit(data)
        found.append((weights(model.module_), [line["val_loss"] for line in model.history_]))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]
