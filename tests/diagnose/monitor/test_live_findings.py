"""Errors are reported while a training runs, once, and never at its cost."""

import pytest
import torch
from torch import nn

from castalia.diagnose import Diagnosis, finding, watch
from castalia.diagnose.monitor.live_findings import SHARE, LiveFindings

RESET = finding("CST112", "error", 0.97, "Never reset.", "Reset.")
MILD = finding("CST201", "warning", 0.97, "Not scaled.", "Scale.")
UNSURE = finding("CST301", "error", 0.6, "Softmax.", "Remove it.")


class Clock:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def judged(clock, *findings, cost=0.01):
    def judge():
        clock.now += cost
        return Diagnosis(findings)

    return judge


def test_an_error_is_reported_once_two_judgements_agree(clock):
    heard = []
    live = LiveFindings(heard.append, clock)
    for _ in range(5):
        clock.now += 10
        live.look(judged(clock, RESET, MILD, UNSURE), broken=False)
        assert heard == ([] if clock.now < 12 else [RESET])


def test_what_a_later_judgement_takes_back_was_never_reported(clock):
    heard = []
    live = LiveFindings(heard.append, clock)
    for findings in ([RESET], [], [RESET], []):
        clock.now += 10
        live.look(judged(clock, *findings), broken=False)
    assert heard == []


def test_a_loss_that_is_not_finite_is_judged_at_once(clock):
    heard = []
    live = LiveFindings(heard.append, clock)
    live.look(judged(clock, RESET), broken=False)  # far too early
    assert clock.now == 0
    live.look(judged(clock, RESET), broken=True)
    assert heard == [RESET]


def test_judging_takes_a_small_share_of_the_time(clock):
    live = LiveFindings(print, clock)
    spent = 0.0
    for _ in range(1000):
        clock.now += 0.1
        before = clock.now
        live.look(judged(clock, cost=0.05), broken=False)
        spent += clock.now - before
    assert 0 < spent <= SHARE * clock.now + 0.05


def test_a_listener_that_raises_is_not_called_again_and_the_training_goes_on():
    calls = []

    def listener(found):
        calls.append(found.code)
        raise RuntimeError("the chat server is down")

    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e30)
    doctor = watch(net, optimizer, on_finding=listener)
    X, y = torch.randn(16, 3), torch.randn(16, 1)
    for _ in range(40):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(X), y).backward()
        optimizer.step()
    assert len(calls) == 1  # the loss is NaN after some steps
    assert doctor.record.steps == 40
    assert any("the chat server is down" in note for note in doctor.diagnosis().notes)
