"""The practical method of the course: goals, baselines, diagnosis, monitoring."""

import pytest
import torch
from sklearn.datasets import make_moons
from tests.method.small import quick_plan, write_table

import castalia
from castalia.diagnose import diagnose, preflight, watch
from castalia.diagnose.record import Evaluation, Head, Look, Record
from castalia.diagnose.rules import judge
from castalia.method import FitPlan, next_step, recommend_baseline, run
from castalia.train import Training

X, Y = make_moons(300, noise=0.2, random_state=0)


def moons(**own):
    training = Training(verbose=False, **own.pop("training", {}))
    return castalia.MLPClassifier(
        **{"epochs": 20, "batch_size": 32, "random_state": 0, "training": training, **own}
    )


# SEL-13


def test_a_plan_holds_measure_and_goal_and_the_fit_is_held_against_them(tmp_path):
    table = write_table(tmp_path / "fruit.csv")
    modest = run(quick_plan(table, run=tmp_path / "a", metric="balanced_accuracy", goal=0.01))
    proud = run(quick_plan(table, run=tmp_path / "b", metric="balanced_accuracy", goal=1.01))
    assert modest.summary["metric"] == "balanced_accuracy"
    assert modest.summary["goal"] == {"value": 0.01, "from": "the plan", "reached": True}
    assert proud.summary["goal"]["reached"] is False
    assert "--goal 0.01" in modest.report.reproduce


BASELINES = {"Guessing", "Logistic regression", "Gradient boosting"}


def test_without_a_goal_the_best_baseline_is_the_goal(tmp_path):
    found = run(quick_plan(write_table(tmp_path / "fruit.csv"), run=tmp_path / "run"))
    baselines = [c for c in found.summary["contenders"] if c["name"] in BASELINES]
    best = max(baselines, key=lambda c: c["scores"]["accuracy"])
    assert len(baselines) == len(BASELINES)
    assert found.summary["goal"]["value"] == best["scores"]["accuracy"]
    assert found.summary["goal"]["from"] == best["name"]
    assert FitPlan(data="x.csv", target="y").goal is None


# SEL-14


@pytest.mark.parametrize(
    "kind, model, activation",
    [
        ("table", "dense network", "relu"),
        ("image", "convolutional network", "relu"),
        ("sequence", "gated recurrent network", "tanh"),
    ],
)
def test_every_kind_of_data_has_its_baseline(kind, model, activation):
    found = recommend_baseline(kind)
    assert (found.model, found.activation) == (model, activation)
    assert found.optimizers == ("momentum", "adam")
    assert "early stopping" in found.regularisation
    assert not found.batch_norm
    assert recommend_baseline(kind, hard_to_optimise=True).batch_norm
    assert recommend_baseline(kind, simple=True).model == "logistic regression"


# SEL-16


@pytest.mark.parametrize(
    "own, label",
    [
        ({"lr": 1e-6}, "learning-rate-too-low"),
        ({"lr": 30.0}, "learning-rate-too-high"),
        ({"activation": "identity", "epochs": 40, "lr": 1e-2}, "missing-nonlinearity"),
        ({"dropout": 0.95, "hidden": (16, 16)}, "over-regularised"),
    ],
    ids=["slow", "wild", "linear", "choked"],
)
def test_the_diagnosis_labels_planted_bottlenecks(own, label):
    assert diagnose(moons(**own), X, Y).findings[0].name == label


def random_labels(n=120):
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(n, 20, generator=random).numpy()
    return noise, torch.randint(2, (n,), generator=random).numpy()


def test_the_diagnosis_labels_overfitting():
    found = diagnose(moons(epochs=100, hidden=(128, 128)), *random_labels())
    assert found.findings[0].name == "overfitting"


# REG-36


@pytest.mark.parametrize(
    "train, held, flagged", [(0.1, 0.3, True), (0.1, 0.2, False), (0.3, 0.3, False)]
)
def test_a_gap_between_training_and_validation_beyond_the_threshold_is_flagged(
    train, held, flagged
):
    record = Record(losses=[1.0, 0.5, *[train] * 38], looks=[Look(0, head=Head("mse"))])
    record.evaluations = [Evaluation(10 * (i + 1), held, None, train) for i in range(4)]
    found = [f for f in judge(record) if f.code == "CST401"]
    assert bool(found) is flagged
    if flagged:
        assert str(found[0].evidence[0]) == "validation loss over the training loss 3 (above 2.5)"


def test_the_diagnosis_flags_the_gap_that_the_training_has_and_not_a_small_one():
    model = moons(epochs=100, hidden=(128, 128))
    found = diagnose(model, *random_labels()).findings[0]
    gap = next(e for e in found.evidence if e.what == "validation loss over the training loss")
    last = model.fit(*random_labels()).history_[-10:]
    losses = [sum(line[name] for line in last) for name in ("val_loss", "loss")]
    assert gap.value == pytest.approx(losses[0] / losses[1], rel=0.3)
    assert gap.value > gap.threshold
    assert "overfitting" not in [f.name for f in diagnose(moons(), X, Y).findings]


# SEL-17


def test_more_data_is_advised_only_where_the_fit_is_good_and_the_curve_still_falls():
    sizes = (100, 200, 400, 800)
    falling = [4.0 * n**-0.5 for n in sizes]  # 0.141 at 800 rows; 0.1 at 1,600
    assert next_step(0.25, 0.30, 0.1, sizes=sizes, errors=falling).action == "improve-the-fit"
    gather = next_step(0.02, falling[-1], 0.1, sizes=sizes, errors=falling)
    assert (gather.action, gather.rows) == ("gather-data", 1600)
    flat = [0.2, 0.199, 0.2, 0.198]
    assert next_step(0.02, flat[-1], 0.1, sizes=sizes, errors=flat).action == "regularise"
    assert next_step(0.02, 0.09, 0.1, sizes=sizes, errors=flat).action == "done"


# SEL-27


class Broken(torch.autograd.Function):
    """The identity with a gradient of the wrong sign."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Net(torch.nn.Module):
    def __init__(self, bug):
        super().__init__()
        self.first, self.last = torch.nn.Linear(2, 32), torch.nn.Linear(32, 2)
        self.bug = bug

    def forward(self, x):
        h = torch.relu(self.first(x))
        z = self.last(h)
        return Broken.apply(z) if self.bug else z


@pytest.mark.parametrize("bug", [True, False], ids=["bug", "sound"])
def test_a_tiny_fit_finds_an_injected_gradient_bug(bug, monkeypatch):
    monkeypatch.setattr(castalia.MLPClassifier, "_network", lambda self, spec: Net(bug))
    checks = {check.name: check for check in preflight(moons(), X, Y, seconds=8)}
    assert checks["tiny-fit"].passed is not bug


# SEL-28 and SEL-29


def descend(net, x, y, lr=0.05, steps=60):
    optimizer = torch.optim.SGD(net.parameters(), lr=lr)
    with watch(net, optimizer) as doctor:
        for _ in range(steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
    return doctor.diagnosis()


def stack(depth, scale, activation):
    torch.manual_seed(0)
    layers = []
    for i in range(depth):
        layer = torch.nn.Linear(2 if i == 0 else 16, 16)
        torch.nn.init.normal_(layer.weight, std=scale / layer.in_features**0.5)
        layers += [layer, activation()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(16, 2))


def test_vanishing_and_exploding_gradients_raise_their_alarms():
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Y)
    vanishing = descend(stack(10, 1.0, torch.nn.Sigmoid), x, y)
    assert "CST103" in vanishing
    exploding = descend(stack(12, 6.0, torch.nn.ReLU), x, y, lr=1e-12)
    assert "CST104" in exploding
    healthy = descend(stack(2, 1.4, torch.nn.ReLU), x, y)
    assert not {"CST103", "CST104"} & set(healthy.codes)


def test_planted_dead_units_are_found_and_counted():
    x, y = torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(Y)
    net = stack(2, 1.4, torch.nn.ReLU)
    with torch.no_grad():
        net[0].bias[:12] = -100.0  # 12 of 16 units never fire
    found = descend(net, x, y)
    dead = next(f for f in [*found, *(s for f in found for s in f.symptoms)] if f.code == "CST106")
    assert dead.where == "0"
    assert dead.evidence[0].value == pytest.approx(12 / 16)
    assert "CST106" not in descend(stack(2, 1.4, torch.nn.ReLU), x, y)
