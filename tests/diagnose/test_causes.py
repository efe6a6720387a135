"""Which finding explains which, on findings made up by hand."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.diagnose.rules.records import (
    classification,
    poor,
    set_rows,
    set_units,
    set_updates,
    share_of,
    stairs,
    units,
)

from castalia.diagnose import NAMES, finding
from castalia.diagnose.causes import EXPLAINS, arrange, supplemented
from castalia.diagnose.finding_codes import SEVERITIES
from castalia.diagnose.record import Record
from castalia.diagnose.rules import judge
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds
from castalia.diagnose.thresholds import limit

NOTHING = partial(holds, Case(Record()))
A_CYCLE = {"CST103", "CST106", "CST404"}


def made_up(code, severity="warning", sure=0.5, where=None):
    return finding(code, severity, sure, "Seen.", "Mend it.", where=where)


def codes(findings):
    """Codes as nested pairs of a code and what lies under it."""
    return [(f.code, codes(f.symptoms)) for f in findings]


def flat(findings):
    return [g for f in findings for g in (f, *flat(f.symptoms))]


# ---- whole records ----


def test_units_that_begin_alike_are_why_nothing_moves_and_not_its_consequence():
    found = arrange([made_up("CST110", "error", 0.9), made_up("CST108", "error", 0.5)])
    assert codes(found) == [("CST108", [("CST110", [])])]


@pytest.mark.parametrize("symptom", ["CST105", "CST501", "CST502"])
def test_biases_that_drown_a_layer_explain_numbers_that_are_none_and_a_lost_game(symptom):
    record = poor()
    assert not holds(Case(record), "CST109", symptom)
    record.looks[0].weights["0.bias"] = 100.0
    found = arrange(
        [made_up(symptom, "error", 0.9), made_up("CST109")], partial(holds, Case(record))
    )
    assert codes(found) == [("CST109", [(symptom, [])])]


@pytest.mark.parametrize(("bias", "explained"), [(0.1, True), (100.0, False)])
def test_biases_that_drown_a_layer_follow_from_nothing_that_comes_later(bias, explained):
    record = poor()
    record.looks[0].weights["0.bias"] = bias
    assert holds(Case(record), "CST301", "CST109") == explained


def diverged():
    """Steps far too large: the loss grows, breaks, and units die."""
    record = poor([*stairs(1.0, 5.0 * limit("rate.grown")), np.nan])
    set_units(record, *(units(str(2 * i), active=share_of(1.0)) for i in range(4)))
    return set_updates(record, 5 * limit("rate.ratio"))


def test_a_rate_too_high_is_one_cause_with_what_follows_beneath_it():
    diagnosis = judge(diverged())
    (cause,) = diagnosis.findings
    assert cause.code == "CST101"
    assert {"CST105", "CST106"} <= {f.code for f in flat(cause.symptoms)}


def test_inputs_that_are_not_scaled_explain_units_that_are_pinned():
    record = set_units(poor(), *(units(str(2 * i), "tanh", saturated=[0.95] * 8) for i in range(4)))
    large = [100 * limit("inputs.large") * v for v in record.train.inputs]
    diagnosis = judge(set_rows(record, inputs=np.concatenate(large)))
    first = diagnosis.findings[0]
    assert first.code == "CST201"
    assert "CST107" in [f.code for f in flat(first.symptoms)]
    assert "CST107" not in [f.code for f in diagnosis.findings]


def test_a_muted_cause_leaves_its_symptoms_in_sight():
    muted = judge(diverged(), mute=["CST101"])
    assert "CST101" not in muted
    assert "CST105" in muted
    assert "CST106" in muted


def test_a_muted_code_is_gone_wherever_it_stood():
    muted = judge(diverged(), mute=["CST105", "CST106"])
    assert muted.findings[0].code == "CST101"
    assert "CST105" not in muted
    assert "CST106" not in muted


def test_a_healthy_training_has_nothing_to_mute():
    assert judge(classification(), mute=["CST101"]).codes == ()


# ---- findings made up ----


def test_causes_come_by_severity_and_then_by_confidence():
    given = [
        made_up("CST206", "info", 0.99),
        made_up("CST303", "warning", 0.6),
        made_up("CST205", "warning", 0.8),
        made_up("CST110", "error", 0.5),
    ]
    for order in itertools.permutations(given):
        found = arrange(order, NOTHING)
        assert [f.code for f in found] == ["CST110", "CST205", "CST303", "CST206"]


def test_symptoms_come_by_severity_and_then_by_confidence():
    given = [made_up("CST101", "error"), made_up("CST106", sure=0.3), made_up("CST105", "error")]
    (cause,) = arrange([*given, made_up("CST107", sure=0.9)], NOTHING)
    assert [f.code for f in cause.symptoms] == ["CST105", "CST107", "CST106"]


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [
        ("CST112", "CST101"),
        ("CST201", "CST101"),
        ("CST301", "CST302"),
        ("CST302", "CST103"),
        ("CST113", "CST103"),
        ("CST203", "CST201"),
        ("CST209", "CST106"),
        ("CST207", "CST204"),
        ("CST404", "CST405"),
        ("CST404", "CST204"),
        ("CST108", "CST113"),
    ],
)
def test_the_thing_to_mend_stands_above_what_it_does(cause, symptom):
    for order in ((cause, symptom), (symptom, cause)):
        assert codes(arrange([made_up(c) for c in order], NOTHING)) == [(cause, [(symptom, [])])]


def test_what_has_no_known_connection_stands_side_by_side():
    found = arrange([made_up("CST303"), made_up("CST206")], NOTHING)
    assert [f.symptoms for f in found] == [(), ()]


def test_inputs_that_are_not_scaled_do_not_explain_a_low_rate():
    assert len(arrange([made_up("CST201"), made_up("CST102")], NOTHING)) == 2


def test_a_finding_made_twice_is_told_once_and_two_places_twice():
    found = arrange([made_up("CST115", where=w) for w in ("a", "a", "b")], NOTHING)
    assert sorted(f.where for f in found) == ["a", "b"]


def test_of_a_finding_made_twice_the_surest_is_told():
    (found,) = arrange([made_up("CST115", sure=0.3), made_up("CST115", sure=0.9)])
    assert found.confidence == 0.9


def test_a_remark_explains_nothing_away():
    found = arrange([made_up("CST201", "info"), made_up("CST101", "error")])
    assert codes(found) == [("CST101", []), ("CST201", [])]


@given(st.sets(st.sampled_from(sorted(EXPLAINS)), min_size=2, max_size=8), st.data())
def test_what_is_only_worth_knowing_is_never_a_cause(chosen, data):
    severity = {c: data.draw(st.sampled_from(("warning", "info"))) for c in sorted(chosen)}
    assume(not {c for c in chosen if severity[c] == "warning"} >= A_CYCLE)
    found = arrange([made_up(c, severity[c]) for c in sorted(chosen)], NOTHING)
    assert all(not f.symptoms for f in flat(found) if f.severity == "info")


def test_every_code_that_explains_or_is_explained_is_in_the_vocabulary():
    assert {*EXPLAINS, *itertools.chain(*EXPLAINS.values())} <= set(NAMES)
    assert all(code not in explained for code, explained in EXPLAINS.items())


some_findings = st.lists(
    st.builds(
        made_up,
        st.sampled_from(sorted(NAMES)),
        st.sampled_from(SEVERITIES),
        st.sampled_from((0.3, 0.6, 0.9)),
        st.sampled_from((None, "0")),
    ),
    max_size=14,
    unique_by=lambda f: (f.code, f.where),
)


@given(some_findings, st.sampled_from((None, 0.001, 1.0)))
def test_every_finding_is_told_exactly_once(found, ratio):
    assume(not {f.code for f in found if f.severity != "info"} >= A_CYCLE)
    how = NOTHING if ratio is None else partial(holds, Case(set_updates(poor(), ratio)))
    arranged = [(f.code, f.where) for f in flat(arrange(found, how))]
    assert sorted(arranged, key=str) == sorted([(f.code, f.where) for f in found], key=str)


@example(sorted(EXPLAINS))
@given(st.permutations(sorted(EXPLAINS)))
def test_the_first_finding_does_not_depend_on_the_order_of_the_rules(order):
    chosen = [made_up(c) for c in order if c not in A_CYCLE]
    found = arrange(chosen, NOTHING)
    again = arrange(sorted(chosen, key=lambda f: f.code), NOTHING)
    assert {f.code for f in found} == {f.code for f in again} != set()


def test_dead_units_a_vanishing_gradient_and_strong_dropout_are_not_lost():
    found = arrange([made_up(code) for code in sorted(A_CYCLE)], NOTHING)
    assert {f.code for f in flat(found)} == A_CYCLE


@pytest.mark.parametrize(("share", "under"), [(0.5, False), (0.95, True)])
def test_dead_units_explain_a_vanishing_gradient_only_where_hardly_any_lives(share, under):
    record = set_units(classification(), units("1", active=share_of(share)))
    found = arrange([made_up("CST103"), made_up("CST106")], partial(holds, Case(record)))
    nested = [("CST106", [("CST103", [])])]
    assert (codes(found) == nested) == under


def found_as(code, severity="warning", *symptoms):
    made = finding(code, severity, 0.8, "Seen.", "Change it.")
    return replace(made, symptoms=tuple(symptoms))


def test_causes_that_were_watched_stay_first_when_an_examination_adds_to_them():
    watched = (found_as("CST102", "warning", found_as("CST111")), found_as("CST401"))
    examined = [found_as(c, "error") for c in ("CST206", "CST402", "CST102", "CST111", "CST208")]
    whole = supplemented(watched, examined)
    assert [one.code for one in whole] == ["CST102", "CST401", "CST206", "CST208"]
    assert [one.code for one in whole[0].symptoms] == ["CST111", "CST402"]


def test_a_short_trial_does_not_overrule_a_whole_training_in_which_nothing_was_wrong():
    remark = found_as("CST111", "info")
    examined = [found_as(c, "error") for c in ("CST102", "CST402", "CST208")]
    whole = supplemented((remark,), examined)
    assert [(one.code, one.severity) for one in whole] == [
        ("CST208", "error"),
        ("CST102", "info"),
        ("CST402", "info"),
        ("CST111", "info"),
    ]
