"""Watching our loop: nothing changes, and what matters is seen."""

import json
import pickle
import sqlite3
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_moons

import castalia
from castalia.diagnose import Diagnosis, diagnose
from castalia.diagnose.estimators import DIAGNOSIS
from castalia.diagnose.record.layer_curves import LAYERS
from castalia.errors import Diverged, InvalidData, InvalidParameter
from castalia.testing.toys import scenes
from castalia.train import Callback, Training, checkpoint_pace

X, Y = make_moons(200, noise=0.2, random_state=0)


def moons(watch=True, **own):
    training = Training(watch=watch, verbose=False, **own.pop("training", {}))
    settings = {"epochs": 6, "batch_size": 16, "random_state": 0, "training": training, **own}
    return castalia.MLPClassifier(**settings)


def weights(model):
    return [p.detach().clone() for p in model.module_.state_dict().values()]


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"dropout": 0.3},
        {"training": {"clip": 0.5, "average": "ema", "accumulate": 2}},
        {"training": {"patience": 2, "optimizer": "sgd", "schedule": "cosine"}},
        {"training": {"optimizer": "lbfgs"}, "batch_size": 200},
    ],
    ids=["plain", "dropout", "clipped", "patient", "lbfgs"],
)
def test_a_watched_training_is_bit_equal_to_an_unwatched_one(own):
    plain = {k: dict(v) if isinstance(v, dict) else v for k, v in own.items()}
    watched, alone = moons(True, **own).fit(X, Y), moons(False, **plain).fit(X, Y)
    assert watched._record.looks
    assert alone._record is None
    assert not [n for n in watched._record.notes if "given up" in n]
    for ours, theirs in zip(weights(watched), weights(alone), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.gpu
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_recorded_graph_is_watched_without_a_change(dropout):
    def fit(watch):
        model = moons(watch, epochs=30, dropout=dropout, training={"device": "cuda"}).fit(X, Y)
        assert model.settings_["graph"]
        return model

    watched, alone = fit(True), fit(False)
    assert len(watched._record.looks) > 8
    assert all(torch.equal(a, b) for a, b in zip(weights(watched), weights(alone), strict=True))


def test_batch_statistics_are_those_of_the_training_alone():
    class Normal(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(
                torch.nn.Linear(2, 8),
                torch.nn.BatchNorm1d(8),
                torch.nn.ReLU(),
                torch.nn.Linear(8, 2),
            )

        def forward(self, x):
            return self.layers(x)

    def fit(watch):
        model = moons(watch)
        model._network = lambda spec: Normal()
        return weights(model.fit(X, Y))

    assert all(torch.equal(a, b) for a, b in zip(fit(True), fit(False), strict=True))


def test_watching_leaves_back_propagation_written_out():
    ways = []

    class Way(Callback):
        def on_batch_end(self, state):
            ways.append(state.stepper.name)

    moons(training={"callbacks": [Way()]}).fit(X, Y)
    assert set(ways) == {"written-out gradients"}


def test_a_short_fit_is_not_watched_and_says_so():
    model = moons("auto").fit(X, Y)
    assert model._record is None
    assert "Training(watch=True)" in model.diagnosis_.notes[0]


def test_a_long_fit_is_watched_by_default():
    model = moons("auto", epochs=1000, training={"callbacks": [StopSoon()]}).fit(X, Y)
    assert model._record.steps == 3 * 12


class StopSoon(Callback):
    def on_epoch_end(self, state):
        if state.epoch == 3:
            state.stop("seen enough")


def test_every_loss_and_validation_is_recorded():
    model = moons(epochs=5).fit(X, Y)
    record = model._record
    assert len(record.losses) == 5 * 12  # 180 rows in batches of 16
    assert [e.loss for e in record.evaluations] == [h["val_loss"] for h in model.history_]
    assert np.mean(record.losses[:12]) == pytest.approx(model.history_[0]["loss"], rel=0.05)
    assert [look.step for look in record.looks][:6] == [0, 1, 2, 3, 5, 8]
    for look in record.looks[:4]:
        assert look.loss == pytest.approx(record.losses[look.step], rel=1e-5)
    assert record.looks[0].head.loss == "cross_entropy"
    assert record.looks[0].next_gradient is not None


def test_clipping_shows_in_the_gradients_that_were_applied():
    look = moons(training={"clip": 1e-3}).fit(X, Y)._record.looks[2]
    total = np.sqrt(sum(norm**2 for norm in look.applied.values()))
    assert total == pytest.approx(1e-3, rel=1e-3)
    assert np.sqrt(sum(norm**2 for norm in look.gradients.values())) > 1e-2


def test_a_resumed_training_is_looked_at_in_the_same_steps(tmp_path, monkeypatch):
    class Quit(Callback):
        def on_epoch_end(self, state):
            if state.epoch == 2:
                raise KeyboardInterrupt

    def make(callbacks=()):
        return moons(training={"run": tmp_path / "run", "callbacks": callbacks})

    monkeypatch.setattr(checkpoint_pace, "SECONDS", 0.0)  # a checkpoint after every epoch
    monkeypatch.setattr(checkpoint_pace, "SHARE", np.inf)
    with pytest.raises(KeyboardInterrupt):
        make([Quit()]).fit(X, Y)
    resumed, whole = make().fit(X, Y), moons().fit(X, Y)
    first = 24 if len(resumed._record.losses) == 48 else 12
    later = [look.step for look in whole._record.looks if look.step >= first]
    assert [look.step + first for look in resumed._record.looks] == later
    assert all(torch.equal(a, b) for a, b in zip(weights(resumed), weights(whole), strict=True))


def test_findings_go_to_the_run(tmp_path):
    slow = moons("auto", lr=1e-7, epochs=10, training={"run": tmp_path / "slow"}).fit(X, Y)
    with closing(sqlite3.connect(tmp_path / "castalia.db")) as store:
        codes = [code for (code,) in store.execute("SELECT code FROM findings ORDER BY id")]
    assert codes
    assert codes[0] == "CST102" == slow.diagnosis_.findings[0].code
    stored = Diagnosis.from_json((tmp_path / "slow" / DIAGNOSIS).read_text())
    curves = json.loads((tmp_path / "slow" / LAYERS).read_text())
    measured = {name.partition("/")[0] for name in curves}
    assert measured == {"gradient_norm", "update_over_weight", "activation_std", "active_share"}
    assert all(curve["step"] == sorted(curve["step"]) for curve in curves.values())
    assert stored.codes == slow.diagnosis_.codes


def test_a_diverging_fit_leaves_findings_in_its_run(tmp_path):
    wild = castalia.LinearRegression(
        solver="sgd",
        lr=1e3,
        random_state=0,
        training=Training(optimizer="sgd", run=tmp_path / "wild"),
    )
    with pytest.raises(Diverged):
        wild.fit(X, X[:, 0])
    stored = Diagnosis.from_json((tmp_path / "wild" / DIAGNOSIS).read_text())
    assert "CST101" in stored


def test_a_mistake_of_the_doctor_never_reaches_the_training(monkeypatch):
    monkeypatch.setattr("castalia.diagnose.estimators.watcher.ExtraPass", lambda *_: 1 / 0)
    watched, alone = moons(True).fit(X, Y), moons(False).fit(X, Y)
    assert all(torch.equal(a, b) for a, b in zip(weights(watched), weights(alone), strict=True))
    assert any("ZeroDivisionError" in note for note in watched.diagnosis_.notes)


def test_what_was_seen_is_not_pickled_and_not_cloned():
    model = moons().fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert "_record" not in vars(again)
    assert not hasattr(again, "diagnosis_")
    assert np.array_equal(again.predict(X), model.predict(X))


def test_an_odd_value_of_watch_is_refused():
    with pytest.raises(InvalidParameter, match=r"`watch` must be True, False or 'auto'; got 3"):
        moons(3).fit(X, Y)


# ---- diagnose ----


def test_a_healthy_fit_is_left_alone():
    rows = make_moons(1000, noise=0.25, random_state=0)
    found = diagnose(moons(False, lr=1e-3, epochs=15), *rows)
    assert not found
    assert found.apply().get_params()["lr"] == 1e-3


def test_squared_errors_of_boxes_confidences_and_classes_are_no_regression():
    images, boxes = scenes(n=40)
    training = Training(watch=True, verbose=False, validation=0)
    own = {"width": 4, "strides": (8,), "lr": 1e-2, "epochs": 8, "batch_size": 16}
    model = castalia.YOLODetector(design="grid", training=training, random_state=0, **own)
    model.fit(images, boxes)
    assert [head.others for look in model._record.looks if (head := look.head)][0]
    assert not {"CST109", "CST403"} & set(model.diagnosis_.codes)


def test_rows_to_validate_on_are_used():
    watched = diagnose(moons(False, epochs=3), X[:150], Y[:150], X[150:], Y[150:])
    assert not any("No validation was seen" in note for note in watched.notes)
    with pytest.raises(InvalidData, match="`X_val` and `y_val` must be given together"):
        diagnose(moons(), X, Y, X_val=X)
    with pytest.raises(InvalidData, match="`X_val` and `y_val` must be given together"):
        diagnose(moons(), X, Y, y_val=Y)


def test_texts_to_validate_on_need_no_targets():
    model = castalia.GPTLanguageModel(
        context=8, dim=8, depth=1, heads=2, epochs=2, tokenizer="whitespace", random_state=0
    )
    watched = diagnose(model, ["a b c d " * 20], X_val=["a b c d " * 5])
    assert not any("No validation was seen" in note for note in watched.notes)


def test_muted_findings_are_not_reported():
    slow = moons(False, lr=1e-7)
    assert "CST102" in diagnose(slow, X, Y)
    assert "CST102" not in diagnose(slow, X, Y, mute=["CST102"])


def test_an_estimator_without_gradients_is_refused():
    with pytest.raises(
        InvalidParameter, match="trained by gradients; got LogisticRegression. With"
    ):
        diagnose(castalia.LogisticRegression(), X, Y)


def test_codes_of_categories_are_not_called_unscaled_and_sampled_rows_not_few():
    """The adapter of tables standardises; its codes of words are embedded, not multiplied."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    words = [f"shop {i}" for i in rng.integers(0, 60, 240)]
    table = castalia.read(pa.table({"shop": words, "x": rng.normal(size=240)}))
    training = Training(verbose=False)
    model = castalia.MLPClassifier(epochs=30, training=training, random_state=0)
    found = diagnose(model, table, (rng.random(240) > 0.5).astype(int))
    assert not {"CST201", "CST207"} & set(found.codes)


def game(watch):
    kind = castalia.GenerativeAdversarialNetwork
    training = replace(kind.usual_training, watch=watch, verbose=False)
    rows = np.random.default_rng(0).normal(size=(256, 2))
    settings = {"lr": 1e-7, "noise": 4, "hidden": (8,), "batch_size": 16, "epochs": 14}
    return kind(random_state=0, training=training, **settings).fit(rows)


def test_a_generator_of_ours_that_makes_few_things_is_seen_and_not_disturbed():
    watched = game(True)
    assert {made for made, _ in watched._record.shown} == {True, False}
    assert watched.diagnosis_.codes == ("CST102", "CST501")  # a rate of 1e-7
    assert np.array_equal(watched.sample(8), game(False).sample(8))
