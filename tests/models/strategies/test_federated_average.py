"""One local step of all clients is the step on all rows."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn
from torch.testing import assert_close

from castalia import FederatedAveraging, MLPClassifier, Training
from castalia.errors import InvalidData
from castalia.models.strategies.federated_average import NearShared, mean_weights
from castalia.models.strategies.untrained import untrained
from castalia.testing.toys import moons

PLAIN = Training(optimizer="sgd", validation=0, precision="float64")
PLAIN_ADAM = Training(validation=0)
NET = MLPClassifier(hidden=(8,), batch_size=1000, lr=0.3, epochs=1, training=PLAIN)


def test_one_local_step_is_the_step_on_all_rows():
    X, y = moons(90)
    clients = np.repeat([0, 1, 2], [10, 30, 50])  # of unlike size
    model = FederatedAveraging(NET, rounds=1, local_epochs=1, random_state=0)
    model.fit(X, y, groups=clients)
    seed = model.estimator_.random_state
    central = untrained(clone(NET).set_params(random_state=seed), X, y).partial_fit(X, y)
    for (_, a), b in zip(
        model.module_.named_parameters(), central.module_.parameters(), strict=True
    ):
        assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_clients_with_several_local_steps_end_near_the_central_model():
    X, y = moons(300, seed=100)  # the settings were chosen on other seeds
    net = MLPClassifier(hidden=(16,), lr=0.03, epochs=30, batch_size=16, training=PLAIN_ADAM)
    central = clone(net).set_params(random_state=100).fit(X, y).score(*moons(500, seed=9))
    clients = np.repeat([0, 1, 2], [40, 110, 150])
    model = FederatedAveraging(net, rounds=15, local_epochs=2, random_state=100)
    model.fit(X, y, groups=clients)
    assert model.score(*moons(500, seed=9)) > central - 0.06
    assert model.rounds_[-1] < model.rounds_[0]


def test_a_mean_counts_rows_and_leaves_counters_alone():
    each = [{"w": torch.tensor([1.0]), "n": torch.tensor(3)}] * 2
    assert mean_weights(each, [1, 5]) == {"w": torch.tensor([1.0]), "n": torch.tensor(3)}


def test_the_proximal_term_is_half_the_squared_distance():
    net = nn.Linear(1, 2, bias=False)
    shared = {"weight": net.weight.detach() + torch.tensor([[1.0], [2.0]])}
    assert_close(NearShared(shared, 0.5).value(net), torch.tensor(0.25 * 5.0))


def test_clients_held_near_the_shared_weights_move_less():
    X, y = moons(60)
    net = MLPClassifier(hidden=(8,), lr=0.05, training=Training(validation=0))

    def moved(proximal):
        model = FederatedAveraging(net, rounds=1, local_epochs=10, proximal=proximal)
        model.set_params(random_state=0).fit(X, y)
        start = untrained(clone(net).set_params(random_state=model.estimator_.random_state), X, y)
        pairs = zip(model.module_.parameters(), start.module_.parameters(), strict=True)
        return sum(float((a - b).detach().square().sum()) for a, b in pairs)

    assert moved(10.0) < 0.5 * moved(0.0)


def test_groups_of_another_length_are_refused():
    with pytest.raises(InvalidData, match=r"`groups` must have one entry for each of the 40 rows"):
        FederatedAveraging(NET).fit(*moons(40), groups=[0, 1])
