import logging
import sys

import pytest
from torch import nn

from castalia.diagnose import Diagnosis
from castalia.diagnose.integrations.guarded_doctor import GuardedDoctor, validation_numbers
from castalia.errors import MissingPackage


@pytest.mark.parametrize(
    "metrics, prefix, expected",
    [
        ({"val_loss": 1, "val_acc": 0.5, "train_loss": 9}, "val", (1.0, 0.5)),
        ({"val/loss": 2.0, "val/f1": 0.1}, "val", (2.0, 0.1)),
        ({"eval_loss": 2.0, "eval_runtime": 3.0, "eval_steps_per_second": 1.0}, "eval_", (2, None)),
        (
            {"valid_loss": 2.0, "valid_loss_best": True, "valid_acc_best": True},
            "valid",
            (2.0, None),
        ),
        ({"val_mse": 0.3, "val_r2": 0.8}, "val", (0.3, 0.8)),
        ({"accuracy": 0.9}, "val", (None, None)),
        ({"val_loss": "oh"}, "val", (None, None)),
    ],
)
def test_loss_and_score_are_found_among_the_metrics(metrics, prefix, expected):
    assert validation_numbers(metrics, prefix) == expected


def test_a_doctor_that_raises_does_not_disturb_the_training(monkeypatch, caplog):
    def watch(*args):
        raise RuntimeError("oh")

    monkeypatch.setattr("castalia.diagnose.integrations.guarded_doctor.watch", watch)
    doctor = GuardedDoctor()
    doctor.begin(nn.Linear(1, 1), [])
    doctor.epoch(1.0, None)
    doctor.end()
    assert doctor.diagnosis is None
    assert caplog.records == []


def test_findings_are_said_once_and_nothing_wrong_only_quietly(doctors, caplog):
    caplog.set_level(logging.INFO, logger="castalia.diagnose")
    for mute in ((), ("CST112",)):
        doctor = GuardedDoctor(mute)
        doctor.begin(nn.Linear(1, 1), [])
        assert isinstance(doctor.diagnosis, Diagnosis)  # so far
        doctor.end()
        doctor.end()
        assert len(doctor.diagnosis.findings) == 1 - len(mute)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert [doctor.closed for doctor in doctors] == [True, True]


@pytest.mark.parametrize("library", ["lightning", "transformers", "skorch"])
def test_without_the_library_its_callback_says_so_in_a_sentence(library, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == library:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"castalia.diagnose.integrations.{library}", raising=False)
    with pytest.raises(
        MissingPackage, match=rf"^DoctorCallback for \w+: needs the package `{library}"
    ):
        __import__(f"castalia.diagnose.integrations.{library}")
