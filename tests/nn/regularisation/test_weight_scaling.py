"""Original dropout put in, and folded into the weights."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.dense import MLP
from castalia.nn import MonteCarloDropout, OriginalDropout, scale_weights, with_dropout


def stack(*sizes):
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(fan_in, fan_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def test_inputs_are_kept_with_08_and_hidden_units_with_05_by_default():
    net, units, rows = with_dropout(stack(30, 40, 40, 2)), [30, 40, 40], 400
    layers = [layer for layer in net if isinstance(layer, OriginalDropout)]
    assert [type(net[i + 1]) for i, m in enumerate(net) if m in layers] == [nn.Linear] * 3
    torch.manual_seed(0)
    for layer, size, keep in zip(layers, units, (0.8, 0.5, 0.5), strict=True):
        kept = layer.train()(torch.ones(rows, size)).mean().item()
        assert abs(kept - keep) < 3 * (keep * (1 - keep) / (rows * size)) ** 0.5


def test_scaled_weights_compute_what_original_dropout_computes_at_inference():
    torch.manual_seed(0)
    net = with_dropout(stack(5, 8, 8, 3)).double().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    scaled, x = scale_weights(net), torch.randn(20, 5, dtype=torch.float64)
    assert not any(isinstance(module, OriginalDropout) for module in scaled.modules())
    assert_close(scaled(x), net.eval()(x))
    for name, value in net.state_dict().items():
        assert_close(value, before[name], rtol=0, atol=0)
    halved = [a.weight / b.weight for a, b in zip(scaled, net, strict=True) if hasattr(a, "weight")]
    assert [ratio.mean().item() for ratio in halved] == pytest.approx([0.8, 0.5, 0.5])


def test_convolutions_and_nested_stacks_are_scaled():
    torch.manual_seed(0)
    net = nn.ModuleDict(
        {"body": nn.Sequential(nn.Sequential(OriginalDropout(0.5), nn.Conv2d(2, 3, 3)), nn.ReLU())}
    )
    net["head"] = nn.Sequential(OriginalDropout(0.25), nn.Flatten(), nn.Linear(12, 2))
    net = net.double().eval()
    x = torch.randn(2, 2, 4, 4, dtype=torch.float64)
    scaled = scale_weights(net)
    assert_close(scaled["head"](scaled["body"](x)), net["head"](net["body"](x)))


def test_scaling_is_close_to_the_mean_over_masks_of_a_network_with_a_hidden_layer():
    torch.manual_seed(0)
    net = with_dropout(stack(6, 64, 3), inputs=1.0).double()
    x = torch.randn(50, 6, dtype=torch.float64)
    exact = MonteCarloDropout(net, 1500, lambda z: z.log_softmax(dim=1))(x).softmax(dim=1)
    scaled = scale_weights(net)(x).softmax(dim=1)
    unscaled = nn.Sequential(*(m for m in net if not isinstance(m, OriginalDropout)))(x)
    near = (scaled - exact).abs().max()
    assert near < 0.01
    assert near < 0.1 * (unscaled.softmax(dim=1) - exact).abs().max()


def test_inverted_dropout_needs_no_scaling():
    net = MLP(3, 2, hidden=(8,), dropout=0.5).eval()
    x = torch.randn(4, 3)
    assert_close(scale_weights(net)(x), net(x), rtol=0, atol=0)


def test_a_dropout_without_weights_after_it_and_shared_weights_are_refused():
    with pytest.raises(InvalidParameter, match=r"none follows `1`"):
        scale_weights(nn.Sequential(nn.Linear(2, 2), OriginalDropout()))
    layer = nn.Linear(2, 2)
    with pytest.raises(InvalidParameter, match=r"used in one place; got `1` and `2`"):
        scale_weights(nn.Sequential(OriginalDropout(), layer, layer))
