"""What ``apply`` makes of trainings of a few steps, and of layers with a few units."""

from __future__ import annotations

from castalia import MLPClassifier
from castalia.diagnose.diagnosis import Diagnosis
from castalia.diagnose.estimators.estimator_rules import judge_estimator
from castalia.diagnose.estimators.prescription import prescribe
from castalia.diagnose.finding_record import Remedy, finding
from castalia.diagnose.record import Record

DEAD = finding(
    "CST106", "error", 0.9, "All units are dead.", Remedy("Leak.", {"activation": "leaky_relu"})
)


def test_four_steps_are_too_few_whatever_the_loss_did():
    found = judge_estimator(Record(losses=[1.10, 1.12, 1.11, 1.13]), MLPClassifier(epochs=1))
    assert found.codes == ("CST111",)
    assert "4 steps, too few" in found.findings[0].summary
    longer = prescribe(found, MLPClassifier(epochs=1)).findings[0].remedy.changes
    assert longer["epochs"] == 100


def test_a_narrow_layer_that_died_gets_room_and_a_wide_one_only_a_leak():
    for hidden, room in (((1,), {"hidden": (128, 128)}), ((64,), {})):
        dose = prescribe(Diagnosis((DEAD,)), MLPClassifier(hidden=hidden))
        assert dose.findings[0].remedy.changes == {"activation": "leaky_relu", **room}
