"""CST111 and CST113 on planted losses."""

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    above,
    ask,
    below,
    classification,
    falling,
    only,
    set_evaluations,
    set_head,
    stairs,
)

from castalia.diagnose.record import Evaluation
from castalia.diagnose.rules.duration_rules import noisy, too_short
from castalia.diagnose.thresholds import limit


def ending(fall, learnt=0.7, held=None):
    """Losses that fall by that share from the fourth to the last fifth."""
    record = classification(learnt, stairs(3.0, 2.0, 1.5, 1.0, 1.0 - fall))
    record.evaluations = []
    return record if held is None else set_evaluations(record, [1.0, 1.0, 1.0, 1.0 - held])


def test_a_loss_still_falling_at_the_end_was_stopped_too_early():
    found = only(too_short, ending(above("end.falling"), learnt=0.5))
    assert (found.code, found.severity, found.where) == ("CST111", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("end.falling"))
    assert evidence.threshold == limit("end.falling")
    assert evidence.above
    assert "epochs" in found.remedy.text


def test_a_loss_that_falls_by_a_little_less_was_not_stopped_too_early():
    assert ask(too_short, ending(below("end.falling"))) == []


def test_a_validation_loss_that_falls_too_makes_it_surer_and_a_level_one_denies_it():
    alone = only(too_short, ending(above("end.falling")))
    both = only(too_short, ending(above("end.falling"), held=above("end.falling")))
    assert both.confidence > alone.confidence
    assert both.evidence[1].value == pytest.approx(above("end.falling"))
    assert ask(too_short, ending(above("end.falling"), held=0.0)) == []


def test_a_fall_within_the_noise_of_the_losses_may_be_chance():
    record = ending(above("end.falling"))
    noise = np.random.default_rng(0).choice([0.02, 1.98], len(record.losses))
    record.losses[:] = list(np.asarray(record.losses) * noise)
    record.losses[-40:] = list(0.5 * np.asarray(record.losses[-80:-40]))
    assert ask(too_short, record) == []


def test_a_training_with_nothing_left_to_learn_was_long_enough():
    assert ask(too_short, ending(2 * limit("end.falling"), learnt=0.9)) == []


def test_a_training_that_has_only_begun_to_learn_was_stopped_too_early():
    fall = 0.5 * limit("end.falling")
    record = classification(0.3, stairs(1.0, 1.0, 1.0, 1.0, 1.0 - fall))
    record.evaluations = []
    found = only(too_short, record)
    assert found.code == "CST111"
    assert found.evidence[0].threshold is None  # it crossed nothing
    assert found.evidence[1].what == "share of the whole fall that came in the last fifth"
    assert found.evidence[1].value > found.evidence[1].threshold == limit("end.begun")


def test_no_evidence_lies_on_the_wrong_side_of_its_threshold():
    for learnt in (0.1, 0.3, 0.5, 0.7):
        for fall in (0.03, 0.05, 0.09, 0.2, 0.4):
            for held in (None, 0.02, 0.05, 0.15):
                for found in ask(too_short, ending(fall, learnt, held)):
                    for one in found.evidence:
                        assert one.threshold is None or one.value > one.threshold, found


def test_without_validation_a_fall_after_most_was_learnt_is_only_a_remark():
    fall = above("end.falling")
    assert only(too_short, ending(fall, learnt=1.01 * limit("end.learnt"))).severity == "info"
    held = ending(fall, learnt=1.01 * limit("end.learnt"), held=fall)
    assert only(too_short, held).severity == "warning"


def test_a_fall_at_the_end_of_a_schedule_that_ends_at_zero_is_the_plan():
    record = ending(3 * limit("end.falling"), learnt=0.5)
    assert only(too_short, record).severity == "warning"
    record.optimizers = [replace(record.optimizers[0], lr=0.0)]
    assert only(too_short, record).severity == "info"


def large(steps, size=512, learnt=0.3):
    record = classification(learnt, list(np.linspace(1.4, 0.7, int(steps))))
    record.evaluations = []
    for look in record.looks:
        look.size = size
    return set_head(record, outputs=(size, 4))


def test_large_batches_that_leave_few_steps_are_told_with_a_smaller_size():
    steps = limit("steps.few") - 1
    found = only(too_short, large(steps))
    assert (found.code, found.severity) == ("CST113", "warning")
    assert (found.evidence[0].value, found.evidence[0].threshold) == (steps, limit("steps.few"))
    assert not found.evidence[0].above
    smaller = found.remedy.changes["batch_size"]
    assert 16 <= smaller < 128
    assert found.remedy.text == f"batch_size=512 → {smaller}"


def test_the_nodes_of_one_graph_are_no_batch():
    record = set_head(large(limit("steps.few") - 1), outputs=(140, 4))
    assert "CST113" not in [f.code for f in ask(too_short, record)]


@pytest.mark.parametrize(("more", "size"), [(0, 512), (-1, 32)], ids=["steps", "small batches"])
def test_enough_steps_or_small_batches_are_not_blamed_on_the_batch(more, size):
    record = large(limit("steps.few") + more, size)
    assert "CST113" not in [f.code for f in ask(too_short, record)]


def jumping(noise, size=2, learnt=0.3):
    """Losses that alternate about their mean with that relative spread of a step."""
    mean, swing = (1 - learnt) * np.log(CLASSES), noise / np.sqrt(2)
    record = classification(learnt, list(mean * (1.0 + swing * (-1.0) ** np.arange(200))))
    for look in record.looks:
        look.size = size
    return record


def test_a_loss_that_jumps_at_tiny_batches_is_noisy():
    found = only(noisy, jumping(above("noise.loss")))
    assert (found.code, found.severity, found.where) == ("CST113", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("noise.loss"), rel=1e-3)
    assert evidence.threshold == limit("noise.loss")
    assert evidence.above
    assert found.remedy.text == "batch_size=2 → 32"
    assert found.remedy.changes == {"batch_size": 32}


def test_single_rows_are_worth_a_remark_where_little_is_learnt():
    found = only(noisy, jumping(above("noise.single"), size=1))
    assert (found.code, found.severity) == ("CST113", "info")
    assert ask(noisy, jumping(above("noise.single"), size=2)) == []
    found = only(noisy, jumping(above("noise.remark"), size=1, learnt=0.9))  # well, but slowly
    assert (found.severity, found.remedy.changes) == ("info", {"batch_size": 32})
    assert ask(noisy, jumping(below("noise.remark"), size=1)) == []


def test_steps_of_single_rows_need_rows_that_could_be_taken_together():
    record = jumping(above("noise.remark"), size=1, learnt=0.9)
    record.train.inputs = [np.repeat(rows[:1], len(rows), axis=0) for rows in record.train.inputs]
    assert ask(noisy, record) == []  # a few rows that come again and again


def test_single_sentences_could_be_taken_together_as_well():
    record = jumping(above("noise.remark"), size=1, learnt=0.9)
    words = np.random.default_rng(0).integers(0, 50, (8, 12))
    record.train.inputs = [words[i : i + 1, : 5 + i] for i in range(8)]  # each of its own length
    assert only(noisy, record).severity == "info"
    record.train.inputs = [words[:1]] * 8
    assert ask(noisy, record) == []


def test_single_rows_are_the_cause_where_nothing_is_learnt_though_the_loss_jumps_little():
    found = only(noisy, jumping(above("noise.remark"), size=1, learnt=0.0))
    assert (found.severity, found.evidence[0].threshold) == ("warning", limit("noise.remark"))


def test_single_rows_are_the_cause_where_nothing_is_learnt_and_a_penalty_hides_the_noise():
    found = only(noisy, jumping(below("noise.remark"), size=1, learnt=0.0))
    assert (found.severity, found.remedy.changes) == ("warning", {"batch_size": 32})
    (evidence,) = found.evidence
    assert evidence.threshold == limit("case.stuck")
    assert not evidence.above
    assert ask(noisy, jumping(below("noise.remark"), size=2, learnt=0.0)) == []


def test_a_loss_that_jumps_and_comes_down_all_the_time_is_not_noisy():
    record = jumping(above("noise.loss"))
    record.losses[:] = list(np.asarray(record.losses) * np.geomspace(1.0, 0.1, 200))
    assert ask(noisy, record) == []


def test_a_loss_that_jumps_less_or_at_larger_batches_or_learns_anyway_is_not_noisy():
    assert ask(noisy, jumping(below("noise.loss"))) == []
    assert ask(noisy, jumping(above("noise.loss"), size=8)) == []
    assert ask(noisy, jumping(above("noise.loss"), learnt=0.9)) == []


def test_a_training_that_broke_is_not_called_short():
    record = ending(above("end.falling"))
    record.losses.append(np.nan)
    assert ask(too_short, record) == []


def test_a_level_loss_is_not_called_short():
    record = classification(0.5, falling())
    record.evaluations = []
    assert ask(too_short, record) == []


def test_two_validations_tell_of_a_training_that_has_hardly_begun():
    fall = 0.6 * limit("end.falling")
    record = classification(0.3, stairs(2.0, 1.6, 1.3, 1.0, 1.0 - fall))
    record = set_evaluations(record, [1.0, 1.0 - above("end.falling")])
    assert only(too_short, record).code == "CST111"
    assert ask(too_short, set_evaluations(record, [1.0, 1.0])) == []


def test_two_validations_tell_though_it_is_not_known_how_low_the_loss_can_go():
    record = set_head(classification(0.3, stairs(45.0, 40.0, 36.0, 33.0, 31.0)), loss="unknown")
    record.train.select([])
    assert ask(too_short, set_evaluations(record, [35.0, 34.0])) == []
    assert only(too_short, set_evaluations(record, [35.4, 31.1])).code == "CST111"


def test_a_score_that_has_levelled_off_leaves_only_a_note():
    falls = above("end.falling")
    record = ending(2 * falls, held=2 * falls)
    assert only(too_short, record).severity == "warning"
    losses = np.linspace(1.0, 0.5, 10)
    for scores, severity in (
        (np.linspace(0.80, 0.92, 10), "warning"),
        ([0.5, 0.7, 0.8, 0.85, 0.88, 0.9, 0.89, 0.9, 0.9, 0.89], "info"),
        ([0.2, 0.25] + 8 * [0.3], "warning"),  # it answers hardly anything yet
    ):
        record.evaluations = [
            Evaluation(20 * (i + 1), loss, score)
            for i, (loss, score) in enumerate(zip(losses, scores, strict=True))
        ]
        assert only(too_short, record).severity == severity


def test_a_score_near_one_leaves_nothing_to_gain_whatever_the_task():
    record = classification(losses=stairs(1.4, 1.3, 1.2, 1.0, 1.0 - above("end.falling")))
    set_head(record, loss="unknown")
    record.evaluations = [Evaluation(100, score=0.9), Evaluation(150, score=0.95)]
    assert len(ask(too_short, record)) == 1
    record.evaluations.append(Evaluation(200, score=0.96))
    assert ask(too_short, record) == []


def slow(gain):
    """A classifier that learnt little and would still gain that share of guessing."""
    step = gain * np.log(CLASSES) / 2
    record = classification(0.1, stairs(1.4, 1.36, 1.3 + step, 1.3))
    record.evaluations = []
    return record


def test_a_classifier_that_learnt_little_and_would_still_gain_was_stopped_too_early():
    assert only(too_short, slow(above("end.gain"))).code == "CST111"
    assert ask(too_short, slow(below("end.gain"))) == []
