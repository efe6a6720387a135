"""The doctor's remedies, made on our estimators."""

import numpy as np
import pytest
from evidence.corpus.repairs import ENOUGH, FAULTS
from sklearn.pipeline import Pipeline

import castalia
from castalia.diagnose import Diagnosis, Evidence, Remedy, diagnose, finding
from castalia.diagnose.estimators.estimator_rules import _penalised
from castalia.diagnose.estimators.prescription import prescribe
from castalia.diagnose.repair import changed, treatment
from castalia.errors import InvalidParameter
from castalia.train import Training


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.quick], ids=lambda f: f.name)
def test_a_planted_fault_is_found_and_repaired(fault):
    """Those that train quickly; ``python -m evidence doctor_repair`` treats them all."""
    healthy, spoilt, repaired, found = fault.treat()
    assert spoilt < ENOUGH * healthy
    assert found
    assert repaired >= ENOUGH * healthy


def test_apply_leaves_the_estimator_as_it_was():
    X, y = FAULTS[0].data()
    model = castalia.MLPClassifier(lr=1e-6, epochs=20, training=Training(run="runs/x", watch=False))
    found = diagnose(model, X[:200], y[:200])
    mended = found.apply()
    assert (model.lr, model.training.run) == (1e-6, "runs/x")
    assert mended.lr > 1e-6
    assert mended.training.run is None  # a run belongs to the settings that began it
    assert not hasattr(mended, "module_")


def test_remedies_name_only_settings_the_estimator_has_with_their_values():
    cure = Remedy("…", {"dropout": 0.3, "training__patience": 10, "lr": 0.5})
    found = Diagnosis((finding("CST113", "warning", 0.9, "…", cure),))
    linear = castalia.LogisticRegression(solver="sgd", lr=0.1)
    remedy = prescribe(found, linear).findings[0].remedy
    assert remedy.changes == {"lr": 0.5}  # no dropout; and no rows held out, so no patience
    assert remedy.text == "lr=0.1 → 0.5"


def test_the_earlier_cause_has_its_way_with_a_setting():
    first = finding("CST101", "error", 0.9, "…", Remedy("", {"lr": 0.1}))
    second = finding("CST102", "warning", 0.8, "…", Remedy("", {"lr": 0.2, "epochs": 7}))
    aside = finding("CST106", "info", 0.2, "…", Remedy("", {"activation": "tanh"}))
    assert treatment([first, second, aside]) == {"lr": 0.1, "epochs": 7}


def test_a_cause_without_settings_leaves_the_cure_to_its_symptoms():
    from dataclasses import replace

    symptom = finding("CST101", "error", 0.9, "…", Remedy("", {"lr": 0.1}))
    cause = finding("CST206", "error", 0.9, "…", "Drop the column.", Evidence("rows", 1.0))
    assert treatment([replace(cause, symptoms=(symptom,))]) == {"lr": 0.1}


def test_inputs_are_standardised_by_a_pipeline_and_targets_by_a_transformer():
    model = castalia.LinearRegression(solver="sgd")
    wrapped = changed(model, {"inputs": "standardise", "targets": "standardise", "lr": 0.5})
    assert isinstance(wrapped.regressor, Pipeline)
    assert wrapped.regressor[-1].lr == 0.5
    random = np.random.default_rng(0)
    X = 100 + 50 * random.normal(size=(200, 2))
    y = 1e4 * (X[:, 0] - X[:, 1])
    again = diagnose(wrapped, X, y)
    assert "CST201" not in again
    assert "CST202" not in again


def test_a_diagnosis_of_a_foreign_loop_has_words_only():
    with pytest.raises(InvalidParameter, match=r"diagnose\(est, X, y\).*this one is of train\.py"):
        Diagnosis(subject="train.py").apply()


@pytest.mark.parametrize(
    ("dropout", "decay", "changes"),
    [
        (0.0, 0.0, {"dropout": 0.3, "training__weight_decay": 1e-3}),
        (0.3, 1e-4, {"dropout": 0.5, "training__weight_decay": 1e-3}),
        (0.5, 1e-2, {}),
    ],
)
def test_overfitting_never_lowers_what_restrains_already(dropout, decay, changes):
    training = Training(weight_decay=decay, patience=5)
    model = castalia.MLPClassifier(dropout=dropout, training=training)
    remedy = Remedy("", {"training__patience": 10, "dropout": 0.3, "training__weight_decay": 1e-2})
    found = finding("CST401", "warning", 0.8, "It overfits.", remedy)
    (prescribed,) = prescribe(Diagnosis((found,)), model)
    assert prescribed.remedy.changes == changes


def test_a_long_way_without_shortcuts_is_made_shorter():
    vanishing = finding("CST103", "error", 0.9, "…", Remedy("…", {"activation": "relu"}))
    for layers, kept in ((4, None), (8, (32,) * 4)):
        model = castalia.MLPClassifier(hidden=(32,) * layers, activation="sigmoid")
        changes = prescribe(Diagnosis((vanishing,)), model).findings[0].remedy.changes
        assert changes.get("hidden") == kept
        assert changes["activation"] == "relu"


def test_a_penalty_that_is_a_setting_comes_before_the_steps_it_spoils():
    too_high = finding("CST101", "error", 0.9, "…", "…")
    strong, usual = (castalia.LogisticRegression(solver="sgd", C=C) for C in (1e-5, 1.0))
    (cause,) = _penalised(strong, (too_high,))
    assert (cause.code, [one.code for one in cause.symptoms]) == ("CST404", ["CST101"])
    assert prescribe(Diagnosis((cause,)), strong).findings[0].remedy.changes["C"] == 1.0
    assert _penalised(usual, (too_high,)) == (too_high,)
    assert _penalised(strong, ()) == ()
