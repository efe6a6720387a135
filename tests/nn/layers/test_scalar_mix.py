"""A mix of layers is its formula, and learns without its layers."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import ScalarMix

LAYERS = [torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(i)) for i in range(3)]


def test_a_mix_begins_with_equal_shares_and_is_its_formula():
    mix = ScalarMix(3)
    assert_close(mix(LAYERS), sum(LAYERS) / 3)
    with torch.no_grad():
        mix.scores.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(0.3)
    e = torch.tensor([0.5, -1.0, 2.0]).exp()
    assert_close(mix(LAYERS), 0.3 * sum(w * h for w, h in zip(e / e.sum(), LAYERS, strict=True)))
    assert_close(mix.shares.sum(), torch.tensor(1.0))


@pytest.mark.parametrize("layer", range(3))
def test_one_large_score_selects_a_layer(layer):
    mix = ScalarMix(3)
    with torch.no_grad():
        mix.scores[layer] = 100.0
        mix.gamma.fill_(2.0)
    assert_close(mix(LAYERS), 2 * LAYERS[layer])


def test_of_frozen_layers_only_the_shares_and_gamma_have_gradients():
    below = torch.nn.Linear(4, 4).requires_grad_(False)
    mix = ScalarMix(2)
    mix([LAYERS[0], below(LAYERS[0])]).square().sum().backward()
    assert all((p.grad != 0).all() for p in mix.parameters())
    assert {name for name, _ in mix.named_parameters()} == {"scores", "gamma"}
    assert all(p.grad is None for p in below.parameters())


def test_normalised_layers_have_one_scale():
    mix = ScalarMix(2, norm=True)
    assert_close(
        mix([LAYERS[0], LAYERS[1]]), mix([LAYERS[0], 100 * LAYERS[1] + 7]), atol=1e-4, rtol=0
    )


def test_a_wrong_number_of_layers_is_named():
    with pytest.raises(ShapeMismatch, match="must hold 2 layers; got 3"):
        ScalarMix(2)(LAYERS)
    with pytest.raises(InvalidParameter, match="from 1; got 0"):
        ScalarMix(0)
