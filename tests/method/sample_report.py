"""Two reports made from scikit-learn models, for tests and for looking at the page."""

import platform
import time

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia.evaluate import bootstrap, scores, worst_mistakes
from castalia.method.report import Contender, RunReport

SPECIES = ("Adelie", "Chinstrap", "Gentoo")
COLUMNS = ("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year")


def penguins(rows=240, seed=0):
    """Measurements drawn from normals with the means and spreads of Palmer's three species."""
    rng = np.random.default_rng(seed)
    code = rng.choice(3, size=rows, p=[0.44, 0.20, 0.36])
    mean = np.array([[38.8, 18.3, 190, 3700], [48.8, 18.4, 196, 3733], [47.5, 15.0, 217, 5076]])
    spread = np.array([[2.9, 1.2, 6.5, 459], [3.3, 1.1, 7.1, 384], [3.2, 1.0, 6.5, 504]])
    X = (mean[code] + 1.25 * spread[code] * rng.standard_normal((rows, 4))).round(1)
    return np.column_stack([X, rng.choice([2007, 2008, 2009], rows)]), np.array(SPECIES)[code]


def fit_network(net, X, y, X_val, y_val, epochs, loss):
    """Train epoch by epoch to get a history; return it with the seconds used."""
    history, begin = [], time.perf_counter()
    for epoch in range(1, epochs + 1):
        net[-1].partial_fit(net[0].transform(X), y, **loss.extra)
        history.append(
            {
                "epoch": epoch,
                "loss": loss(net, X, y),
                "val_loss": loss(net, X_val, y_val),
                "lr": 0.01,
                "seconds": time.perf_counter() - begin,
            }
        )
    return history, time.perf_counter() - begin


class LogLoss:
    extra = {"classes": SPECIES}

    def __call__(self, net, X, y):
        return log_loss(y, net.predict_proba(X), labels=list(SPECIES))


class SquaredLoss:
    extra = {}

    def __call__(self, net, X, y):
        return mean_squared_error(y, net.predict(X))


def columns_of(X, names):
    return [
        {
            "name": name,
            "kind": "number",
            "missing": 2 * (i == 1),
            "unique": len(np.unique(X[:, i])),
            "detail": f"{X[:, i].min():g} to {X[:, i].max():g}, mean {X[:, i].mean():.4g}",
            "note": "",
        }
        for i, name in enumerate(names)
    ]


def contender(name, role, task, metric, model, X, y, seconds, note=""):
    said = model.predict(X)
    belief = model.predict_proba(X) if task == "classification" else None
    found = bootstrap(metric, y, said, rounds=200)
    return Contender(
        name, role, scores(task, y, said, belief), [found.low, found.high], seconds, note
    )


def fitted(model, X, y):
    begin = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - begin


ENVIRONMENT = {
    "castalia": "0.1.0",
    "python": platform.python_version(),
    "numpy": np.__version__,
    "platform": platform.system(),
    "device": "cpu",
}


def classification_report(X=None, y=None, names=COLUMNS, epochs=30):
    """Return a report on penguins; real measurements may be passed in."""
    if X is None:
        X, y = penguins()
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    X_train, X_val, y_train, y_val = train_test_split(X_fit, y_fit, test_size=0.2, random_state=0)
    net = make_pipeline(
        StandardScaler().fit(X_train),
        MLPClassifier(hidden_layer_sizes=(32,), random_state=0, learning_rate_init=0.01),
    )
    history, seconds = fit_network(net, X_train, y_train, X_val, y_val, epochs, LogLoss())
    task, metric = "classification", "accuracy"
    found = [
        contender(name, "baseline", task, metric, model, X_test, y_test, took, note)
        for name, note, (model, took) in (
            ("Guessing", "always the commonest class", fitted(DummyClassifier(), X_fit, y_fit)),
            (
                "Logistic regression",
                "",
                fitted(make_pipeline(StandardScaler(), LogisticRegression()), X_fit, y_fit),
            ),
            (
                "Gradient boosting",
                "HistGradientBoosting, defaults",
                fitted(
                    HistGradientBoostingClassifier(max_iter=20, early_stopping=False), X_fit, y_fit
                ),
            ),
        )
    ]
    found.append(contender("MLPClassifier", "model", task, metric, net, X_test, y_test, seconds))
    said, belief = net.predict(X_test), net.predict_proba(X_test)
    loss = -np.log(belief[np.arange(len(y_test)), np.searchsorted(SPECIES, y_test)])
    rows = {name: X_test[:, i] for i, name in enumerate(names)}
    return RunReport(
        title="Which penguin is it?",
        task=task,
        target="species",
        created="2025-03-14 10:30",
        data={
            "rows": len(y),
            "columns": columns_of(X, names),
            "balance": {s: int((y == s).sum()) for s in SPECIES},
            "split": {"train": len(y_train), "validation": len(y_val), "test": len(y_test)},
            "notes": ["2 rows had a missing target and were left out."],
        },
        contenders=found,
        metric=metric,
        interval_note="95% intervals from 200 resamples of the test rows",
        verdict="The network is about as good as logistic regression here, and slower. "
        "Use logistic regression unless you expect much more data.",
        advice=[
            "Collect more Chinstrap rows: two thirds of the mistakes are theirs.",
            "Run the comparison again with five seeds before deciding on a margin this small.",
        ],
        preflight=[
            {
                "name": "Loss at step 0",
                "passed": True,
                "measured": 1.12,
                "expected": "near 1.099",
                "message": "An untrained network should guess: ln 3.",
            },
            {
                "name": "One batch can be fitted",
                "passed": True,
                "measured": 0.0031,
                "expected": "below 0.05",
                "message": "The network is large enough and gradients reach every layer.",
            },
            {
                "name": "Shuffled labels give chance",
                "passed": False,
                "measured": 0.61,
                "expected": "near 0.44",
                "message": "Something besides the inputs gives the label away.",
            },
        ],
        history=history,
        y_true=y_test,
        y_pred=said,
        probability=belief,
        classes=SPECIES,
        mistakes=[vars(m) for m in worst_mistakes(y_test, said, loss, rows, 8, belief.max(axis=1))],
        settings={
            "model": "MLPClassifier",
            "hidden": (32,),
            "lr": 0.01,
            "epochs": epochs,
            "random_state": 0,
            "training": {"optimizer": "adam", "patience": None, "device": "cpu"},
        },
        environment=ENVIRONMENT,
        reproduce="castalia fit penguins.csv --target species --seed 0",
        findings=[
            {
                "code": "CST201",
                "name": "still-improving",
                "severity": "warning",
                "message": "The lowest validation loss was reached in the last epoch.",
                "remedy": "Train longer: set epochs=60 and patience=5.",
            }
        ],
    )


def regression_report(rows=300, epochs=40):
    """Return a report on a noisy quadratic surface."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    y = 3 * X[:, 0] - X[:, 1] ** 2 + rng.normal(size=rows) * (0.3 + 0.3 * np.abs(X[:, 0]))
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
    X_train, X_val, y_train, y_val = train_test_split(X_fit, y_fit, test_size=0.2, random_state=0)
    net = make_pipeline(
        StandardScaler().fit(X_train),
        MLPRegressor(hidden_layer_sizes=(32,), random_state=0, learning_rate_init=0.02),
    )
    history, seconds = fit_network(net, X_train, y_train, X_val, y_val, epochs, SquaredLoss())
    task, metric = "regression", "r2"
    found = [
        contender(name, "baseline", task, metric, model, X_test, y_test, took)
        for name, (model, took) in (
            ("Guessing the mean", fitted(DummyRegressor(), X_fit, y_fit)),
            ("Ridge regression", fitted(Ridge(), X_fit, y_fit)),
            (
                "Gradient boosting",
                fitted(HistGradientBoostingRegressor(max_iter=40), X_fit, y_fit),
            ),
        )
    ]
    found.append(contender("MLPRegressor", "model", task, metric, net, X_test, y_test, seconds))
    said = net.predict(X_test)
    inputs = {f"x{i}": X_test[:, i] for i in range(3)}
    worst = worst_mistakes(y_test, said, (y_test - said) ** 2, inputs, 6)
    return RunReport(
        title="A bent plane",
        task=task,
        target="height",
        created="2025-03-14 10:40",
        data={
            "rows": rows,
            "columns": columns_of(X, ["x0", "x1", "x2"]),
            "split": {"train": len(y_train), "validation": len(y_val), "test": len(y_test)},
        },
        contenders=found,
        metric=metric,
        history=history,
        y_true=y_test,
        y_pred=said,
        mistakes=[vars(m) for m in worst],
        settings={"model": "MLPRegressor", "lr": 0.02},
        environment=ENVIRONMENT,
        reproduce="castalia fit plane.csv --target height --seed 0",
    )
