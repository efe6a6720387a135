"""Contrastive divergence with a machine whose draws are certain, so that every number is known."""

import pytest
import torch
from torch import nn

from castalia.objectives.contrastive_divergence import ContrastiveDivergence
from castalia.protocols import Batch

V = torch.tensor([[0.0, 1.0], [2.0, 4.0], [5.0, 3.0]])
WEIGHT = torch.tensor([1.0, 0.0, 3.0])


class Certain(nn.Module):
    """Reconstructs a row as half of it and one; a step of Gibbs sampling adds ten."""

    def forward(self, v):
        return v / 10

    def draw_hidden(self, v, source):
        return v + 2

    def reconstruct(self, h):
        return h / 2

    def draw_around(self, mean, source):
        return mean + 100

    def gibbs(self, v, source):
        return v + 10

    def contrast(self, v, p, drawn, q):
        return p @ v.sum(dim=1) - q @ drawn.sum(dim=1)


def terms(objective, weight=None, machine=None):
    return objective.terms(machine or Certain(), Batch(V, None, weight), "train")


@pytest.mark.parametrize("k", [1, 3])
def test_k_steps_begin_at_the_data(k):
    drawn = V / 2 + 1 + 100 + 10 * (k - 1)
    wanted = V.sum(dim=1).mean() - drawn.sum(dim=1).mean()
    assert terms(ContrastiveDivergence(k))["loss"] == pytest.approx(wanted.item())


def test_rows_count_by_their_weights_in_both_means():
    share, drawn = WEIGHT / 4, V / 2 + 101
    wanted = share @ V.sum(dim=1) - share @ drawn.sum(dim=1)
    assert terms(ContrastiveDivergence(), WEIGHT)["loss"] == pytest.approx(wanted.item())


def test_the_monitor_is_the_squared_difference_to_one_reconstruction():
    apart = (V / 2 - 1).square().mean(dim=1)
    for objective in (ContrastiveDivergence(2), ContrastiveDivergence(2, persistent=4)):
        assert terms(objective)["reconstruction"] == pytest.approx(apart.mean().item())
        weighted = (WEIGHT @ apart / 4).item()
        assert terms(objective, WEIGHT)["reconstruction"] == pytest.approx(weighted)


def test_persistent_chains_begin_at_rows_and_go_on_in_training_only():
    objective, machine = ContrastiveDivergence(2, persistent=50), Certain()
    first = terms(objective, machine=machine)["loss"]
    begun = objective.chains - 20
    assert {tuple(row.tolist()) for row in begun} == {tuple(row.tolist()) for row in V}
    means = [V.sum(dim=1).mean() - (begun + step).sum(dim=1).mean() for step in (20, 40, 60)]
    second = terms(objective, machine=machine)["loss"]
    assert [first.item(), second.item()] == pytest.approx([m.item() for m in means[:2]])
    machine.eval()
    for _ in range(2):
        assert terms(objective, machine=machine)["loss"] == pytest.approx(means[2].item())
    resumed = ContrastiveDivergence(2, persistent=50)
    resumed.load_state_dict(objective.state_dict())
    assert terms(resumed, machine=machine)["loss"] == pytest.approx(means[2].item())


def test_a_wish_for_sparsity_adds_the_cross_entropy_of_mean_activations():
    for weight, share in ((None, torch.full((3,), 1 / 3)), (WEIGHT, WEIGHT / 4)):
        plain = terms(ContrastiveDivergence(), weight)["loss"]
        wished = terms(ContrastiveDivergence(sparsity=0.2, sparsity_weight=0.5), weight)["loss"]
        q = share @ (V / 10)
        wanted = 0.5 * nn.functional.binary_cross_entropy(q, torch.full((2,), 0.2), reduction="sum")
        assert (wished - plain).item() == pytest.approx(wanted.item(), rel=1e-4)
