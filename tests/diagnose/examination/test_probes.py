"""Each probe finds the fault that is planted for it, and passes its healthy twin."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_moons
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from castalia.diagnose import (
    baseline_test,
    examine,
    lr_range,
    more_data_test,
    shuffle_test,
    tiny_fit,
)

CE, MSE = nn.CrossEntropyLoss(), nn.MSELoss()


def mlp(inputs=6, outputs=2, width=32, last=None):
    torch.manual_seed(0)
    layers = [nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs)]
    return nn.Sequential(*layers, *([last] if last else []))


def table(rows=400, columns=6, noise=0.3, seed=0):
    source = torch.Generator().manual_seed(seed)
    X = torch.randn(rows, columns, generator=source)
    score = X[:, 0] + X[:, 1] - X[:, 2] + noise * torch.randn(rows, generator=source)
    return X, (score > 0).long(), score[:, None]


def halves(X, y, cut=None):
    cut = cut or 3 * len(X) // 4
    return (X[:cut], y[:cut]), (X[cut:], y[cut:])


def probe(name, net, loss, train, validation=None, **settings):
    settings.setdefault("seconds", 30)
    return examine(net, loss, train, validation, probes=(name,), **settings)


def alarms(diagnosis):
    return [f.code for f in diagnosis.findings if f.severity != "info"]


# ---- tiny fit ----


class Detached(nn.Module):
    def __init__(self, cut):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last, self.cut = nn.Linear(6, 32), nn.Linear(32, 2), cut

    def forward(self, x):
        h = self.first(x).relu()
        return self.last(h.detach() if self.cut else h)


@pytest.mark.parametrize("cut, codes", [(True, ["CST110"]), (False, [])])
def test_a_detached_layer_is_named(cut, codes):
    X, y, _ = table()
    found = probe("tiny-fit", Detached(cut), CE, (X, y))
    assert alarms(found) == codes
    if cut:
        assert "`first.weight`" in found.findings[0].summary


def test_a_network_that_cannot_learn_by_heart_is_told():
    X = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    y = (X[:, 0] * X[:, 1] > 0).long()
    flat, bent = nn.Linear(2, 2), mlp(2, 2, 64)
    failed = tiny_fit(flat, CE, (X, y), seconds=30)
    assert not failed
    assert [f.code for f in failed.findings] == ["CST402"]
    assert "tiny-fit test fails" in failed.findings[0].summary
    assert failed.numbers["accuracy"] < failed.numbers["bar"]
    assert tiny_fit(bent, CE, (X, y), seconds=30).passed


def test_equal_weights_are_the_reason_when_new_ones_learn():
    X, y, _ = table()
    net = mlp()
    for p in net.parameters():
        nn.init.zeros_(p)
    assert alarms(probe("tiny-fit", net, CE, (X, y))) == ["CST108"]


def test_an_optimizer_of_another_module_is_told():
    X, y, _ = table()
    other = torch.optim.Adam(mlp().parameters())
    found = probe("tiny-fit", mlp(), CE, (X, y), optimizer=other)
    assert alarms(found) == ["CST110"]
    assert "any parameter" in found.findings[0].summary


@pytest.mark.parametrize("last, codes", [(nn.ReLU(), ["CST301"]), (None, [])])
def test_targets_that_the_output_cannot_reach_are_told(last, codes):
    X, _, score = table()
    assert alarms(probe("tiny-fit", mlp(6, 1, 64, last), MSE, (X, score))) == codes


def test_weights_that_are_not_numbers_are_named():
    X, y, _ = table()
    net = mlp()
    with torch.no_grad():
        net[2].weight[0, 0] = float("nan")
    found = probe("tiny-fit", net, CE, (X, y))
    assert found.findings[0].code == "CST105"
    assert found.findings[0].where == "2.weight"


def test_the_layer_where_numbers_break_is_named():
    class Log(nn.Module):
        def forward(self, x):
            return x.log()

    X, y, _ = table()
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), Log(), nn.Linear(8, 2))
    found = probe("tiny-fit", net, CE, (X, y))
    assert (found.findings[0].code, found.findings[0].where) == ("CST105", "2")


# ---- learning rate ----


@pytest.mark.parametrize(
    "make, code",
    [
        (lambda p: torch.optim.SGD(p, lr=100.0), "CST101"),
        (lambda p: torch.optim.Adam(p, lr=1e-6), "CST102"),
        (lambda p: torch.optim.SGD(p, lr=0.0), "CST102"),
        (lambda p: torch.optim.Adam(p, lr=1e-3), None),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), None),
    ],
    ids=["sgd-100", "adam-1e-6", "sgd-0", "adam", "momentum"],
)
def test_the_rate_is_judged_by_what_other_rates_do(make, code):
    X, y, _ = table()
    found = lr_range(mlp(), CE, (X, y), optimizer=make, seconds=60)
    assert [f.code for f in found.findings] == ([code] if code else [])
    if code:
        rate = f"{found.numbers['lr']:.3g}"
        assert found.findings[0].remedy.text == f"lr={rate} → {found.numbers['best']:.2g}"
        assert found.findings[0].remedy.changes["lr"] == found.numbers["best"]


def test_the_rate_before_a_schedule_took_it_down_is_judged():
    X, y, _ = table()
    net = mlp()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 1e-4)
    optimizer.step()
    schedule.step()
    assert lr_range(net, CE, (X, y), optimizer=optimizer, seconds=60).numbers["lr"] == 1e-3


# ---- inputs and labels ----


class Deaf(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 2)

    def forward(self, x):
        return self.layer(0 * x)


def test_a_network_that_ignores_its_input_is_told():
    train, held = halves(*table()[:2])
    assert [f.code for f in shuffle_test(Deaf(), CE, train, held).findings] == ["CST406"]
    assert shuffle_test(mlp(), CE, train, held).passed


def test_inputs_in_another_order_than_their_targets_are_told():
    X, y, _ = table()
    train, held = halves(X, y)
    # The validation rows are in order, so that a baseline can be asked whether there is a signal.
    net = nn.Sequential(nn.Linear(6, 2))
    nn.init.zeros_(net[0].weight)
    net[0].weight.requires_grad_(False)
    found = probe("input-blind", net, CE, train, held)
    assert alarms(found) == ["CST406"]


def test_shuffled_labels_that_can_be_learned_show_rows_on_both_sides():
    (X, y), (V, v) = halves(*table(300, columns=20)[:2])
    copied = torch.cat([X[:120], V]), torch.cat([y[:120], v])
    net = mlp(20, 2, 256)
    leak = shuffle_test(net, CE, (X, y), copied, optimizer=_quick, seconds=60)
    assert [f.code for f in leak.findings] == ["CST206"]
    assert shuffle_test(net, CE, (X, y), (V, v), optimizer=_quick, seconds=60).passed


# ---- baselines ----


def test_trees_that_see_more_than_a_line_are_told():
    X, y = make_moons(600, noise=0.15, random_state=0)
    X = np.stack([X[:, 0] * np.cos(3 * X[:, 1]), X[:, 1]], 1)
    train, held = halves(torch.tensor(X, dtype=torch.float32), torch.tensor(y), 400)
    fast = lambda p: torch.optim.Adam(p, lr=3e-2)  # noqa: E731
    flat = baseline_test(nn.Linear(2, 2), CE, train, held, optimizer=fast, seconds=60)
    assert [f.code for f in flat.findings] == ["CST402"]
    assert flat.numbers["boosting"] < flat.numbers["network"]
    assert baseline_test(mlp(2, 2, 64), CE, train, held, optimizer=fast, seconds=60).passed


# ---- more data ----


def digits(rows):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = torch.tensor(X[order] / 16, dtype=torch.float32), torch.tensor(y[order])
    return (X[:rows], y[:rows]), (X[1300:], y[1300:])


def test_too_few_rows_are_told_by_the_learning_curve():
    few = more_data_test(mlp(64, 10, 64), CE, *digits(60), seconds=60)
    assert [f.code for f in few.findings] == ["CST207"]
    assert few.numbers["rows"] == [15, 30, 60]
    X, y, _ = table(1200, noise=0.1)
    assert more_data_test(mlp(), CE, *halves(X, y), seconds=60).passed


# ---- rows on both sides ----


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_validation_rows_copied_from_the_training_rows_are_told(noise):
    (X, y), (V, v) = halves(*table()[:2])
    copies = X[:40] + noise * torch.randn(40, 6, generator=torch.Generator().manual_seed(1))
    found = probe("duplicates", mlp(), CE, (X, y), (torch.cat([V, copies]), torch.cat([v, y[:40]])))
    assert alarms(found) == ["CST206"]


def test_distinct_rows_and_rows_of_few_values_are_no_leak():
    X, y, _ = table()
    assert alarms(probe("duplicates", mlp(), CE, *halves(X, y))) == []
    few = (X > 0).float()  # 64 different rows
    assert alarms(probe("duplicates", mlp(), CE, *halves(few, y))) == []


def test_a_column_that_gives_the_answer_is_named():
    X, y, _ = table(noise=3.0)
    noise = 0.02 * torch.randn(len(y), generator=torch.Generator().manual_seed(1))
    leaky = X.clone()
    leaky[:, 3] = y + noise
    found = probe("telling-column", mlp(), CE, (leaky, y))
    assert alarms(found) == ["CST206"]
    assert found.findings[0].where == "column 3"
    assert alarms(probe("telling-column", mlp(), CE, (X, y))) == []


def test_a_column_that_is_the_target_of_a_regression_is_named():
    X, _, score = table(noise=3.0)
    leaky = X.clone()
    leaky[:, 5] = 2 * score[:, 0] + 1
    found = probe("telling-column", mlp(6, 1), MSE, (leaky, score))
    assert found.findings[0].where == "column 5"
    assert alarms(probe("telling-column", mlp(6, 1), MSE, (X, score))) == []


@pytest.mark.parametrize("moved, codes", [(1.5, ["CST208"]), (0.0, [])])
def test_a_shift_between_the_sides_is_told_with_its_column(moved, codes):
    train, (V, v) = halves(*table(600)[:2])
    V = V.clone()
    V[:, 2] += moved
    found = probe("shift", mlp(), CE, train, (V, v))
    assert alarms(found) == codes
    if codes:
        assert found.findings[0].where == "column 2"


# ---- columns ----


@pytest.mark.parametrize(
    "column, said",
    [
        (lambda X: torch.full((len(X),), 3.0), "same value"),
        (lambda X: torch.arange(len(X)).float(), "numbers the rows"),
        (lambda X: 2 * X[:, 0] + 1, "repeats an earlier column"),
        (lambda X: X[:, 0].where(X[:, 0] > -1, torch.nan), "missing"),
    ],
    ids=["constant", "identifier", "repeated", "missing"],
)
def test_columns_that_cannot_help_are_told(column, said):
    X, y, _ = table()
    bad = X.clone()
    bad[:, 4] = column(X)
    found = probe("columns", mlp(), CE, (bad, y))
    assert alarms(found) == ["CST203"]
    assert found.findings[0].where == "column 4"
    assert said in found.findings[0].summary
    assert alarms(probe("columns", mlp(), CE, (X, y))) == []


@pytest.mark.parametrize("factor", [1000.0, 1e-4])
def test_inputs_of_another_scale_are_told(factor):
    X, y, _ = table()
    assert alarms(probe("scales", mlp(), CE, (factor * X, y))) == ["CST201"]
    assert alarms(probe("scales", mlp(), CE, (X, y))) == []


def test_columns_of_different_scales_are_told_unless_the_network_scales_them():
    X, y, _ = table()
    X = X * torch.tensor([1.0, 1.0, 1.0, 1.0, 1e3, 1.0])
    found = probe("scales", mlp(), CE, (X, y))
    assert alarms(found) == ["CST201"]
    assert found.findings[0].where == "column 4"
    scaled = nn.Sequential(nn.BatchNorm1d(6), *mlp())
    scaled(X)
    scaled[0].momentum = None  # averages all batches, here one
    scaled[0].reset_running_stats()
    scaled(X)
    assert alarms(probe("scales", scaled, CE, (X, y))) == []


def test_targets_of_another_scale_are_told_with_their_numbers():
    X, _, score = table()
    found = probe("scales", mlp(6, 1), MSE, (X, 1e4 * score + 2e5))
    assert alarms(found) == ["CST202"]
    assert "Train on (y - 1.99e+05) / 18500" in found.findings[0].remedy.text
    assert alarms(probe("scales", mlp(6, 1), MSE, (X, score))) == []


def test_rare_classes_that_are_passed_over_are_told():
    X, _, score = table(800, noise=2.0)
    rare = (score[:, 0] > 5.5).long()
    assert 0.005 < rare.float().mean() < 0.03
    assert alarms(probe("imbalance", mlp(), CE, (X, rare))) == ["CST204"]
    X, _, score = table(800, noise=0.0)
    found = probe("imbalance", mlp(), CE, (X, (score[:, 0] > 3.2).long()), optimizer=_quick)
    assert [f.severity for f in found.findings] == ["info"]


def _quick(parameters):
    return torch.optim.Adam(parameters, lr=1e-2, fused=True)


# ---- label noise ----


def gaussians(distance, rows=800):
    source = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (rows,), generator=source)
    X = torch.randn(rows, 4, generator=source)
    X[:, 0] += distance * y
    return X, y


def test_wrong_labels_are_told_and_listed():
    X, y = gaussians(6.0)
    wrong = torch.randperm(len(y), generator=torch.Generator().manual_seed(1))[:120]
    noisy = y.clone()
    noisy[wrong] = 1 - noisy[wrong]
    found = probe("label-noise", mlp(4), CE, (X, noisy))
    assert alarms(found) == ["CST205"]
    listed = found.findings[0].remedy.text.removeprefix("Inspect training rows ").split(" and ")[0]
    assert {int(row) for row in listed.split(", ")} <= set(wrong.tolist())


@pytest.mark.parametrize("distance", [0.5, 1.5, 6.0])
def test_hard_but_clean_data_have_no_wrong_labels(distance):
    assert alarms(probe("label-noise", mlp(4), CE, gaussians(distance))) == []


# ---- gradients of one's own ----


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return ctx.factor * x**2 * g, None


class Cubic(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return Cube.apply(x, self.factor)


@pytest.mark.parametrize("factor, codes", [(-1.0, ["CST402"]), (3.0, [])])
def test_a_wrong_backward_is_told_with_its_module(factor, codes):
    X, y, _ = table(100)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), Cubic(factor), nn.Linear(8, 2))
    found = probe("gradient-check", net, CE, (X, y))
    assert alarms(found) == codes
    if codes:
        assert found.findings[0].where == "1"
        assert "backward of `Cube` is wrong" in found.findings[0].summary


def test_a_wrong_backward_fails_the_tiny_fit():
    X, y, _ = table(100)
    torch.manual_seed(0)
    first, last = nn.Linear(6, 8), nn.Linear(8, 2)
    last.requires_grad_(False)
    wrong = tiny_fit(nn.Sequential(first, Cubic(-3.0), last), CE, (X, y), seconds=60)
    right = tiny_fit(nn.Sequential(first, Cubic(3.0), last), CE, (X, y), seconds=60)
    assert [f.code for f in wrong.findings] == ["CST402"]
    assert right.passed


def test_a_straight_through_estimator_is_no_fault():
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sign()

        @staticmethod
        def backward(ctx, g):
            return g

    class Binary(nn.Module):
        def forward(self, x):
            return Sign.apply(x)

    X, y, _ = table(100)
    net = nn.Sequential(nn.Linear(6, 8), Binary(), nn.Linear(8, 2))
    assert alarms(probe("gradient-check", net, CE, (X, y))) == []


# ---- language models ----


class Sequence(nn.Module):
    def __init__(self, both):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(12, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional=both)
        self.head = nn.Linear(16 if both else 8, 12)

    def forward(self, x):
        return self.head(self.rnn(self.embed(x))[0]).transpose(1, 2)


@pytest.mark.parametrize("both, codes", [(True, ["CST505"]), (False, [])])
def test_a_model_that_sees_the_future_is_told(both, codes):
    tokens = torch.randint(0, 12, (40, 9), generator=torch.Generator().manual_seed(0))
    found = probe("causality", Sequence(both), CE, (tokens[:, :-1], tokens[:, 1:]))
    assert alarms(found) == codes


def test_targets_that_are_not_shifted_are_told_unless_the_loss_shifts_them():
    tokens = torch.randint(0, 12, (40, 9), generator=torch.Generator().manual_seed(0))
    shifting = lambda out, y: CE(out[..., :-1], y[:, 1:])  # noqa: E731
    forgotten = probe("causality", Sequence(False), CE, (tokens, tokens), task="lm")
    assert alarms(forgotten) == ["CST206"]
    assert alarms(probe("causality", Sequence(False), shifting, (tokens, tokens), task="lm")) == []


# ---- modes, gap, confidence, penalties ----


def normalised(momentum):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(6, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Linear(32, 2)
    )


def fitted(net, X, y, steps, lr=1e-2):
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    source = torch.Generator().manual_seed(0)
    for _ in range(steps):
        chosen = torch.randint(0, len(X), (min(32, len(X)),), generator=source)
        optimizer.zero_grad()
        CE(net(X[chosen]), y[chosen]).backward()
        optimizer.step()
    return net


@pytest.mark.parametrize("momentum, codes", [(1e-5, ["CST115"]), (0.1, [])])
def test_running_statistics_that_lag_behind_are_told(momentum, codes):
    X, y, _ = table()
    X = 3 * X + 5
    net = fitted(normalised(momentum), X, y, 200)
    assert alarms(probe("modes", net, CE, (X, y))) == codes


@pytest.mark.parametrize("size, codes", [(2, ["CST115"]), (32, [])])
def test_batches_too_small_for_batch_normalisation_are_told(size, codes):
    X, y, _ = table(120)
    loader = DataLoader(TensorDataset(X, y), size, shuffle=True)
    found = probe("modes", normalised(0.1), CE, loader, seconds=5)
    assert alarms(found) == codes


def test_a_network_that_learned_its_rows_by_heart_is_told():
    X, y, _ = table(300, columns=20, noise=3.0)
    net = fitted(mlp(20, 2, 256), X[:60], y[:60], 400, 3e-3)
    found = probe("generalisation", net, CE, (X[:60], y[:60]), (X[60:], y[60:]))
    assert alarms(found) == ["CST401"]
    assert [s.code for s in found.findings[0].symptoms] == ["CST405"]
    X, y, _ = table(1000)
    calm = fitted(mlp(), X[:700], y[:700], 200)
    assert alarms(probe("generalisation", calm, CE, (X[:700], y[:700]), (X[700:], y[700:]))) == []


def test_confidence_that_is_too_high_is_told_with_its_temperature():
    X, y, _ = table(1200, noise=1.5)
    net = fitted(mlp(), X[:600], y[:600], 150)
    train, held = (X[:600], y[:600]), (X[600:], y[600:])
    assert alarms(probe("generalisation", net, CE, train, held)) == []
    with torch.no_grad():
        net[2].weight *= 20
        net[2].bias *= 20
    found = probe("generalisation", net, CE, train, held)
    assert alarms(found) == ["CST405"]
    assert "temperature" in found.findings[0].remedy.text


@pytest.mark.parametrize("rate, codes", [(0.97, ["CST404"]), (0.5, [])])
def test_dropout_that_forbids_learning_is_told(rate, codes):
    train, held = halves(*table(800)[:2])
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(rate), nn.Linear(32, 32))
    net = nn.Sequential(*net, nn.ReLU(), nn.Dropout(rate), nn.Linear(32, 2))
    found = probe("regularisation", net, CE, train, held, seconds=60)
    assert alarms(found) == codes


def test_weight_decay_that_forbids_learning_is_told():
    train, held = halves(*table(400)[:2])
    strong = lambda p: torch.optim.Adam(p, lr=1e-2, weight_decay=1.0)  # noqa: E731
    usual = lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=1e-2)  # noqa: E731
    found = probe("regularisation", mlp(), CE, train, held, optimizer=strong, seconds=60)
    assert alarms(found) == ["CST404"]
    assert found.findings[0].remedy.text == "weight_decay=1 → 1e-4"
    assert alarms(probe("regularisation", mlp(), CE, train, held, optimizer=usual)) == []


# ---- sizes ----


@pytest.mark.parametrize(
    "outputs, severity", [(3, "error"), (4, None), (9, "warning")], ids=["few", "right", "many"]
)
def test_outputs_are_held_against_the_classes(outputs, severity):
    X, _, score = table()
    y = torch.bucketize(score[:, 0], torch.tensor([-1.0, 0.0, 1.0]))
    found = probe("sizes", mlp(6, outputs), CE, (X, y))
    assert [(f.code, f.severity) for f in found.findings] == (
        [("CST306", severity)] if severity else []
    )
    if severity:
        assert found.findings[0].remedy.text == f"Outputs {outputs} → 4."


def test_labels_that_begin_at_one_are_told_apart_from_a_class_too_many():
    X, y, _ = table()
    found = probe("sizes", mlp(), CE, (X, y + 1))
    assert found.findings[0].remedy.text == "Subtract 1 from the labels, so that they begin at 0."


def test_shapes_that_broadcast_are_told_unless_the_loss_mends_them():
    X, _, score = table()
    mended = lambda out, y: MSE(out.squeeze(1), y)  # noqa: E731
    assert alarms(probe("sizes", mlp(6, 1), MSE, (X, score[:, 0]))) == ["CST304"]
    assert alarms(probe("sizes", mlp(6, 1), mended, (X, score[:, 0]))) == []
    assert alarms(probe("sizes", mlp(6, 1), MSE, (X, score))) == []
