"""Between samples the doctor keeps losses and nothing else; whatever is unusual rouses it."""

from __future__ import annotations

import gc
import math
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor import watch
from castalia.diagnose.monitor.graph_summary import read
from castalia.diagnose.monitor.loss_log import LossLog


@pytest.fixture
def training():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


def step(training, scale=1.0):
    net, optimizer = training
    optimizer.zero_grad()
    loss = scale * F.cross_entropy(net(torch.randn(10, 4)), torch.arange(10) % 3)
    loss.backward()
    optimizer.step()
    return loss.item()


def quiet(training):
    """Return a doctor whose training is between two samples, and the losses so far."""
    doctor = watch(*training)
    losses = [step(training) for _ in range(24)]
    assert doctor._step.quiet
    return doctor, losses


def test_a_quiet_training_has_no_hook_on_its_optimizer_and_loses_no_loss(training):
    doctor, losses = quiet(training)
    optimizer = training[1]
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks
    losses += [step(training) for _ in range(40)]
    doctor.close()
    assert doctor.record.losses == losses
    assert doctor.record.trained_in_training_mode == 64
    assert [look.step for look in doctor.record.looks] == [0, 1, 2, 3, 5, 8, 12, 18, 27, 41, 62]
    assert all(look.updates and look.stale is False for look in doctor.record.looks[1:])


def test_hooks_of_others_stand_beside_those_that_come_and_go(training):
    doctor = watch(*training)
    called = []
    for _ in range(2):
        training[1].register_step_post_hook(lambda *_: called.append(len(called)))
    losses = [step(training) for _ in range(64)]
    doctor.close()
    assert len(called) == 128
    assert doctor.record.losses == losses
    assert len(training[1]._optimizer_step_post_hooks) == 2


def test_a_loss_that_breaks_in_between_is_looked_at_at_once(training):
    doctor, losses = quiet(training)
    broken = step(training, scale=math.inf)
    doctor.close()
    look = doctor.record.looks[-1]
    assert look.step == 24
    assert math.isnan(look.loss) == math.isnan(broken)
    assert look.gradients
    assert look.updates


def test_a_validation_in_between_is_seen_and_ends_with_the_next_step(training):
    doctor, losses = quiet(training)
    with torch.no_grad():
        training[0](torch.randn(5, 4))
    assert doctor.record.silent_in_training_mode == 1
    losses += [step(training) for _ in range(2)]
    assert doctor._step.quiet
    assert not doctor._validating._modes
    assert doctor.record.losses == losses


def test_a_call_without_gradients_before_the_optimizer_makes_no_step_of_its_own(training):
    doctor, losses = quiet(training)
    net, optimizer = training
    optimizer.zero_grad()
    loss = net(torch.randn(10, 4)).square().mean()
    loss.backward()
    with torch.no_grad():
        net(torch.randn(5, 4))
    optimizer.step()
    assert doctor.record.losses == [*losses, loss.item()]


def test_steps_of_many_passes_are_never_quiet(training):
    doctor = watch(*training)
    net, optimizer = training
    for _ in range(24):
        optimizer.zero_grad()
        for _ in range(2):
            net(torch.randn(10, 4)).square().mean().backward()
        optimizer.step()
    assert doctor.record.steps == 24
    assert not doctor._step.quiet


def test_what_is_told_after_every_step_is_told_of_that_step(training):
    doctor = watch(*training)
    for _ in range(24):
        loss = step(training)
        doctor.log(loss=loss + 1)
        assert doctor.record.losses[-1] == loss  # it was seen, and what is seen counts
    assert doctor.record.steps == 24


def test_a_loss_told_as_a_tensor_waits_to_be_read():
    losses = LossLog(values := [math.nan])
    losses.complete(torch.tensor([1.0, 3.0]))
    assert math.isnan(values[0])
    losses.read()
    assert values == [2.0]


class Marked(torch.autograd.Function):
    """The identity, which keeps something in the graph."""

    @staticmethod
    def forward(ctx, x, mark):
        ctx.mark = mark
        return x.clone()


def test_a_graph_that_was_read_dies_with_its_loss(training):
    net, _ = training
    mark = nn.Identity()
    loss = Marked.apply(net(torch.randn(10, 4)), mark).sum()
    kept = weakref.ref(mark)
    gc.disable()
    try:
        read(loss, {id(p): name for name, p in net.named_parameters()})
        del mark, loss
        assert kept() is None
    finally:
        gc.enable()
