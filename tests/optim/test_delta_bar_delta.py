"""Delta-bar-delta against its equations."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.optim import DeltaBarDelta, build_optimizer


def test_it_follows_jacobs_equations():
    gradients, lr, kappa, phi, theta = [2.0, 3.0, -1.0, -0.5, 0.2, 0.3], 0.1, 0.3, 0.2, 0.6
    w = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = DeltaBarDelta([w], lr=lr, kappa=kappa, phi=phi, theta=theta)
    rate, bar, place = lr, 0.0, 0.0
    for g in gradients:
        if g * bar > 0:
            rate += kappa * lr
        elif g * bar < 0:
            rate *= 1 - phi
        bar = (1 - theta) * g + theta * bar
        place -= rate * g
        w.grad = torch.tensor([g], dtype=torch.float64)
        optimizer.step()
        assert w.item() == pytest.approx(place)


def minimise(optimizer, w, curvatures, steps):
    for _ in range(steps):
        w.grad = curvatures * w.detach()
        optimizer.step()
    return float((curvatures * w.detach() ** 2).sum())


def test_rates_rise_along_the_valley_and_fall_across_it():
    curvatures = torch.tensor([0.01, 1.0], dtype=torch.float64)
    w = torch.ones(2, dtype=torch.float64, requires_grad=True)
    optimizer = DeltaBarDelta([w], lr=1.9)  # the second coordinate oscillates at this rate
    minimise(optimizer, w, curvatures, 20)
    along, across = optimizer.state[w]["gain"].tolist()
    assert along > 1.8
    assert across < 1


def test_it_beats_descent_on_an_ill_conditioned_quadratic():
    curvatures = torch.logspace(0, 3, 10, dtype=torch.float64)
    reached = {}
    for name, make in (
        ("descent", lambda w: torch.optim.SGD([w], lr=2 / 1001)),  # its best rate
        ("ours", lambda w: DeltaBarDelta([w], lr=1e-3)),
    ):
        w = torch.ones(10, dtype=torch.float64, requires_grad=True)
        reached[name] = minimise(make(w), w, curvatures, 500)
    assert reached["ours"] < 1e-3 * reached["descent"]


def test_groups_and_decay_are_respected():
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    optimizer = DeltaBarDelta([{"params": [a], "lr": 0.5}, {"params": [b], "weight_decay": 2.0}])
    a.grad, b.grad = torch.ones(2), torch.zeros(2)
    optimizer.step()
    assert_close(a.detach(), torch.full((2,), 0.5))
    assert_close(b.detach(), torch.full((2,), 1 - 0.01 * 2.0))


def test_a_rate_kept_as_a_tensor_is_read_at_every_step():  # as steps recorded on CUDA have it
    w = torch.ones(2, requires_grad=True)
    optimizer = build_optimizer("delta_bar_delta", [w], lr=0.1, capture=True)
    for rate, expected in ((0.1, 0.9), (0.0, 0.9)):
        optimizer.param_groups[0]["lr"].fill_(rate)
        w.grad = torch.ones(2)
        optimizer.step()
        assert_close(w.detach(), torch.full((2,), expected))


@pytest.mark.parametrize(
    "settings, message",
    [({"phi": 1.0}, "`phi` must be .*below 1; got 1.0"), ({"kappa": -1}, "`kappa`.*got -1")],
    ids=str,
)
def test_a_wrong_setting_is_named(settings, message):
    with pytest.raises(InvalidParameter, match=f"DeltaBarDelta: {message}"):
        DeltaBarDelta([torch.ones(1, requires_grad=True)], **settings)
