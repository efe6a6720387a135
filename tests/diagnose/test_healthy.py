"""Healthy trainings of kinds that are easily mistaken: the doctor has nothing to say."""

import pytest
import torch
from tests.diagnose.healthy.heads import HEADS
from tests.diagnose.healthy.loops import LOOPS

KINDS = {**LOOPS, **HEADS}
# Each of these was once mistaken; the others have been right from the start.
MISTAKEN = (
    "negative_cosine_with_stopped_gradient",
    "autoencoder",
    "tied_autoencoder",
    "q_learning",
    "angular_margin",
    "normalised_over_eight_rows",
)
ANOTHER_SEED = ("one_row_at_a_time", "continued_gently")


def assert_quiet(name, seed):
    torch.manual_seed(seed)
    diagnosis = KINDS[name]()
    assert [str(found) for found in diagnosis.findings if found.severity != "info"] == []
    assert not [note for note in diagnosis.notes if "could not be watched" in note]


@pytest.mark.parametrize("name", MISTAKEN)
def test_a_healthy_training_once_mistaken_gets_neither_an_error_nor_a_warning(name):
    assert_quiet(name, 0)


@pytest.mark.parametrize("name", ANOTHER_SEED)
def test_a_lucky_first_row_or_a_trifle_of_a_loss_is_no_ground_for_a_warning(name):
    assert_quiet(name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(KINDS) - set(MISTAKEN)))
def test_a_healthy_training_gets_neither_an_error_nor_a_warning(name):
    assert_quiet(name, 0)
