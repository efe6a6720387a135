"""The parts of the examination: reading rows, naming tasks, copying, severity."""

import copy

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset

from castalia.diagnose.examination.baseline_errors import baselines
from castalia.diagnose.examination.examination_subject import Subject
from castalia.diagnose.examination.examiner import _milder
from castalia.diagnose.examination.module_copies import copied, peak_rates
from castalia.diagnose.examination.probes.generalisation_probe import calibration_error
from castalia.diagnose.examination.row_reader import Unreadable, read_rows
from castalia.diagnose.finding_record import finding


def found(code, severity="warning", confidence=0.8):
    return finding(code, severity, confidence, "", "")


# ---- reading ----


def test_a_large_set_is_sampled_and_its_row_numbers_are_kept():
    X = torch.arange(5000.0)[:, None]
    rows = read_rows((X, X), "train", 0)
    assert len(rows) == 2000
    assert np.array_equal(rows.x[:, 0].numpy(), rows.index)
    assert not rows.complete
    assert len(rows.all_x) == 5000


def test_wide_rows_are_sampled_to_a_bounded_memory():
    X = torch.zeros(1, 3, 400, 400).expand(600, -1, -1, -1)
    assert len(read_rows((X, torch.zeros(600)), "train", 0)) == 64


def test_a_set_without_targets_is_its_own_target():
    rows = read_rows(TensorDataset(torch.ones(4, 2)), "train", 0)
    assert torch.equal(rows.x, rows.y)


@pytest.mark.parametrize(
    "data, said",
    [
        ((torch.zeros(3, 2), torch.zeros(4)), "3 inputs but 4 targets"),
        (TensorDataset(*[torch.zeros(3)] * 3), "3 tensors a row"),
        ((torch.zeros(0, 2), torch.zeros(0)), "no rows"),
        ((np.array([["a"]]), [1]), "cannot become tensors"),
        (7, "got int"),
    ],
    ids=["lengths", "three", "empty", "strings", "number"],
)
def test_data_that_cannot_be_read_say_why(data, said):
    with pytest.raises(Unreadable, match=said):
        read_rows(data, "train", 0)


# ---- tasks ----

X = torch.randn(20, 5)
TOKENS = torch.randint(0, 9, (20, 7))
ZERO_ONE = torch.arange(20) % 2


@pytest.mark.parametrize(
    "loss, x, y, outputs, task",
    [
        (nn.CrossEntropyLoss(), X, ZERO_ONE, 3, "multiclass"),
        (lambda o, y: F.nll_loss(o.log_softmax(1), y), X, ZERO_ONE, 2, "multiclass"),
        (nn.BCEWithLogitsLoss(), X, ZERO_ONE[:, None].float(), 1, "binary"),
        (nn.BCEWithLogitsLoss(), X, torch.ones(20, 3), 3, "multilabel"),
        (nn.MSELoss(), X, torch.randn(20, 2), 2, "regression"),
        (lambda o, y: (o - y).abs().mean(), X, torch.randn(20, 1), 1, "regression"),
        (nn.MSELoss(), X, F.one_hot(ZERO_ONE).float(), 2, "multiclass"),
        (nn.MSELoss(), X, X.clone(), 5, "vae"),
    ],
    ids=["ce", "nll", "bce", "labels", "mse", "own", "one-hot", "self"],
)
def test_the_task_is_read_from_loss_and_targets(loss, x, y, outputs, task):
    subject = Subject(nn.Linear(5, outputs), loss, read_rows((x, y), "train", 0), None)
    assert subject.problem is None
    assert subject.task == task


def test_language_models_and_taggers_are_told_apart():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 4), nn.Linear(4, 9)

        def forward(self, x):
            return self.head(self.embed(x)).transpose(1, 2)

    def task(x, y):
        return Subject(Net(), nn.CrossEntropyLoss(), read_rows((x, y), "train", 0), None).task

    assert task(TOKENS[:, :-1], TOKENS[:, 1:]) == "lm"
    assert task(TOKENS, (TOKENS > 4).long()) == "seq"


def test_kinds_of_numbers_that_do_not_fit_are_changed():
    rows = read_rows((np.arange(40).reshape(20, 2), np.arange(20)[:, None] % 2), "train", 0)
    subject = Subject(nn.Linear(2, 1), nn.BCEWithLogitsLoss(), rows, None)
    assert subject.problem is None
    assert subject.x.dtype == subject.y.dtype == torch.float32


# ---- copies ----


def test_a_copied_optimizer_trains_the_copy_with_the_user_s_settings():
    net = nn.Linear(2, 1)
    groups = [{"params": [net.weight], "lr": 0.5}, {"params": [net.bias]}]
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    before = copy.deepcopy(net.state_dict())
    other = copied(net, nn.MSELoss(), optimizer)
    other.loss(torch.ones(3, 2), torch.full((3, 1), 9.0)).backward()
    other.optimizer.step()
    assert [g["lr"] for g in other.optimizer.param_groups] == [0.5, 0.1]
    assert other.optimizer.param_groups[0]["momentum"] == 0.9
    assert not torch.equal(other.net.weight, net.weight)
    assert all(torch.equal(net.state_dict()[name], before[name]) for name in before)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_weight_normalised_modules_are_copied_after_they_ran():
    net = torch.nn.utils.weight_norm(nn.Linear(2, 1))
    net(torch.ones(1, 2))
    other = copied(net, nn.MSELoss(), None)
    with torch.no_grad():
        other.net.weight_g *= 2
    assert torch.allclose(
        other.net(torch.ones(1, 2)) - net.bias, 2 * (net(torch.ones(1, 2)) - net.bias)
    )


def test_a_wrapped_module_is_taken_out():
    wrapped = nn.DataParallel(nn.Linear(5, 2))
    rows = read_rows((X, ZERO_ONE), "train", 0)
    assert isinstance(Subject(wrapped, nn.CrossEntropyLoss(), rows, None).module, nn.Linear)


# ---- what does no harm ----


def test_what_usually_does_harm_is_only_worth_a_word_if_all_is_well():
    assert [_milder(found(code)).severity for code in ("CST201", "CST206")] == ["info", "warning"]


# ---- calibration ----


def test_the_calibration_error_of_a_calibrated_network_is_small():
    source = np.random.default_rng(0)
    confidence = source.uniform(0.5, 1.0, 20_000)
    hit = source.random(20_000) < confidence
    assert calibration_error(confidence, hit) < 0.01
    assert calibration_error(np.full(500, 0.9), np.arange(500) % 2 == 0) == pytest.approx(0.4)


def test_an_attempt_that_the_clock_ended_while_it_was_learning_tells_nothing():
    from castalia.diagnose.examination.effort import TINY_STEPS
    from castalia.diagnose.examination.probes.tiny_fit_probe import Fit

    half = TINY_STEPS // 2
    learning, stuck = (Fit(0.5, 1.0, "accuracy", half, 1.0, last) for last in (0.2, 0.9))
    assert learning.unfinished
    assert not stuck.unfinished
    assert not Fit(0.5, 1.0, "accuracy", TINY_STEPS, 1.0, 0.2).unfinished


def test_trials_begin_at_the_highest_rate_of_a_schedule_whoever_wrote_it():
    net = nn.Linear(2, 1)
    by_hand = torch.optim.Adam(net.parameters(), lr=0.01)
    by_hand.param_groups[0]["lr"] = 1e-9
    assert peak_rates(by_hand) == [0.01]
    one_cycle = torch.optim.SGD(net.parameters(), lr=0.004)
    schedule = torch.optim.lr_scheduler.OneCycleLR(one_cycle, max_lr=0.1, total_steps=10)
    for _ in range(9):
        one_cycle.step()
        schedule.step()
    assert peak_rates(one_cycle) == [0.1]
    two = [{"params": [net.weight], "lr": 1e-5}, {"params": [net.bias]}]
    assert peak_rates(torch.optim.SGD(two, lr=0.1)) == [1e-5, 0.1]


def test_an_autoencoder_is_not_held_against_a_linear_model_that_copies():
    x = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    narrow = nn.Sequential(nn.Linear(6, 2), nn.Linear(2, 6))
    noisy = x + 0.3 * torch.randn(200, 6)
    for inputs, targets, compared in ((x, x, False), (noisy, x, False), (x, x.roll(1, 1), True)):
        parts = [
            read_rows((inputs[i], targets[i]), "train", 0) for i in (slice(150), slice(150, 200))
        ]
        subject = Subject(narrow, nn.MSELoss(), *parts, task="regression", seconds=5)
        assert (baselines(subject) is not None) == compared
