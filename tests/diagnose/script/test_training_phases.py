"""Validation is distinguished from training, on its own data and in units of the training loss."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

TRAIN = TensorDataset(torch.randn(8, 3), torch.arange(8) % 2)
VALID = TensorDataset(torch.randn(6, 3), torch.arange(6) % 2)
TEST = TensorDataset(torch.randn(5, 3), torch.arange(5) % 2)


class Training:
    """A small training, as scripts write it."""

    def __init__(self, loss=None):
        self.net = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.loss = loss or F.cross_entropy  # as it is now, under watch
        self.loaders = {id(d): DataLoader(d, batch_size=4) for d in (TRAIN, VALID, TEST)}

    def train(self, factor=1.0):
        self.net.train()
        for x, y in self.loaders[id(TRAIN)]:
            self.step(x, y, factor)

    def step(self, x, y, factor=1.0):
        self.optimizer.zero_grad()
        (self.loss(self.net(x), y) * factor).backward()
        self.optimizer.step()

    @torch.no_grad()
    def evaluate(self, data, loss=None):
        self.net.eval()
        for x, y in self.loaders[id(data)]:
            (loss or self.loss)(self.net(x), y)
        outputs, y = self.net(data.tensors[0]), data.tensors[1]
        right = (outputs.argmax(1) == y).float().mean().item()
        return F.cross_entropy.__wrapped__(outputs, y).item(), right


@pytest.fixture
def training(session):
    return Training()


def test_validation_is_logged_without_gradients_and_ends_with_the_next_backward(training, doctors):
    training.train()
    loss, score = training.evaluate(VALID)
    (doctor,) = doctors
    assert doctor.epochs == []
    training.train()
    assert doctor.epochs == [(pytest.approx(loss), pytest.approx(score))]
    assert [len(log["targets"]) for log in doctor.logs] == [4, 2]
    assert [log["grad"] for log in doctor.logs] == [False, False]
    assert torch.equal(doctor.logs[1]["targets"], VALID.tensors[1][4:])


def test_the_last_validation_ends_with_the_script(training, doctors, session):
    training.train()
    loss, score = training.evaluate(VALID)
    session.stop()
    assert doctors[0].epochs == [(pytest.approx(loss), pytest.approx(score))]


def test_validation_before_the_first_step_is_no_epoch(training, doctors):
    training.evaluate(VALID)
    training.train()
    assert doctors[0].epochs == []
    assert doctors[0].logs == []


def test_evaluating_on_the_training_data_is_no_validation(training, doctors):
    training.train()
    training.evaluate(TRAIN)
    loss, score = training.evaluate(VALID)
    training.train()
    assert doctors[0].epochs == [(pytest.approx(loss), pytest.approx(score))]


def test_of_validation_and_test_the_first_counts_and_a_final_test_is_left_out(
    training, doctors, session
):
    found = []
    for _ in range(2):
        training.train()
        found.append(training.evaluate(VALID))
        training.evaluate(TEST)
    training.train()
    training.evaluate(TEST)
    session.stop()
    assert doctors[0].epochs == [(pytest.approx(a), pytest.approx(b)) for a, b in found]
    assert len(doctors[0].logs) == 4


def test_validation_in_the_middle_of_an_epoch_does_not_take_its_data_for_training_data(
    training, doctors
):
    found = []
    for i, (x, y) in enumerate(training.loaders[id(TRAIN)]):
        training.net.train()
        training.step(x, y)
        if i == 0:
            found.append(training.evaluate(VALID))
    found.append(training.evaluate(VALID))
    training.train()
    assert doctors[0].epochs == [(pytest.approx(a), pytest.approx(b)) for a, b in found]


def test_without_loaders_slices_of_one_tensor_are_told_apart(training, doctors):
    x, y = torch.randn(20, 3), torch.arange(20) % 2
    for _ in range(3):
        training.step(x[:15], y[:15])
        with torch.no_grad():
            F.cross_entropy(training.net(x[:15]), y[:15])
            valid = F.cross_entropy(training.net(x[15:]), y[15:]).item()
    training.step(x[:15], y[:15])
    assert len(doctors[0].epochs) == 3
    assert doctors[0].epochs[-1][0] == pytest.approx(valid)


@pytest.mark.parametrize("before", [True, False])
def test_a_measure_of_the_training_batch_is_no_validation(training, doctors, before):
    def measure(x, y):
        with torch.no_grad():
            F.nll_loss(training.net(x).log_softmax(1), y)
            F.multi_margin_loss(training.net(x), y)

    for _ in range(2):
        for x, y in training.loaders[id(TRAIN)]:
            if before:
                measure(x, y)
            training.step(x, y)
            if not before:
                measure(x, y)
    assert doctors[0].epochs == []
    assert doctors[0].logs == []


def test_validation_that_forgot_no_grad_is_seen_in_evaluation_mode(training, doctors):
    training.train()
    training.net.eval()
    for x, y in training.loaders[id(VALID)]:
        F.cross_entropy(training.net(x), y)
    training.train()
    assert len(doctors[0].epochs) == 1
    assert [log["loss"].requires_grad for log in doctors[0].logs] == [False, False]


def test_training_in_evaluation_mode_is_training(training, doctors):
    training.train()
    training.net.eval()
    for x, y in training.loaders[id(TRAIN)]:
        training.step(x, y)
    assert doctors[0].epochs == []
    assert doctors[0].logs == []


@pytest.mark.parametrize("factor", [0.25, 65536.0])
def test_a_loss_that_is_only_scaled_is_given_unscaled(training, doctors, factor):
    training.train(factor)
    loss, _ = training.evaluate(VALID)
    training.train(factor)
    assert doctors[0].epochs[0][0] == pytest.approx(loss)


def test_a_sum_is_compared_with_a_mean(training, doctors):
    training.train()
    loss, _ = training.evaluate(VALID, lambda a, b: F.cross_entropy(a, b, reduction="sum"))
    training.train()
    assert doctors[0].epochs[0][0] == pytest.approx(loss)


def test_where_sums_are_trained_validation_is_given_as_a_sum_over_a_training_batch(
    session, doctors
):
    training = Training(nn.CrossEntropyLoss(reduction="sum"))
    training.train()
    loss, _ = training.evaluate(VALID)
    training.train()
    assert doctors[0].epochs[0][0] == pytest.approx(4 * loss)


def test_other_terms_of_the_trained_loss_are_supposed_in_proportion(session, doctors):
    training = Training()
    ratio = []

    def loss(outputs, targets):
        found = F.cross_entropy(outputs, targets)
        whole = 0.5 * found + 3.0
        ratio.append(whole.item() / found.item())
        return whole

    training.loss = loss
    training.train()
    training.loss = F.cross_entropy
    valid, _ = training.evaluate(VALID)
    training.train()
    assert doctors[0].epochs[0][0] == pytest.approx(ratio[-1] * valid)


def test_a_loss_that_was_not_trained_gives_only_the_score(session, doctors):
    training = Training(lambda a, b: F.multi_margin_loss(a, b))
    training.train()
    _, score = training.evaluate(VALID, F.cross_entropy)
    training.train()
    assert doctors[0].epochs == [(None, pytest.approx(score))]


def test_what_is_kept_holds_no_graph(training, session):
    training.train()
    training.net.eval()
    F.cross_entropy(training.net(VALID.tensors[0]), VALID.tensors[1])
    (held,) = session._phases._held
    assert not held.call.loss.requires_grad
    assert held.loss() is None
