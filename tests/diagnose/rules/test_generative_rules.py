"""Generators that make few things, or that their judge tells nothing."""

import numpy as np
import torch
from tests.diagnose.rules.records import ask, classification
from torch import nn

from castalia.diagnose.rules.case import Case
from castalia.diagnose.rules.generative_rules import (
    collapse,
    collapsed_modes,
    silenced_generator,
)
from castalia.diagnose.script import Session
from castalia.diagnose.thresholds import limit

angle = 2 * torch.pi * torch.arange(8) / 8
CENTRES = 2 * torch.stack([angle.cos(), angle.sin()], dim=1)


def ring(n, modes=8):
    return CENTRES[torch.arange(n) % modes] + 0.1 * torch.randn(n, 2)


def judged(real, made):
    """Return the record of a discriminator that was shown these rows."""
    record = classification()
    record.shown = [(False, real.numpy()), (True, made.numpy())]
    return record


def fading(share):
    """Return the record of a generator whose gradient falls to a share, evenly."""
    record = classification()
    record.final["judged"] = 1.0
    for look, left in zip(
        record.looks, np.geomspace(1, share / 10, len(record.looks)), strict=True
    ):
        look.gradients = dict.fromkeys(look.gradients, left)
    return record


def test_a_gradient_that_fades_is_told_of_a_network_that_is_judged():
    bar = limit("samples.silenced")
    assert [found.code for found in ask(silenced_generator, fading(0.1 * bar))] == ["CST502"]
    assert ask(silenced_generator, fading(100 * bar)) == []
    alone = fading(0.1 * bar)
    alone.final.clear()
    assert ask(silenced_generator, alone) == []


def test_samples_of_two_modes_out_of_eight_are_few():
    torch.manual_seed(0)
    (found,) = ask(collapsed_modes, judged(ring(200), ring(200, modes=2)))
    assert found.code == "CST501"
    covered = found.evidence[0].value
    assert abs(covered - 2 / 8) < 0.05  # the share of the modes that are made


def test_samples_of_all_modes_or_of_none_are_not():
    torch.manual_seed(0)
    assert ask(collapsed_modes, judged(ring(200), ring(200))) == []
    noise = 3 * torch.randn(200, 2)  # a bad generator is no collapsed one
    assert ask(collapsed_modes, judged(ring(200), noise)) == []


def test_samples_that_are_all_alike_are_one_thing_wherever_they_lie():
    real = np.random.default_rng(0).normal(size=(100, 20))
    made = 9 + 0.01 * np.random.default_rng(1).normal(size=(100, 20))
    assert [found.code for found in collapse(real, made)] == ["CST501"]


def play(generator, centre, saturating, steps=80):
    """Let a generator play against a discriminator, watched as a script is; return codes."""
    torch.manual_seed(0)
    session = Session()
    session.start()
    critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
    makes = torch.optim.Adam(generator.parameters(), 1e-3)
    judges = torch.optim.Adam(critic.parameters(), 0.1 if saturating else 0.01)
    bce, n = nn.BCEWithLogitsLoss(), 64
    for _ in range(steps):
        fake = generator(torch.randn(n, 4))
        real = critic(ring(n) + centre), critic(fake.detach())
        loss = bce(real[0], torch.ones(n, 1)) + bce(real[1], torch.zeros(n, 1))
        judges.zero_grad()
        loss.backward()
        judges.step()
        answer = critic(fake)
        own = -bce(answer, torch.zeros(n, 1)) if saturating else bce(answer, torch.ones(n, 1))
        makes.zero_grad()
        own.backward()
        makes.step()
    found = session.diagnosis()
    records = [one.doctor.record for one in session._live]
    session.stop()
    return found.codes, records


def test_a_judge_that_is_sure_silences_a_generator_with_the_saturating_loss():
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    codes, records = play(generator, 8.0, saturating=True, steps=200)
    assert codes[0] == "CST502"
    assert "CST209" not in codes  # ones and zeros are the labels of a game
    assert [Case(one).adversarial for one in records] == [True, True]


def test_with_the_other_loss_it_hears_the_judge():
    generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    codes, records = play(generator, 0.0, saturating=False)
    assert not {"CST501", "CST502", "CST201"} & set(codes)
    assert all(ask(silenced_generator, one) == [] for one in records)
    critic = records[1]
    made = [rows for made, rows in critic.shown if made]
    real = [rows for made, rows in critic.shown if not made]
    assert made
    assert real
    assert np.abs(np.linalg.norm(np.concatenate(real), axis=1) - 2).max() < 0.7
