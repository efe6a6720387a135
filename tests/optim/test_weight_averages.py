"""Averages of weights against averages taken by hand."""

import pytest
import torch

from castalia.errors import InvalidParameter
from castalia.optim import build_average


def walk(average, parameter, values):
    for value in values:
        parameter.data.fill_(value)
        average.after_step()


def test_ema_follows_the_recursion():
    parameter = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    average = build_average(("ema", 0.5), [parameter])
    values = [3.0, -1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
    walk(average, parameter, values)
    shadow = 0.0
    for t, value in enumerate(values):
        decay = min(0.5, (1 + t) / (10 + t))
        shadow = decay * shadow + (1 - decay) * value
    average.swap()
    assert parameter.tolist() == pytest.approx([shadow, shadow], abs=1e-14)


def test_swa_is_the_plain_mean_of_the_last_quarter_of_the_epochs():
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    average = build_average("swa", [parameter])
    for epoch in range(12):
        parameter.data.fill_(epoch**2)
        average.after_step()
        average.after_epoch(epoch, 12)
    average.swap()
    assert parameter.item() == pytest.approx((81 + 100 + 121) / 3, abs=1e-12)


def test_swapping_twice_changes_nothing_and_an_empty_average_never_does():
    parameter = torch.ones(1, requires_grad=True)
    average = build_average("swa", [parameter])
    parameter.data.fill_(7)
    average.swap()
    assert parameter.item() == 7
    average.after_epoch(9, 10)
    parameter.data.fill_(3)
    average.swap()
    assert parameter.item() == 7
    average.swap()
    assert parameter.item() == 3


def test_a_saved_average_goes_on_where_it_was():
    first, second = (torch.zeros(1, requires_grad=True) for _ in range(2))
    one, other = build_average("ema", [first]), build_average("ema", [second])
    walk(one, first, [1.0, 2.0, 3.0])
    other.load_state_dict(one.state_dict())
    walk(one, first, [4.0])
    walk(other, second, [4.0])
    assert torch.equal(one.shadow[0], other.shadow[0])


@pytest.mark.parametrize("kind", ["mean", ("ema", 1.5), ("swa", 0.5), 3])
def test_an_unknown_average_is_named(kind):
    with pytest.raises(InvalidParameter, match="`average` must be None, 'ema', 'swa'"):
        build_average(kind, [])


def test_lookahead_goes_back_to_the_average_every_fifth_step():
    parameter = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    average = build_average(("lookahead", 0.75), [parameter])
    slow, fast = 0.0, 0.0
    for t in range(1, 13):
        fast += t
        parameter.data += t
        average.after_step()
        if t % 5 == 0:
            slow = fast = slow + 0.25 * (fast - slow)
        assert parameter.item() == pytest.approx(fast)
    average.swap()
    assert parameter.item() == pytest.approx(slow)


def test_lookahead_of_fewer_steps_keeps_the_weights():
    parameter = torch.zeros(1, requires_grad=True)
    average = build_average("lookahead", [parameter])
    walk(average, parameter, [1.0, 2.0])
    average.swap()
    assert parameter.item() == 2
