"""The words of findings are held against what readers stumble over."""

import pytest
from tests.diagnose.wording import defects

from castalia.diagnose.finding_record import Evidence, finding

SHOWN = Evidence("share of dead units", 0.5, 0.4)


@pytest.mark.parametrize(
    "summary, remedy, evidence",
    [
        ("1e+02 % of the units are dead.", "Lower it.", SHOWN),
        ("The rate 0.30000000000000004 is too high.", "Lower it.", SHOWN),
        ("Two  spaces.", "Lower it.", SHOWN),
        ("The loss is nan.", "Lower it.", SHOWN),
        ("It normalises over 1 numbers.", "Lower it.", SHOWN),
        ("Columns 1, 2 ….", "Lower it.", SHOWN),
        ("No sentence", "Lower it.", SHOWN),
        ("No remedy.", " ", SHOWN),
        ("Of the other branch.", "Lower it.", Evidence("distance", 0.362, 0.05, above=False)),
    ],
)
def test_what_readers_stumble_over_is_named(summary, remedy, evidence):
    assert len(defects(finding("CST106", "error", 0.9, summary, remedy, evidence))) == 1


def test_a_finding_without_evidence_is_named():
    assert len(defects(finding("CST106", "error", 0.9, "Units are dead.", "Lower it."))) == 1


def test_good_words_pass():
    words = "0.11 % of 11 units, 1 unit of 2.1 rows; Column 1 has 1e-05."
    assert defects(finding("CST106", "error", 0.9, words, "lr=0.1 → 0.01", SHOWN)) == []


@pytest.mark.parametrize(
    "evidence, words",
    [
        (Evidence("area", 0.97004, 0.97), "area 0.97004 (above 0.97)"),
        (Evidence("numbers", 4, 4, above=False), "numbers 4 (at most 4)"),
        (Evidence("growth", float("inf"), 100.0), "growth infinite (above 100)"),
    ],
)
def test_a_number_and_its_limit_are_told_apart(evidence, words):
    assert str(evidence) == words
