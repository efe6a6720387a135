from dataclasses import replace

from castalia.diagnose import Diagnosis, finding
from castalia.diagnose.script.joint_diagnosis import joined

DEAD = finding("CST106", "warning", 0.7, "Half the units are dead.", "Leaky units.", where="fc1")
RATE = replace(finding("CST101", "error", 0.9, "The loss grows.", "lr"), symptoms=(DEAD,))


def test_the_diagnosis_of_one_module_stays_as_it_is():
    found = joined([("Net", Diagnosis((DEAD, RATE), ("a",)))], ["b"])
    assert found.findings == (DEAD, RATE)
    assert found.notes == ("a", "b")


def test_findings_of_several_modules_name_them_and_the_worst_comes_first():
    found = joined([("G", Diagnosis((DEAD,), ("a",))), ("D", Diagnosis((RATE,)))], ["b"])
    assert [one.where for one in found.findings] == ["D", "G.fc1"]
    assert found.findings[0].symptoms[0].where == "D.fc1"
    assert found.notes == ("G: a", "b")


def test_folds_of_one_class_say_a_thing_once_where_it_is_surest():
    sure = replace(DEAD, confidence=0.8)
    folds = [("Net", Diagnosis((one,), ("a",))) for one in (DEAD, sure, DEAD)]
    assert joined(folds).findings == (sure,)
    assert joined(folds).notes == ("a",)


def test_no_module_gives_the_notes_alone():
    assert joined([], ["b"]).notes == ("b",)
