"""CST503 to CST505 on planted codes, tokens and changes."""

import numpy as np
import pytest
from tests.diagnose.rules.records import (
    above,
    ask,
    batches,
    below,
    classification,
    only,
    regression,
    set_head,
    set_rows,
)

from castalia.diagnose.rules.sequence_rules import (
    collapsed_code,
    learns_empty_steps,
    learns_padding,
    sees_the_future,
)
from castalia.diagnose.thresholds import limit

DIMENSIONS, LENGTH, N, PAD = 100, 20, 320, 0


def coded(silent, nats=None):
    """A code of which a share of dimensions has that divergence, the others half a nat."""
    nats = below("latent.silent") if nats is None else nats
    divergence = np.where(np.arange(DIMENSIONS) < round(silent * DIMENSIONS), nats, 0.5)
    record = regression()
    record.task = "vae"
    mean = np.tile(np.sqrt(2 * divergence), (16, 1))
    record.latent = (mean, np.zeros_like(mean))
    return record


def test_a_code_most_of_whose_dimensions_say_nothing_has_collapsed():
    found = only(collapsed_code, coded(limit("latent.share") + 0.01))
    assert (found.code, found.severity, found.where) == ("CST503", "error", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx(limit("latent.share") + 0.01, abs=0.006)
    assert evidence.threshold == limit("latent.share")
    assert "free bits" in found.remedy.text


def test_a_code_that_says_a_little_more_has_not_collapsed():
    assert ask(collapsed_code, coded(limit("latent.share") - 0.01)) == []
    assert ask(collapsed_code, coded(1.0, above("latent.silent"))) == []


def test_a_network_that_is_no_autoencoder_has_no_code():
    record = coded(1.0)
    record.task = "regression"
    assert ask(collapsed_code, record) == []


def padded(share, dtype=int, start=0):
    """Rows of random tokens 1 to 9 whose ends are filled up, by that share in the mean."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 10, (N, LENGTH))
    lengths = LENGTH - np.arange(N) % (round(2 * share * LENGTH) + 1)
    tokens[np.arange(LENGTH) >= lengths[:, None]] = PAD
    return tokens.astype(dtype)


def translating(tokens, **head):
    record = set_rows(classification(), inputs=tokens, targets=tokens)
    record.train.outputs = [None] * len(record.train)
    record.input_shape = (LENGTH,)
    return set_head(record, outputs=(40, 10, LENGTH), **head)


def test_padding_that_counts_in_the_loss_is_learnt():
    tokens = padded(0.25)
    found = only(learns_padding, translating(tokens))
    assert (found.code, found.severity, found.where) == ("CST504", "warning", None)
    (evidence,) = found.evidence
    assert evidence.value == pytest.approx((tokens == PAD).mean())
    assert evidence.threshold == limit("padding.share")
    assert f"ignore_index={PAD}" in found.remedy.text


def test_much_padding_is_an_error():
    assert only(learns_padding, translating(padded(0.45))).severity == "error"


def test_padding_that_is_ignored_or_masked_or_rare_is_left_alone():
    tokens = padded(0.25)
    assert ask(learns_padding, translating(tokens, ignore_index=PAD)) == []
    assert ask(learns_padding, translating(tokens, reduction="none")) == []
    assert ask(learns_padding, translating(padded(0.6 * limit("padding.share")))) == []


def test_a_common_last_word_that_others_follow_elsewhere_is_no_padding():
    tokens = padded(0.25)
    tokens[:, LENGTH // 3] = PAD
    assert ask(learns_padding, translating(tokens)) == []


def test_padded_texts_with_one_label_each_do_not_learn_padding():
    record = set_rows(classification(), inputs=padded(0.4))
    assert ask(learns_padding, record) == []


def filled(share):
    """Rows of two numbers a step, filled up with zeros, and a number to predict at each step."""
    steps = padded(share) != PAD
    x = np.random.default_rng(0).standard_normal((N, LENGTH, 2)) * steps[..., None]
    record = set_rows(regression(), inputs=x.reshape(N, -1), targets=x.sum(axis=2))
    record.input_shape = (LENGTH, 2)
    return record, 1 - steps.mean()


def test_empty_steps_that_count_in_the_loss_are_learnt():
    record, share = filled(0.3)
    found = only(learns_empty_steps, record)
    assert (found.code, found.severity) == ("CST504", "warning")
    assert found.evidence[0].value == pytest.approx(share)
    assert found.evidence[0].threshold == limit("padding.share")
    assert "mask" in found.remedy.text


def test_few_empty_steps_or_a_masked_loss_are_left_alone():
    assert ask(learns_empty_steps, filled(0.6 * limit("padding.share"))[0]) == []
    assert ask(learns_empty_steps, set_head(filled(0.3)[0], reduction="none")) == []


def leaking():
    record = classification()
    record.final["future"] = above("future.change")
    return record


def test_outputs_that_change_with_the_future_see_it():
    found = only(sees_the_future, leaking())
    assert (found.code, found.severity, found.where) == ("CST505", "error", None)
    (evidence,) = found.evidence
    assert evidence.value == above("future.change")
    assert evidence.threshold == limit("future.change")
    assert "triu" in found.remedy.text


def test_rounding_and_a_future_that_was_not_tried_are_no_leak():
    record = classification()
    assert ask(sees_the_future, record) == []
    record.final["future"] = below("future.change")
    assert ask(sees_the_future, record) == []


def copying(task, by):
    """Tokens whose targets are the tokens so many places later."""
    record, tokens = classification(), np.random.default_rng(0).integers(0, 9, (320, 7))
    record.task = task
    record.train = batches(tokens[:, :-1], None, tokens[:, by : by + 6])
    return record


def test_a_language_model_whose_targets_are_its_inputs_is_told_to_shift_them():
    found = only(sees_the_future, copying("lm", 0))
    assert (found.code, found.severity) == ("CST505", "error")
    assert (found.evidence[0].value, found.evidence[0].threshold) == (1.0, limit("future.copied"))
    assert "tokens[:, 1:]" in found.remedy.text
    assert ask(sees_the_future, copying("lm", 1)) == []
    assert ask(sees_the_future, copying(None, 0)) == []  # an autoencoder of tokens may copy
