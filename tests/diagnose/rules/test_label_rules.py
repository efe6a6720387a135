"""CST204, CST205 and CST209 on planted labels."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    BATCHES,
    CLASSES,
    ROWS,
    ask,
    batches,
    classification,
    logits,
    only,
    poor,
    regression,
    set_head,
    set_rows,
    standard,
)

from castalia.diagnose.record import Activation, Layer, Rows
from castalia.diagnose.rules.label_rules import imbalanced, mislabelled, ordered
from castalia.diagnose.thresholds import limit

BAR = 2 * limit("classes.rare")  # rarest class over an even share


def rare(relative, recognised=False, **head):
    """Two classes in 4,000 rows, the second with a share of half of `relative`."""
    n, record = 4000, classification()
    labels = (np.arange(n) < round(n * relative / 2)).astype(int)
    labels = np.random.default_rng(0).permutation(labels)
    outputs = logits(labels if recognised else np.zeros(n, int), 0.01, 2)
    record.train = batches(standard(n, 5), outputs, labels)
    record.validation = batches(standard(n, 5, 1), outputs, labels)
    return set_head(record, outputs=(ROWS, 2), **head)


def test_a_rare_class_that_is_given_up_is_found():
    found = only(imbalanced, rare(0.98 * BAR))
    assert (found.code, found.severity, found.where) == ("CST204", "warning", None)
    evidence = found.evidence[0]
    assert evidence.value == pytest.approx(0.98 * BAR, rel=1e-2)
    assert not evidence.above
    assert evidence.threshold == BAR
    assert found.remedy.changes == {"class_weight": "balanced"}
    assert "Weight" in found.remedy.text
    assert "hardly ever recognised" in found.summary


def test_a_rare_class_that_is_recognised_is_only_worth_knowing():
    assert only(imbalanced, rare(0.98 * BAR, recognised=True)).severity == "info"


def test_a_class_that_is_not_quite_rare_or_is_weighted_is_left_alone():
    assert ask(imbalanced, rare(1.02 * BAR)) == []
    assert ask(imbalanced, rare(0.98 * BAR, weighted=True)) == []


def test_tokens_of_a_language_model_may_be_rare():
    record = rare(0.98 * BAR)
    record.task = "lm"
    assert ask(imbalanced, record) == []


def test_letters_whose_losses_are_added_up_one_after_another_may_be_rare():
    relative = 0.9 * BAR
    assert only(imbalanced, rare(relative)).code == "CST204"
    assert ask(imbalanced, rare(relative, others=("nll",) * 8)) == []


def disagreeing(share, unsure=False):
    """Validation rows of which a share disagrees with its label, at the surest or the least."""
    record, n = classification(), 1000
    given = np.arange(n) % CLASSES
    outputs = logits(given, 0.02)
    wrong = np.arange(n) * share % 1 < share  # spread evenly
    if unsure:
        outputs[wrong] = logits(given[wrong], 0.4)
        outputs[3::4] = logits(given[3::4], 0.4)
    labels = np.where(wrong, (given + 1) % CLASSES, given)
    record.validation = batches(standard(n, 5, 1), outputs, labels)
    return record


def test_sure_answers_that_disagree_with_the_labels_are_label_noise():
    share = limit("labels.noise") + 0.03
    found = only(mislabelled, disagreeing(share))
    assert (found.code, found.severity, found.where) == ("CST205", "warning", None)
    errors, ratio = found.evidence
    assert errors.value == pytest.approx(share, abs=0.02)
    assert errors.threshold == limit("labels.noise")
    assert ratio.value == pytest.approx(1.0, rel=0.2)
    assert ratio.threshold == limit("labels.noise_ratio")
    assert "Inspect" in found.remedy.text


def test_answers_that_sum_to_one_over_the_batch_say_nothing_about_labels():
    record = disagreeing(limit("labels.noise") + 0.03)
    for look in record.looks:
        look.softmaxes = [Activation("log_softmax", (ROWS, CLASSES), 0)]
    assert ask(mislabelled, record) == []


def test_a_few_errors_or_errors_among_unsure_answers_are_no_label_noise():
    assert ask(mislabelled, disagreeing(limit("labels.noise") - 0.03)) == []
    assert ask(mislabelled, disagreeing(limit("labels.noise") + 0.03, unsure=True)) == []


def test_the_labels_of_a_network_that_learnt_nothing_are_not_judged():
    record = disagreeing(0.2)
    record.train = poor().train
    assert ask(mislabelled, record) == []


def in_batches(statistic, inputs=True):
    """Targets whose batch means lie at ±s: s² = T / (n - T) gives the statistic T exactly.

    A column of the inputs differs as they do, or none.
    """
    n, record = ROWS, regression()
    s = np.sqrt(statistic / (n - statistic))
    signs = np.repeat((-1.0) ** np.arange(BATCHES), n)
    within = np.tile(standard(n, 1)[:, 0], BATCHES)
    x = np.concatenate(record.train.inputs)
    x[:, 0] += 5 * signs * inputs
    return set_rows(record, inputs=x, targets=(within + s * signs)[:, None])


def test_batches_whose_targets_differ_are_not_shuffled():
    bar = limit("order.between")
    found = only(ordered, in_batches(1.01 * bar))
    assert (found.code, found.severity, found.where) == ("CST209", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(1.01 * bar)
    assert evidence.above
    assert evidence.threshold == bar
    assert "shuffle=True" in found.remedy.text
    assert ask(ordered, in_batches(0.99 * bar)) == []


def test_targets_that_drift_over_rows_in_no_order_are_made_in_training():
    assert ask(ordered, in_batches(3 * limit("order.between"), inputs=False)) == []


def test_batches_of_one_class_each_are_an_error():
    labels = np.repeat(np.arange(BATCHES) % CLASSES, ROWS)
    found = only(ordered, set_rows(classification(), targets=labels))
    assert found.severity == "error"
    assert "labels" in found.summary
    assert found.evidence[0].value == pytest.approx(ROWS)


def test_shuffled_labels_and_few_batches_are_left_alone():
    labels = np.random.default_rng(0).integers(0, CLASSES, BATCHES * ROWS)
    assert ask(ordered, set_rows(classification(), targets=labels)) == []
    few = set_rows(classification(), targets=np.repeat(np.arange(BATCHES) % CLASSES, ROWS))
    few.train.select([0, 1, 2])
    assert ask(ordered, few) == []


def test_answers_that_grow_righter_with_sureness_are_a_hard_task_not_label_noise():
    """A bent coin: of the surer half 28 % are wrong, of the other 42 %."""
    record, n = classification(), 1000
    given = np.arange(n) % 2
    surer = np.arange(n) < n // 2
    outputs = np.where(surer[:, None], logits(given, 0.33, 2), logits(given, 0.55, 2))
    wrong = np.random.default_rng(0).random(n) < np.where(surer, 0.28, 0.42)
    record.validation = batches(standard(n, 5, 1), outputs, np.where(wrong, 1 - given, given))
    set_rows(record, outputs=logits(np.arange(320) % 2, 0.4, 2), targets=np.arange(320) % 2)
    assert ask(mislabelled, record) == []


def test_a_rare_class_that_is_learnt_late_is_not_given_up():
    record = rare(0.98 * BAR, recognised=True)
    for rows in (record.train, record.validation):
        for i in range(BATCHES // 2):  # the first half of the training knew one class only
            rows.outputs[i] = logits(np.zeros(len(rows.outputs[i]), int), 0.01, 2)
    assert only(imbalanced, record).severity == "info"


def masks(share, found):
    """Masks of sixty-four pixels with a share of ones, of which the network finds a share."""
    draw = np.random.default_rng(0)
    y = (draw.random((BATCHES * ROWS, 64)) < share).astype(np.float32)
    outputs = np.where((y == 1) & (draw.random(y.shape) < found), 3.0, -3.0)
    record = set_rows(classification(), outputs=outputs, targets=y)
    return set_head(record, loss="bce_logits", outputs=(ROWS, 64), targets=(ROWS, 64))


def test_rare_pixels_that_are_never_found_are_an_imbalance():
    found = only(imbalanced, masks(0.02, 0.0))
    assert (found.code, found.severity) == ("CST204", "warning")
    assert found.evidence[0].value == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("share, found", [(0.02, 0.8), (0.3, 0.0)])
def test_pixels_that_are_found_or_not_rare_are_no_imbalance(share, found):
    assert ask(imbalanced, masks(share, found)) == []


def worse_in_training(share, again=True, dropped=False):
    """A share of the training labels, four batches of rows that come twice, is answered wrongly."""
    record, n = classification(), BATCHES * ROWS
    labels = np.arange(n) % CLASSES
    answers = np.where(np.arange(n) % 20 < 20 * share, (labels + 1) % CLASSES, labels)
    x = np.tile(standard(n // 2, 5), (2, 1)) if again else standard(n, 5)
    record.dropped = dropped
    return set_rows(record, inputs=x, outputs=logits(answers, 0.3), targets=labels)


def test_training_rows_answered_worse_than_others_are_mislabelled():
    found = only(mislabelled, worse_in_training(0.3))
    assert (found.code, found.severity) == ("CST205", "warning")
    assert found.evidence[0].value == pytest.approx(0.3)


def test_rows_made_harder_in_training_are_not_mislabelled():
    assert ask(mislabelled, worse_in_training(0.05)) == []
    assert ask(mislabelled, worse_in_training(0.3, again=False)) == []  # altered on the way
    assert ask(mislabelled, worse_in_training(0.3, dropped=True)) == []
    normalised = worse_in_training(0.3)
    normalised.layers.append(Layer("1", "BatchNorm1d"))
    assert ask(mislabelled, normalised) == []
    rarer = worse_in_training(0.3)
    rarer.validation.targets = [np.zeros_like(t) for t in rarer.validation.targets]
    rarer.validation.outputs = [logits(t, 0.3) for t in rarer.validation.targets]
    assert ask(mislabelled, rarer) == []  # other classes


def test_real_and_made_up_rows_that_one_step_adds_up_are_in_no_order():
    record = set_head(classification(), loss="bce_logits")
    record.train.targets = [np.full(40, float(i % 2)) for i, _ in enumerate(record.train.steps)]
    assert only(ordered, record).code == "CST209"
    for look in record.looks:
        look.passes = 2
    assert ask(ordered, record) == []


def test_what_an_agent_learns_from_need_not_be_shuffled():
    record = set_head(classification(), loss="bce_logits")
    record.train.targets = [np.full(40, float(i % 2)) for i, _ in enumerate(record.train.steps)]
    record.asides = 2
    assert ask(ordered, record) == []


def test_numbers_that_an_agent_reckons_with_are_not_in_order_or_out_of_it():
    record = regression()
    drift = np.linspace(0, 9, len(record.train.steps))
    record.train.targets = [y + d for y, d in zip(record.train.targets, drift, strict=True)]
    rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    apart = [rows + d for d in drift]
    record.train.inputs = apart
    assert only(ordered, record).code == "CST209"
    record.evaluations = []
    assert ask(ordered, record) == []  # nothing comes again, and nobody validates
    record.evaluations = regression().evaluations
    record.train.inputs = [rows + (i % 2) for i, _ in enumerate(drift)]
    assert ask(ordered, record) == []  # rows come again with other targets


@pytest.mark.parametrize(("soon", "codes"), [(False, ["CST209"]), (True, [])])
def test_rows_that_come_again_at_once_and_never_later_are_those_of_an_agent(soon, codes):
    record = regression()
    drift = np.tile([0.0, 3.0, 6.0, 9.0], 2)  # each rollout comes twice
    drift = np.sort(drift) if soon else drift
    rows = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    record.train.inputs = [rows + d for d in drift]
    record.train.targets = [record.train.targets[0] + d for d in drift]
    record.train.steps = [40 * (i // 2) + i % 2 for i in range(len(drift))]
    assert [one.code for one in ask(ordered, record)] == codes


def spoilt(several, usual=0.9):
    """Twelve batches of 32 rows in three classes, of which several are answered by chance."""
    rng, record = np.random.default_rng(0), classification()
    labels = np.concatenate([rng.permutation(np.arange(32) % 3) for _ in range(12)])
    answers = np.where(rng.random(len(labels)) < usual, labels, (labels + 1) % 3)
    answers[: 32 * several] = (labels[: 32 * several] + 1) % 3
    inputs, outputs = standard(len(labels), 5), logits(answers, 0.01, 3)
    record.train = Rows()
    for i in range(12):
        part = slice(32 * i, 32 * i + 32)
        record.train.add(188 + i, inputs[part], outputs[part], labels[part])
    return set_head(record, outputs=(32, 3))


def test_a_few_batches_that_nothing_answers_have_labels_of_other_rows():
    found = only(mislabelled, spoilt(2))
    assert (found.code, found.severity) == ("CST205", "warning")
    assert "Of 12 batches late in training, 2" in found.summary
    for record in (spoilt(1), spoilt(5), spoilt(2, usual=0.6)):
        assert ask(mislabelled, record) == []
