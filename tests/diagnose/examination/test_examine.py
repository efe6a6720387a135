"""The examination as a whole: quiet on health, clear on planted faults, and it touches nothing."""

import copy
import random

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from castalia.diagnose import examine
from castalia.diagnose.examination import PROBES
from castalia.errors import InvalidParameter

CE = nn.CrossEntropyLoss()
QUICK = ("sizes", "columns", "scales", "causality", "tiny-fit", "duplicates", "telling-column")


def mlp(inputs=6, outputs=2, width=32):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


def table(rows=400, columns=6, seed=0):
    source = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, columns, generator=source)
    noise = 0.3 * torch.randn(rows, generator=source)
    y = (X[:, 0] + X[:, 1] - X[:, 2] + noise > 0).long()
    cut = 3 * rows // 4
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X = torch.tensor(X[order] / 16, dtype=torch.float32)
    y = torch.tensor(y[order])
    return (X[:500], y[:500]), (X[500:700], y[500:700])


def alarms(diagnosis):
    return [f.code for f in diagnosis.findings if f.severity != "info"]


def test_a_healthy_network_on_digits_is_left_in_peace():
    train, validation = digits()
    net = mlp(64, 10, 64)
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, fused=True)
    found = examine(net, CE, train, validation, optimizer=optimizer, seconds=60)
    assert alarms(found) == []


def test_a_trained_healthy_network_is_left_in_peace():
    train, validation = table()
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, fused=True)
    for _ in range(60):
        optimizer.zero_grad()
        CE(net(train[0]), train[1]).backward()
        optimizer.step()
    assert alarms(examine(net, CE, train, validation, optimizer=optimizer, seconds=60)) == []


def test_what_follows_from_a_high_rate_stands_under_it_with_the_user_s_values():
    train, validation = digits()
    net = mlp(64, 10, 64)
    sgd = torch.optim.SGD(net.parameters(), lr=30.0)
    probes = ("lr-range", "baseline-test", "input-blind")
    found = examine(net, CE, train, validation, optimizer=sgd, probes=probes, seconds=60)
    assert alarms(found) == ["CST101"]
    assert found.findings[0].remedy.text.startswith("lr=30 → 0.")
    assert {s.code for s in found.findings[0].symptoms} & {"CST402", "CST403", "CST406"}


# ---- nothing is changed ----


def everything(net, optimizer):
    return {
        "state": copy.deepcopy(net.state_dict()),
        "grad": [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        "requires": [p.requires_grad for p in net.parameters()],
        "modes": [m.training for m in net.modules()],
        "optimizer": copy.deepcopy(optimizer.state_dict()),
        "python": random.getstate(),
        "numpy": np.random.get_state(),  # noqa: NPY002
        "torch": torch.random.get_rng_state(),
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_module_optimizer_data_and_random_states_are_as_they_were():
    (X, y), validation = table(80)
    torch.manual_seed(3)
    net = nn.Sequential(
        nn.Linear(6, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(inplace=True),
        nn.Dropout(0.6),
        nn.Linear(16, 2),
    )
    net[1].eval()
    net[0].bias.requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    CE(net(X), y).backward()
    optimizer.step()
    calls = []
    net[0].register_forward_hook(lambda *_: calls.append(1))
    kept = X.clone(), y.clone()

    def loss(outputs, targets):  # reaches the user's own weights
        return CE(outputs, targets) + 1e-4 * sum(p.square().sum() for p in net.parameters())

    before = everything(net, optimizer)
    examine(net, loss, (X, y), validation, optimizer=optimizer, seconds=20)
    assert same(before, everything(net, optimizer))
    assert torch.equal(X, kept[0])
    assert torch.equal(y, kept[1])
    assert calls == []


def test_a_loader_draws_the_same_batches_afterwards():
    (X, y), _ = table(100)
    data = TensorDataset(X, y)

    def loader():
        weights = torch.utils.data.WeightedRandomSampler(
            torch.ones(len(X)), 50, generator=torch.Generator().manual_seed(5)
        )
        return DataLoader(data, 10, sampler=weights)

    examined, plain = loader(), loader()
    found = examine(mlp(), CE, examined, probes=("sizes",))
    assert found.notes == ()
    assert torch.equal(next(iter(examined))[0], next(iter(plain))[0])


# ---- ways in ----


class Pairs(Dataset):
    def __init__(self, X, y):
        self.X, self.y = X.numpy(), y.numpy()

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], int(self.y[i])


@pytest.mark.parametrize("way", ["arrays", "float64", "tensors", "dataset", "loader", "stream"])
def test_data_come_in_all_the_usual_ways(way):
    (X, y), _ = table(80)
    X[:, 4] = 7.0
    data = {
        "arrays": (X.numpy(), y.numpy()),
        "float64": (X.numpy().astype(np.float64), y.numpy()),
        "tensors": TensorDataset(X, y),
        "dataset": Pairs(X, y),
        "loader": DataLoader(Pairs(X, y), 16, shuffle=True),
        "stream": [(X[:30], y[:30]), (X[30:], y[30:]), (X[:0], y[:0])],
    }[way]
    found = examine(mlp(), CE, data, probes=("columns", "tiny-fit"), seconds=20)
    assert alarms(found) == ["CST203"]
    assert found.notes == ()


def test_a_function_may_make_the_training():
    train, validation = table(80)

    def make_training():
        net = mlp()
        return net, CE, train, validation, torch.optim.Adam(net.parameters())

    assert examine(make_training, probes=("sizes", "duplicates")).notes == ()


# ---- bad input ----


def test_a_module_without_parameters_has_nothing_to_train():
    class Nothing(nn.Module):
        def forward(self, x):
            return x[:, :2]

    train, validation = table(80)
    found = examine(Nothing(), CE, train, validation, seconds=10)
    assert found.findings[0].code == "CST110"
    assert "no parameters" in found.findings[0].summary


def test_without_validation_data_a_note_says_what_cannot_be_found():
    found = examine(mlp(), CE, table(120)[0], seconds=20)
    assert any("CST208" in note and "CST401" in note for note in found.notes)
    assert alarms(found) == []


def test_missing_values_are_the_cause_and_the_broken_loss_the_symptom():
    (X, y), validation = table(200)
    X[::20, 1] = float("nan")
    found = examine(mlp(), CE, (X, y), validation, seconds=20)
    assert alarms(found) == ["CST203"]
    assert found.findings[0].where == "column 1"
    assert [s.code for s in found.findings[0].symptoms] == ["CST105"]


def test_one_class_only_is_said():
    (X, y), validation = table(100)
    train, probes = (X, torch.zeros_like(y)), (*QUICK, "imbalance", "input-blind")
    found = examine(mlp(), CE, train, validation, probes=probes, seconds=20)
    assert found.findings[0].code == "CST204"
    assert "nothing to tell apart" in found.findings[0].summary


def test_batches_of_dicts_leave_a_note():
    data = [{"x": torch.zeros(4, 6), "y": torch.zeros(4)} for _ in range(3)]
    found = examine(mlp(), CE, DataLoader(data, batch_size=2))
    assert found.findings == ()
    assert "dict" in found.notes[0]
    nested = examine(mlp(), CE, ({"a": torch.zeros(4, 6)}, torch.zeros(4)))
    assert "dict" in nested.notes[0]


@pytest.mark.parametrize("rows", [1, 5])
def test_a_handful_of_rows_is_no_reason_to_fail_or_to_shout(rows):
    (X, y), (V, v) = table(40)
    y[: rows // 2], y[rows // 2 : rows] = 0, 1
    found = examine(mlp(), CE, (X[:rows], y[:rows]), (V[:rows], v[:rows]), seconds=10)
    assert set(alarms(found)) <= {"CST204"}


def test_a_module_that_does_not_fit_its_data_leaves_a_note():
    train, validation = table(60)
    found = examine(mlp(inputs=9), CE, train, validation, seconds=10)
    assert any("cannot be run" in note for note in found.notes)
    assert alarms(found) == []


def test_an_exception_inside_a_probe_becomes_a_note(monkeypatch):
    def broken(subject):
        raise ZeroDivisionError("by the probe")

    monkeypatch.setitem(PROBES, "sizes", (broken, 1.0))
    found = examine(mlp(), CE, table(40)[0], probes=("sizes",))
    assert found.notes == ("sizes: ZeroDivisionError: by the probe",)


def test_images_and_their_borders_are_healthy():
    (X, y), (V, v) = digits()
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10)
    )
    train, held = (X.reshape(-1, 1, 8, 8), y), (V.reshape(-1, 1, 8, 8), v)
    assert alarms(examine(net, CE, train, held, probes=QUICK, seconds=30)) == []


@pytest.mark.parametrize(
    "change, said",
    [
        ({"probes": ("tiny-fti",)}, "Did you mean `tiny-fit`"),
        ({"task": "multi-class"}, "Did you mean `multiclass`"),
        ({"seconds": 0}, "`seconds` must be positive; got 0"),
        ({"optimizer": "adam"}, "`optimizer` must be a torch optimizer"),
    ],
)
def test_wrong_arguments_are_named(change, said):
    with pytest.raises(InvalidParameter, match=said):
        examine(mlp(), CE, table(40)[0], **change)


def test_a_module_is_wanted_not_an_array():
    with pytest.raises(InvalidParameter, match="`module` must be a torch.nn.Module"):
        examine(np.zeros(3), CE, table(40)[0])
