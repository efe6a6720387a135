"""Original, inverted and sampled dropout; `keep` is the probability that a unit stays."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.dense import MLP
from castalia.nn import MonteCarloDropout, OriginalDropout, all_masks, dropout_on


def tiny_net(dropout):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 4), nn.Tanh(), dropout, nn.Linear(4, 1)).double()


def under_every_mask(net, x, scale=1.0):
    """Outputs under all 16 masks of the hidden layer, (16, B, 1)."""
    hidden = torch.tanh(net[0](x))
    return torch.stack([net[3](scale * mask * hidden) for mask in all_masks(4, like=x)])


def chances(keep):
    kept = all_masks(4).double().sum(dim=1)
    return keep**kept * (1 - keep) ** (4 - kept)


@pytest.mark.parametrize("keep", [0.5, 0.8])
def test_original_dropout_at_inference_is_the_mean_over_masks_of_a_linear_layer(keep):
    net = tiny_net(OriginalDropout(keep)).eval()
    x = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean = torch.einsum("m,mbk->bk", chances(keep), under_every_mask(net, x))
    assert_close(net(x), mean)
    assert not torch.allclose(net(x), mean / keep)


def test_original_dropout_in_training_draws_masks_of_that_mean():
    torch.manual_seed(0)
    layer, x = OriginalDropout(0.8), torch.tensor([1.0, -2.0, 3.0]).expand(20000, 3)
    drawn = layer(x)
    assert torch.isin(drawn, torch.tensor([0.0, 1.0, -2.0, 3.0])).all()
    spread = x[0].abs() * (0.8 * 0.2 / 20000) ** 0.5
    assert ((drawn.mean(dim=0) - layer.eval()(x)[0]).abs() < 3 * spread).all()


def test_inverted_dropout_of_a_dense_network_keeps_the_mean_and_is_gone_at_inference():
    torch.manual_seed(3)
    net = MLP(2, 1, hidden=(4,), activation="tanh", dropout=0.2).double().eval()
    x = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first, last = net.layers[0], net.layers[-1]
    hidden = torch.tanh(x @ first.weight.T + first.bias)
    assert_close(net(x), hidden @ last.weight.T + last.bias)  # no unit is dropped or scaled
    thinned = [last(mask * hidden / 0.8) for mask in all_masks(4, like=x)]
    assert_close(torch.einsum("m,mbk->bk", chances(0.8), torch.stack(thinned)), net(x))
    drawn = net.train()(x[:1].expand(3000, 2)).detach()
    possible = torch.stack([out[0] for out in thinned]).detach()  # (16, 1)
    nearest = (drawn - possible.T).abs().min(dim=1)  # each draw is one of the 16 thinned nets
    assert nearest.values.max() < 1e-12
    shares = torch.bincount(nearest.indices, minlength=16) / 3000
    assert_close(shares.double(), chances(0.8), rtol=0, atol=0.03)


@pytest.mark.parametrize("layer", [OriginalDropout(keep=0.7), nn.Dropout(p=0.3)], ids=["own", "in"])
def test_the_number_of_dropped_units_is_binomial(layer):
    torch.manual_seed(0)
    units, repeats, drop = 12, 4000, 0.3
    dropped = (layer.train()(torch.ones(repeats, units)) == 0).sum(dim=1)
    mean, spread = units * drop, (units * drop * (1 - drop) / repeats) ** 0.5
    assert abs(dropped.double().mean().item() - mean) < 3 * spread
    seen = np.bincount(dropped.numpy(), minlength=units + 1)
    expected = repeats * stats.binom(units, drop).pmf(np.arange(units + 1))
    seen, expected = (np.append(v[:8], v[8:].sum()) for v in (seen, expected))
    assert stats.chisquare(seen, expected).pvalue > 0.01
    wrong = repeats * stats.binom(units, 1 - drop).pmf(np.arange(units + 1))
    assert stats.chisquare(seen, np.append(wrong[:8], wrong[8:].sum())).pvalue < 1e-6


def test_one_mask_a_step_follows_the_mean_gradient_over_all_masks():
    net, keep = tiny_net(OriginalDropout(0.5)), 0.5
    x = torch.tensor([[0.5, -1.0]], dtype=torch.float64)
    exact = (chances(keep) * (under_every_mask(net, x) - 1).square().flatten()).sum()
    exact = torch.autograd.grad(exact, list(net.parameters()))
    torch.manual_seed(0)
    steps = 4000
    # Each row has a mask of its own: a batch of copies is many steps of one mask.
    sampled = F.mse_loss(net(x.expand(steps, 2)), torch.ones(steps, 1, dtype=torch.float64))
    sampled = torch.autograd.grad(sampled, list(net.parameters()))
    for ours, theirs in zip(sampled, exact, strict=True):
        assert_close(ours, theirs, rtol=0, atol=0.05)
    assert max(g.abs().max() for g in exact) > 0.5


def test_the_mean_over_sampled_masks_approaches_that_over_all_as_one_over_the_root():
    net = tiny_net(OriginalDropout(0.5)).eval()
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    members = torch.sigmoid(under_every_mask(net, x))
    exact = members.mean(dim=0)
    torch.manual_seed(0)
    errors = []
    for samples in (10, 160, 2560):
        found = MonteCarloDropout(net, samples, torch.sigmoid)(x.expand(400, 2))
        errors.append((found - exact).square().mean().sqrt().item())
    theory = [members.std(correction=0).item() / n**0.5 for n in (10, 160, 2560)]
    assert errors == pytest.approx(theory, rel=0.15)


def test_mean_and_spread_over_masks():
    net = tiny_net(nn.Dropout(0.5)).eval()
    x = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    members = under_every_mask(net, x, scale=2.0)
    torch.manual_seed(0)
    mean, spread = MonteCarloDropout(net, samples=4000).moments(x)
    assert mean.item() == pytest.approx(members.mean().item(), abs=0.05)
    assert spread.item() == pytest.approx(members.std(correction=0).item(), rel=0.05)


def test_sampling_leaves_batch_normalisation_and_every_mode_alone():
    net = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 1))
    net[2].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    MonteCarloDropout(net, samples=3).sample(5 + torch.randn(8, 3))
    assert [m.training for m in net] == [True, True, False]
    for name, value in net.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0)


def test_modes_come_back_after_an_error():
    net = nn.Sequential(nn.Dropout(0.5)).train()
    with pytest.raises(RuntimeError), dropout_on(net.eval()):
        raise RuntimeError
    assert not net[0].training


@pytest.mark.parametrize(
    "net, x",
    [
        (nn.LSTM(3, 4, num_layers=2, dropout=0.5, batch_first=True), torch.ones(2, 5, 3)),
        (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True), torch.ones(2, 5, 4)),
    ],
    ids=["lstm", "transformer"],
)
def test_dropout_inside_recurrent_and_attention_layers_is_on_too(net, x):
    net.eval()
    with torch.no_grad(), dropout_on(net):
        first, second = (out[0] if isinstance(out, tuple) else out for out in (net(x), net(x)))
    assert not torch.equal(first, second)


def test_errors_say_what_keep_means_and_what_is_missing():
    with pytest.raises(InvalidParameter, match=r"OriginalDropout: `keep` must be above 0 .*got 0"):
        OriginalDropout(keep=0.0)
    with pytest.raises(InvalidParameter, match=r"must have dropout; got Linear without"):
        MonteCarloDropout(nn.Linear(2, 1))
    with pytest.raises(InvalidParameter, match=r"`samples` must be at least 1; got 0"):
        MonteCarloDropout(nn.Dropout(), samples=0)
