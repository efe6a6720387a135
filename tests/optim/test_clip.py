"""Clipping touches what is above the threshold and nothing else."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Callback, Training
from castalia.errors import InvalidParameter
from castalia.objectives import SquaredError
from castalia.optim import clip_by_norm, clip_by_value, gradient_norm
from castalia.testing import train_tensors


def parameters(*gradients, dtype=torch.float32):
    found = [torch.zeros(len(g), dtype=dtype, requires_grad=True) for g in gradients]
    for parameter, gradient in zip(found, gradients, strict=True):
        parameter.grad = torch.tensor(gradient, dtype=dtype)
    return found


def test_a_long_gradient_is_shrunk_to_the_threshold_in_its_own_direction():
    mine = parameters([3.0, 0.0], [4.0])
    assert clip_by_norm(mine, 2.5).item() == 5.0
    assert_close(mine[0].grad, torch.tensor([1.5, 0.0]))
    assert_close(mine[1].grad, torch.tensor([2.0]))
    assert gradient_norm(mine).item() == pytest.approx(2.5)


@pytest.mark.parametrize("threshold", [5.0, 5.0000005, 49.0])
def test_a_gradient_up_to_the_threshold_keeps_every_bit(threshold):
    mine = parameters([3.0, 1e-30], [4.0])
    assert clip_by_norm(mine, threshold).item() == 5.0
    assert [p.grad.tolist() for p in mine] == [[3.0, torch.tensor(1e-30).item()], [4.0]]


def test_above_the_threshold_it_agrees_with_torch():
    source = torch.Generator().manual_seed(0)
    mine = [torch.randn(5, 4, generator=source, dtype=torch.float64) for _ in range(3)]
    theirs = [p.clone() for p in mine]
    for p, q in zip(mine, theirs, strict=True):
        p.grad = torch.randn(5, 4, generator=source, dtype=torch.float64)
        q.grad = p.grad.clone()
    assert_close(clip_by_norm(mine, 0.7), nn.utils.clip_grad_norm_(theirs, 0.7))
    for p, q in zip(mine, theirs, strict=True):
        assert_close(p.grad, q.grad, rtol=1e-6, atol=0)


def test_parameters_without_gradient_do_not_count():
    mine = [*parameters([3.0, 4.0]), torch.zeros(3, requires_grad=True)]
    assert clip_by_norm(mine, 1.0).item() == 5.0
    assert mine[1].grad is None
    assert clip_by_norm(mine[1:], 1.0).item() == 0.0


def test_a_gradient_that_is_no_number_is_not_hidden():
    for bad in (float("nan"), float("inf")):
        mine = parameters([bad, 1.0])
        clip_by_norm(mine, 1.0)
        assert not mine[0].grad.isfinite().all()


def test_values_are_cut_one_by_one():
    mine = parameters([3.0, -0.2], [-4.0, 0.5])
    clip_by_value(mine, 0.5)
    assert [p.grad.tolist() for p in mine] == [[0.5, pytest.approx(-0.2)], [-0.5, 0.5]]


class Gradients(Callback):
    """Keeps the gradients that the optimizer was given, and those before clipping."""

    def __init__(self):
        self.before, self.after = [], []

    def on_gradients(self, state):
        self.before.append(state.net.weight.grad.clone())

    def on_batch_end(self, state):
        self.after.append(state.net.weight.grad.clone())


def test_a_training_clips_by_value_when_told_to():
    x = torch.randn(32, 4, generator=torch.Generator().manual_seed(0))
    watch, net = Gradients(), nn.Linear(4, 1)
    training = Training(clip=("value", 0.1), callbacks=[watch])
    train_tensors(net, SquaredError(), x, 3 * x[:, :1] + 1, training=training, epochs=2)
    assert len(watch.before) == 4
    for before, after in zip(watch.before, watch.after, strict=True):
        assert torch.equal(after, before.clamp(-0.1, 0.1))
    assert max(g.abs().max() for g in watch.before) > 1


def test_a_negative_threshold_is_refused_and_one_tensor_may_stand_for_itself():
    w = torch.zeros(2, requires_grad=True)
    clip_by_value([w], 1.0)  # nothing to clip yet
    w.grad = torch.tensor([3.0, 4.0])
    for clip in (clip_by_norm, clip_by_value):
        with pytest.raises(InvalidParameter, match=r"`threshold` must be at least 0; got -1.0"):
            clip([w], -1.0)
    assert clip_by_norm(w, 1.0).item() == 5.0
    torch.testing.assert_close(w.grad, torch.tensor([0.6, 0.8]))
