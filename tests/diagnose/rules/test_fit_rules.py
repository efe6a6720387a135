"""CST401 to CST404 on planted losses, scores and rows."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    CLASSES,
    LR,
    above,
    ask,
    below,
    classification,
    logits,
    only,
    poor,
    regression,
    set_evaluations,
    set_head,
    set_rows,
    stairs,
)

from castalia.diagnose.record import Evaluation, Layer, OptimizerFacts, Weight
from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.contradictions import holds
from castalia.diagnose.rules.fit_rules import no_better, over_regularised, overfits, underfits
from castalia.diagnose.thresholds import limit


def rising(rise, train=(1.0, 0.5, 0.35)):
    """A validation loss whose end is so many times its least, while training goes on falling."""
    return set_evaluations(classification(), [1.0, 0.5, 0.5 * rise], train)


def test_a_validation_loss_that_rises_while_training_falls_is_overfitting():
    found = only(overfits, rising(above("fit.rise")))
    assert (found.code, found.severity, found.where) == ("CST401", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("fit.rise"))
    assert evidence.above
    assert evidence.threshold == limit("fit.rise")
    assert set(found.remedy.changes) == {"training__patience", "dropout", "training__weight_decay"}
    assert "Stop early" in found.remedy.text
    assert "lowest after step 133" in found.summary  # the second of three validations of 200 steps


def test_a_validation_loss_that_rises_less_or_with_training_is_no_overfitting():
    assert ask(overfits, rising(below("fit.rise"))) == []
    assert ask(overfits, rising(above("fit.rise"), train=(1.0, 0.5, 0.5))) == []


def test_what_came_after_the_weights_that_were_put_back_does_not_count():
    record = set_evaluations(classification(), [1.0, 0.6, 0.5, 0.9], [1.0, 0.5, 0.4, 0.05])
    assert len(ask(overfits, record)) == 1
    record.restored = True
    assert ask(overfits, record) == []
    early = set_evaluations(classification(), [1.0, 0.9, 0.8, 0.9], [0.9, 0.4, 0.1, 0.05])
    early.restored = True  # the best of them is far above training, too
    early.validation.select([])
    assert only(overfits, early).code == "CST401"


def test_a_validation_loss_far_above_training_is_overfitting():
    for gap, seen in ((above("fit.gap"), 1), (below("fit.gap"), 0)):
        record = set_evaluations(classification(), [1.0, 0.8, 0.8], [0.9, 0.5, 0.8 / gap])
        assert ask(overfits, record) == []  # as often right as in training
        record.validation.select([])
        found = ask(overfits, record)
        assert len(found) == seen
        assert all(f.evidence[0].value == pytest.approx(gap) for f in found)
        assert all(f.evidence[0].threshold == limit("fit.gap") for f in found)


def test_a_ratio_of_losses_that_have_no_zero_is_no_overfitting():
    record = set_evaluations(classification(), [1.0, 0.8, 0.8], [0.9, 0.5, 0.1])
    record.validation.select([])
    assert len(ask(overfits, record)) == 1
    assert ask(overfits, set_head(record, loss="unknown")) == []


def test_a_gap_between_two_trifles_is_no_overfitting():
    record = set_evaluations(classification(), [0.02, 0.01, 0.01], [0.02, 0.003, 0.001])
    assert ask(overfits, record) == []


def mistaken(share):
    """Right on every training row, wrong on a share of the validation rows."""
    record = classification()
    labels = np.arange(320) % CLASSES
    wrong = np.arange(320) * share % 1 < share  # spread evenly
    given = np.where(wrong, (labels + 1) % CLASSES, labels)
    record.validation.outputs = np.array_split(logits(given, 0.07), 8)
    return record


def test_an_accuracy_lost_on_validation_rows_is_overfitting():
    share = limit("fit.score_gap") + 0.05
    (evidence,) = only(overfits, mistaken(share)).evidence
    assert evidence.value == pytest.approx(share, abs=0.03)
    assert evidence.threshold == limit("fit.score_gap")
    assert ask(overfits, mistaken(limit("fit.score_gap") - 0.05)) == []


def test_answers_of_the_network_as_it_began_do_not_count():
    record = classification()
    for i, step in enumerate(record.train.steps):
        if step < 100:
            record.train.outputs[i] = -record.train.outputs[i]
    case = Case(record)
    assert case.accuracy(record.train, 8)[0] == 1.0
    assert case.accuracy(record.train, 8, since=0.0)[0] < 0.6
    assert case.score_gap == 0.0


def test_scores_that_were_told_stand_for_rows_that_were_not_seen():
    for gap, seen in ((above("fit.score_gap"), 1), (below("fit.score_gap"), 0)):
        record = classification()
        record.validation.select([])
        record.evaluations = [Evaluation(s, score=1 - gap) for s in (100, 150, 199)]
        assert len(ask(overfits, record)) == seen


def test_a_training_that_learnt_nothing_does_not_overfit():
    record = poor()
    record.evaluations = rising(2 * limit("fit.rise")).evaluations
    assert ask(overfits, record) == []


def held_back(learnt=0.3, p=0.0, kind="SGD", decay=0.0):
    record = classification(learnt)
    record.losses = stairs(1.4, (1 - learnt) * np.log(CLASSES))
    record.layers.append(Layer("drop", "Dropout", {"p": p}))
    record.optimizers = [OptimizerFacts(kind, LR, weight_decay=decay, first=LR)]
    return record


def test_strong_dropout_in_a_training_that_stays_poor_is_found():
    p = above("dropout.strong")
    found = only(over_regularised, held_back(p=p))
    assert (found.code, found.severity, found.where) == ("CST404", "warning", "drop")
    (evidence,) = found.evidence
    assert evidence.value == p
    assert evidence.threshold == limit("dropout.strong")
    assert found.remedy.changes == {"dropout": 0.2}
    assert found.remedy.text.endswith("→ 0.2")
    assert ask(over_regularised, held_back(p=below("dropout.strong"))) == []


@pytest.mark.parametrize(
    ("kind", "bar"),
    [("SGD", "decay.strong"), ("Adam", "decay.strong"), ("AdamW", "decay.decoupled")],
)
def test_strong_decay_in_a_training_that_stays_poor_is_found(kind, bar):
    found = only(over_regularised, held_back(kind=kind, decay=above(bar)))
    assert (found.code, found.where) == ("CST404", None)
    assert found.evidence[0].value == above(bar)
    assert found.evidence[0].threshold == limit(bar)
    assert found.remedy.changes == {"training__weight_decay": 1e-4}
    assert found.remedy.text.startswith("weight_decay=")
    assert ask(over_regularised, held_back(kind=kind, decay=below(bar))) == []


def test_strong_dropout_and_decay_of_a_training_that_learns_are_left_alone():
    record = held_back(0.95, p=above("dropout.strong"), decay=2 * limit("decay.strong"))
    assert ask(over_regularised, record) == []


def test_a_loss_that_is_mostly_penalty_is_found():
    record = held_back(0.95)
    record.losses = stairs(6.0, 5.0, 4.0, 3.0, 2.0)
    found = only(over_regularised, record)
    assert found.evidence[0].value == pytest.approx(1 - 0.05 * np.log(CLASSES) / 2.0)
    assert "penalty" in found.remedy.text


def linear(learnt):
    """Targets that a linear model gives exactly, and a network that explains a share of them."""
    record = regression(learnt, stairs(1.4, 1 - learnt))
    x, y = np.concatenate(record.train.inputs), np.concatenate(record.train.targets)
    x[:, 0] = (y[:, 0] + x[:, 1]) / np.sqrt(2)
    return set_rows(record, inputs=x)


def test_a_network_worse_than_a_linear_model_underfits():
    found = only(underfits, linear(0.7))
    assert (found.code, found.severity, found.where) == ("CST402", "warning", None)
    (evidence,) = found.evidence
    assert "linear model" in evidence.what
    assert evidence.value == pytest.approx(0.3, abs=0.01)
    assert evidence.value > evidence.threshold
    assert "capacity" in found.remedy.text


def test_a_network_as_good_as_a_linear_model_or_on_useless_inputs_does_not_underfit():
    assert ask(underfits, linear(0.94)) == []
    assert ask(underfits, regression(0.3, stairs(1.4, 0.7))) == []


def test_a_tiny_network_whose_loss_no_longer_falls_underfits():
    record = regression(0.3, stairs(1.4, 0.7))
    record.weights = [Weight("0.weight", (1, 5), True, True, "Linear", moved=True)]
    record.train.inputs = [None] * len(record.train)  # no simple model to compare with
    (evidence,) = only(underfits, record).evidence
    assert evidence.value == pytest.approx(0.3)
    assert not evidence.above


def test_a_loss_that_guessing_reaches_is_no_better():
    record = classification(1 - above("fit.guess"))
    assert ask(no_better, record) == []  # all validation rows are answered rightly
    record.validation.select([])
    record.evaluations = [Evaluation(s, score=0.9) for s in (100, 199)]
    assert ask(no_better, record) == []  # as it was logged
    record.evaluations = []
    found = only(no_better, record)
    assert (found.code, found.severity, found.where) == ("CST403", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(above("fit.guess"))
    assert evidence.above
    assert evidence.threshold == limit("fit.guess")
    assert "inputs" in found.remedy.text
    assert ask(no_better, classification(1 - below("fit.guess"))) == []


def test_a_loss_that_cannot_be_held_against_guessing_is_not():
    record = poor()
    record.train.select([])
    assert ask(no_better, record) == []


def test_a_validation_loss_that_rises_by_a_trifle_is_no_overfitting():
    least = 0.5 * limit("fit.rise_share") * np.log(CLASSES)
    record = set_evaluations(classification(), [0.3, least, 2 * least], [0.3, 0.05, 0.02])
    assert ask(overfits, record) == []


def test_a_small_network_that_beats_simple_models_may_have_met_noise():
    record = regression(0.4, stairs(1.0, 0.6))
    record.weights = [Weight("0.weight", (4, 5), True, True, "Linear")]
    assert ask(underfits, record) == []  # the columns say nothing of the targets


def test_a_penalty_that_has_won_is_seen_where_it_began():
    record = poor(stairs(9.0, 1.5, 1.5, 1.5))
    record.train.steps = [0, 3, 7, 12, 100, 150, 180, 199]
    assert only(over_regularised, record).code == "CST404"


def test_a_loss_below_zero_is_not_held_against_guessing():
    record = poor()
    record.losses[:] = [-one for one in record.losses]
    assert ask(no_better, record) == []


def test_a_weighted_loss_is_not_held_against_guessing():
    assert only(no_better, poor()).code == "CST403"
    assert ask(no_better, set_head(poor(), weighted=True)) == []


def test_sums_over_other_numbers_of_rows_are_no_gap():
    record = set_evaluations(classification(), [3.0, 2.4, 2.4], [1.0, 0.9, 0.8])
    record.validation.select([])
    assert len(ask(overfits, record)) == 1
    assert ask(overfits, set_head(record, reduction="sum")) == []
    assert ask(overfits, set_head(record, reduction="none")) == []  # added up by hand


def test_one_lucky_epoch_is_no_turn():
    values = [1.0, 0.8, 0.7, 0.5, 0.7, 0.69, 0.7]  # the fourth is luck
    record = set_evaluations(classification(), values, [0.9, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5])
    assert ask(overfits, record) == []


def test_a_validation_loss_of_nearly_right_answers_is_no_overfitting():
    record = rising(4 * above("fit.rise"))
    assert only(overfits, record).code == "CST401"
    for score, rows, seen in ((0.95, 320, 0), (0.9, 320, 1), (0.9, 40, 0)):
        record = rising(4 * above("fit.rise"))
        record.evaluations = [
            Evaluation(e.step, e.loss, score, e.train_loss) for e in record.evaluations
        ]
        record.validation.inputs = [x[: rows // 8] for x in record.validation.inputs]
        assert len(ask(overfits, record)) == seen, (score, rows)


def test_nothing_is_no_better_than_a_guess_where_all_targets_are_the_same():
    record = poor()
    record.train.targets = [np.zeros_like(t) for t in record.train.targets]
    assert ask(no_better, record) == []


def test_grey_values_cannot_cost_less_than_their_own_uncertainty():
    record = regression(0.95)
    grey = np.random.default_rng(0).uniform(0.1, 0.9, (320, 3))
    out = np.log(grey / (1 - grey))
    set_head(record, loss="bce_logits", outputs=(40, 3), targets=(40, 3))
    case = Case(set_rows(record, outputs=out, targets=grey))
    assert case.fit_loss > 0.8 * case.guess
    assert case.learnt == pytest.approx(1.0, abs=0.2)  # of late batches, the guess of all
    assert not case.poor


@pytest.mark.parametrize("loss", ["poisson", "poisson_rate", "unknown"])
def test_no_ratio_is_taken_of_losses_without_a_zero(loss):
    record = set_evaluations(classification(), [1.4, 1.3, 1.3], (1.0, 0.01, 0.01))
    record.validation.select([])
    assert only(overfits, record).code == "CST401"
    assert ask(overfits, set_head(record, loss=loss)) == []


def test_dropout_on_the_outputs_themselves_holds_back():
    found = only(over_regularised, set_head(classification(0.6), dropped=True))
    assert (found.code, found.severity, found.where) == ("CST404", "warning", "8")
    assert "in front of the last layer" in found.remedy.text
    assert ask(over_regularised, set_head(classification(0.6), dropped=False)) == []
    assert ask(over_regularised, set_head(classification(0.96), dropped=True)) == []


def test_a_loss_hardly_below_that_of_guessing_is_worth_a_remark():
    record = classification(1 - above("fit.hardly"))
    record.validation.select([])
    record.evaluations = []
    assert only(no_better, record).severity == "info"
    record = classification(1 - below("fit.hardly"))
    record.validation.select([])
    record.evaluations = []
    assert ask(no_better, record) == []


def test_a_training_that_is_short_or_still_falls_is_not_yet_held_against_guessing():
    flat, falling = [1.4] * 200, list(np.linspace(2.0, 1.4, 200))
    for losses, severity in ((flat, "warning"), (flat[:50], "info"), (falling, "info")):
        record = classification(1 - above("fit.guess"), losses)
        record.evaluations = []
        record.validation.select([])
        for x, y in zip(record.train.inputs, record.train.targets, strict=True):
            x[:, 0] = y  # else simple models would find nothing either
        assert only(no_better, record).severity == severity


def test_few_draws_of_many_classes_look_less_varied_than_they_are():
    rng = np.random.default_rng(0)
    record = classification(0.0)
    record.train.targets = [rng.integers(0, 5000, 400) for _ in record.train.steps]
    assert Case(record).guess == pytest.approx(np.log(5000), rel=0.06)


def test_the_rate_of_a_dropout_that_is_called_as_a_function_is_read():
    record = held_back(p=0.0)
    record.final["dropout"] = 0.95
    (found,) = ask(over_regularised, record)
    assert found.evidence[0].value == 0.95
    record.optimizers = []  # steps made by hand are steps
    assert [one.code for one in ask(over_regularised, record)] == ["CST404"]


def test_dropout_beyond_all_custom_is_no_symptom_of_the_steps_it_spoils():
    far, usual = (Case(held_back(p=p)) for p in (0.95, 0.7))
    assert not holds(far, "CST101", "CST404")
    assert holds(far, "CST404", "CST101")
    assert holds(far, "CST301", "CST404")
    assert holds(usual, "CST101", "CST404")
    assert not holds(usual, "CST404", "CST101")


def test_labels_of_other_rows_are_a_cause_and_labels_of_these_rows_a_symptom():
    record = poor()
    found = only(no_better, record)
    assert "Simple models" in found.summary
    assert holds(Case(record), "CST403", "CST101")
    assert not holds(Case(record), "CST101", "CST403")
    assert not holds(Case(record), "CST301", "CST403")  # simple models do not meet the loss
    labels = np.concatenate(record.train.targets)
    inputs = np.concatenate(record.train.inputs)
    inputs[:, 0] = labels
    telling = set_rows(record, inputs)
    assert not Case(telling).barren
    assert holds(Case(telling), "CST101", "CST403")
    assert holds(Case(telling), "CST301", "CST403")


def test_decay_beyond_custom_is_a_remark_while_it_learns_and_a_finding_in_a_game():
    record = held_back(0.8, decay=2 * limit("decay.strong"))
    assert only(over_regularised, record).severity == "info"
    record = held_back(0.8, decay=2 * limit("decay.far") * limit("decay.strong"))
    record.optimizers *= 2
    assert only(over_regularised, record).severity == "warning"


def test_a_loss_that_still_falls_has_not_shown_that_the_network_is_too_small():
    record = linear(0.3)
    record.losses = stairs(1.0, 0.8, 0.65, 0.5, 0.4)
    assert only(underfits, record).severity == "info"
