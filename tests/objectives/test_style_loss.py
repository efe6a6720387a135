"""The style loss: Gram matrices, total variation, and their gradient by the pixels."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import VGG, Taps
from castalia.objectives import StyleLoss, gram, total_variation
from castalia.protocols import Batch


def taps(seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    net = VGG(3, 2, depth=11, width=0.1).features
    return Taps(net, ["relu1_1", "relu2_1", "relu3_1"]).to(dtype).eval()


def style_of(net, x):
    return {name: gram(f)[0].detach() / f[0, 0].numel() for name, f in net(x).items()}


def test_the_gram_matrix_does_not_know_where_things_are():
    maps = torch.randn(2, 5, 6, 7, dtype=torch.float64)
    order = torch.randperm(42)
    moved = maps.flatten(2)[:, :, order].view_as(maps)
    assert not torch.equal(moved, maps)
    assert_close(gram(moved), gram(maps))


def test_the_gram_matrix_is_the_sum_of_products_over_places():
    maps = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    expected = torch.zeros(2, 3, 3, dtype=torch.float64)
    for i in range(4):
        for j in range(5):
            place = maps[:, :, i, j]
            expected += place[:, :, None] * place[:, None, :]
    assert_close(gram(maps), expected)


def test_the_gram_matrix_is_symmetric_and_has_no_negative_eigenvalue():
    found = gram(torch.randn(4, 8, 2, 3, dtype=torch.float64))  # rank 6 of 8
    assert_close(found, found.transpose(1, 2))
    values = torch.linalg.eigvalsh(found)
    assert values.min() > -1e-10
    assert (values[:, :2].abs() < 1e-10).all()
    assert (values[:, 2:] > 1e-6).all()


def test_total_variation_counts_steps_between_neighbours():
    x = torch.arange(4.0).repeat(5, 1)[None, None]  # rises by 1 across
    assert_close(total_variation(x), torch.ones(1))
    assert_close(total_variation(3 * x.transpose(2, 3)), torch.full((1,), 9.0))
    assert_close(total_variation(torch.full((2, 3, 4, 4), 0.7)), torch.zeros(2))


def test_a_picture_has_no_distance_to_its_own_content_and_style():
    net, x = taps(), torch.rand(1, 3, 16, 16, dtype=torch.float64)
    loss = StyleLoss(style_of(net, x), content_layers=["relu2_1"], variation_weight=0.5)
    found = loss.terms(net, Batch(x, net(x)), "train")
    assert found["content"] == 0
    assert found["style"].abs() < 1e-20
    assert_close(found["loss"], 0.5 * total_variation(x)[0])


def test_terms_are_shares_that_do_not_depend_on_the_scale_of_the_maps():
    net, x, c = taps(), *torch.rand(2, 1, 3, 16, 16, dtype=torch.float64)
    s = torch.rand(1, 3, 24, 20, dtype=torch.float64)  # the style may have another size

    def found(net):
        loss = StyleLoss(style_of(net, s), content_layers=["relu1_1"])
        return loss.terms(net, Batch(x, net(c)), "train")

    before = found(net)
    with torch.no_grad():
        net.features.conv1_1.weight *= 10
        net.features.conv1_1.bias *= 10
    assert_close(found(net)["content"], before["content"])
    assert 0 < before["content"] < 1


def test_the_loss_is_the_weighted_sum_of_its_parts_and_a_mean_over_pictures():
    net, x, c = taps(), *torch.rand(2, 3, 3, 16, 16, dtype=torch.float64)
    loss = StyleLoss(
        style_of(net, torch.rand(1, 3, 16, 16, dtype=torch.float64)),
        content_layers=["relu2_1", "relu3_1"],
        content_weight=0.3,
        style_weight=7.0,
        variation_weight=0.1,
        layer_weights={"relu1_1": 1.0, "relu3_1": 0.2},
    )
    whole = loss.terms(net, Batch(x, net(c)), "train")
    expected = 0.3 * whole["content"] + 7 * whole["style"] + 0.1 * whole["variation"]
    assert_close(whole["loss"], expected)
    each = [loss.terms(net, Batch(x[i : i + 1], net(c[i : i + 1])), "train") for i in range(3)]
    assert_close(whole["style"], torch.stack([part["style"] for part in each]).mean())


def test_gradients_by_the_pixels_are_those_of_finite_differences():
    net, c = taps(), torch.rand(1, 3, 8, 8, dtype=torch.float64)
    style = style_of(net, torch.rand(1, 3, 8, 8, dtype=torch.float64))
    loss = StyleLoss(style, content_layers=["relu2_1"], variation_weight=1.0)
    wanted = {name: maps.detach() for name, maps in net(c).items()}
    x = torch.rand(1, 3, 8, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: loss.terms(net, Batch(x, wanted), "train")["loss"], x, fast_mode=True
    )


def test_a_layer_weight_without_a_gram_matrix_is_named():
    with pytest.raises(InvalidParameter, match="got 'relu1_2'. Did you mean `relu1_1`"):
        StyleLoss({"relu1_1": torch.eye(2)}, content_layers=[], layer_weights={"relu1_2": 1.0})
