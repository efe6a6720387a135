"""What is kept of what passes by: little, bounded, and right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from castalia.diagnose import watch
from castalia.diagnose.monitor.row_keeper import (
    MOST_BATCHES,
    MOST_COLUMNS,
    MOST_ROWS,
    RowKeeper,
    inputs_of,
    labels_of,
    outputs_of,
)
from castalia.diagnose.monitor.step_schedule import StepSchedule
from castalia.diagnose.monitor.validation_log import ValidationLog
from castalia.diagnose.record import Record, Rows


def test_rows_of_inputs_are_the_same_columns_whatever_the_layout():
    x = torch.randn(200, 3, 40, 40)
    flat = x[:MOST_ROWS].flatten(1)[:, :: -(-4800 // MOST_COLUMNS)].numpy()
    np.testing.assert_array_equal(inputs_of(x), flat)
    np.testing.assert_array_equal(inputs_of(x.to(memory_format=torch.channels_last)), flat)


@pytest.mark.parametrize(
    "odd",
    [
        torch.eye(3).to_sparse(),
        torch.ones(()),
        torch.ones(2, 2, device="meta"),
        torch.ones(2, dtype=torch.complex64),
        None,
        "words",
    ],
    ids=["sparse", "number", "meta", "complex", "none", "words"],
)
def test_what_has_no_rows_is_not_kept(odd):
    assert inputs_of(odd) is None
    assert outputs_of(odd) is None


def test_batches_without_rows_or_columns_are_no_exception():
    assert inputs_of(torch.zeros(0, 5)).shape == (0, 5)
    assert inputs_of(torch.zeros(5, 0)).shape == (5, 0)
    assert labels_of(torch.zeros(0)).shape == (0,)
    assert inputs_of(torch.zeros(5)).shape == (5, 1)


def test_huge_outputs_are_thinned_to_nothing_rather_than_copied():
    assert outputs_of(torch.zeros(1).expand(8, 1 << 23)) is None
    assert outputs_of(torch.zeros(1).expand(4096, 50_000)).shape == (5, 50_000)
    assert len(labels_of(torch.zeros(10_000))) == 4096


def test_kept_rows_are_copies():
    x = torch.zeros(3, 2)
    kept = inputs_of(x)
    x += 1
    assert not kept.any()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_rows_are_those_of_their_step_though_a_batch_is_written_over(device):
    torch.manual_seed(0)
    net, x = nn.Linear(256, 10, device=device), torch.zeros(64, 256, device=device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    doctor, given, slopes = watch(net, optimizer), [], []
    for _ in range(5):
        x.normal_()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        given.append(x.clone())
        slopes.append(net.weight.grad.clone())
    doctor.diagnosis()
    kept, looks = doctor.record.train, doctor.record.looks
    assert kept.steps == [0, 1, 2, 3, 4]
    for found, batch in zip(kept.inputs, given, strict=True):
        assert (found == batch.cpu().numpy()).all()
    for look in looks:
        assert look.gradient[:4] == pytest.approx(
            slopes[look.step].cpu().flatten()[:160:40].numpy()
        )
    doctor.close()


def test_the_first_and_the_latest_batches_stay():
    keeper = RowKeeper(record := Record())
    for step in range(1000):
        keeper.train(step, torch.ones(1, 1), None, None)
    steps = record.train.steps
    assert len(steps) <= MOST_BATCHES
    assert steps == sorted(steps)
    assert steps[:8] == list(range(8))
    assert steps[-1] == 999


def test_mean_and_spread_of_a_latent_code_are_found():
    keeper = RowKeeper(record := Record())
    mean, spread = torch.randn(4, 2), torch.randn(4, 2)
    keeper.latent((torch.randn(4, 9), mean))
    assert record.latent is None
    keeper.latent((torch.randn(4, 9), mean, spread))
    np.testing.assert_array_equal(record.latent[0], mean.numpy())
    np.testing.assert_array_equal(record.latent[1], spread.numpy())


def test_codes_of_two_rows_are_no_mean_and_spread():
    keeper, x, layers = RowKeeper(record := Record()), torch.randn(4, 3), nn.ModuleList()
    layers.extend(nn.Linear(3, 2) for _ in range(2))
    keeper.latent((x, layers[0](x), layers[0](-x)))
    keeper.latent((x, layers[0](x).tanh(), layers[0](-x).tanh()))
    assert record.latent is None
    keeper.latent((x, layers[0](x), layers[1](x)))
    assert record.latent is not None
    keeper = RowKeeper(record := Record())
    keeper.latent((x, *nn.Linear(3, 4)(x).chunk(2, dim=1)))
    assert record.latent is not None


def test_batches_of_a_validation_are_weighed_by_their_rows():
    record = Record()
    validating = ValidationLog(record, RowKeeper(record))
    outputs = torch.eye(3)
    validating.batch(torch.tensor(1.0), outputs, torch.tensor([0, 1, 2]), None)
    validating.batch(3.0, outputs[:1], torch.tensor([1]), None)
    validating.end(None, None, True)
    (evaluation,) = record.evaluations
    assert evaluation.loss == pytest.approx(1.5)
    assert evaluation.score == pytest.approx(0.75)


def test_looks_get_rarer_and_glances_too():
    sampling = StepSchedule()
    looks = [step for step in range(5000) if sampling.look(step)]
    assert looks[:10] == [0, 1, 2, 3, 5, 8, 12, 18, 27, 41]
    assert max(np.diff(looks)) == 500
    glances = [step for step in range(5000) if sampling.glance(step)]
    assert set(np.diff([g for g in glances if 32 <= g <= 1024])) == {32}
    assert set(np.diff([g for g in glances if g >= 1024])) == {128}
    sampling.hasten()
    assert sampling.look(4999)


def test_rows_are_selected_together():
    rows = Rows()
    for step in range(3):
        rows.add(step, np.full(1, step), None, np.full(1, -step))
    rows.select([0, 2])
    assert (len(rows), rows.steps) == (2, [0, 2])
    assert [int(r[0]) for r in rows.inputs] == [0, 2]
    assert [int(r[0]) for r in rows.targets] == [0, -2]


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.classes, self.domain = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x):
        x = self.body(x).relu()
        return self.classes(x), self.domain(x)


@pytest.mark.parametrize("first", [True, False], ids=["classes_first", "classes_last"])
def test_of_several_losses_one_is_kept_at_all_steps_with_the_rows_it_is_of(first):
    torch.manual_seed(0)
    net, cost = TwoHeads(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    doctor = watch(net, optimizer)
    for _ in range(24):
        y = torch.randint(3, (16,))
        x = torch.randn(16, 4)
        x[:, 0] = y  # so that a row tells its class
        optimizer.zero_grad()
        classes, domain = net(x)
        _, other = net(torch.randn(16, 4) + 9)
        apart = cost(other, torch.ones(16).long()) + cost(domain, torch.zeros(16).long())
        ours = cost(classes, y)
        (ours + apart if first else apart + ours).backward()
        optimizer.step()
    doctor.diagnosis()
    rows = doctor.record.train
    assert len(rows) > 8
    for inputs, outputs, targets in zip(rows.inputs, rows.outputs, rows.targets, strict=True):
        assert outputs.shape == (16, 3)
        np.testing.assert_array_equal(inputs[:, 0], targets)
