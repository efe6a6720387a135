"""The vision transformer and its weights in other libraries."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import ViT
from castalia.nets.vision.torchvision_weights import load_weights, names


def test_the_base_network_has_the_weights_of_the_paper():
    with torch.device("meta"):
        net = ViT(3, 1000, size=(224, 224), dim=768, depth=12, heads=12)
    assert sum(p.numel() for p in net.parameters()) == 86_567_656


def test_patches_see_nothing_but_their_own_pixels():
    net = ViT(3, 5, size=(8, 8), patch=4, dim=12, depth=1, heads=2).eval()
    x = torch.randn(1, 3, 8, 8)
    other = x.clone()
    other[..., 4:, 4:] += 1  # the last of four patches
    changed = (net.features.patches(x) != net.features.patches(other)).any(dim=2)
    assert changed.tolist() == [[False, False, False, False, True]]
    assert not torch.equal(net(x), net(other))


def plain(state, x, depth, heads, patch):
    """Write the equations of the paper out on torchvision's tensors."""
    F = nn.functional
    dim = state["class_token"].shape[-1]
    h = F.conv2d(x, state["conv_proj.weight"], state["conv_proj.bias"], stride=patch)
    h = torch.cat([state["class_token"].expand(len(x), 1, dim), h.flatten(2).mT], dim=1)
    h = h + state["encoder.pos_embedding"]

    def norm(h, name):
        return F.layer_norm(h, (dim,), state[f"{name}.weight"], state[f"{name}.bias"], 1e-6)

    for i in range(depth):
        at = f"encoder.layers.encoder_layer_{i}"
        n = norm(h, f"{at}.ln_1")
        qkv = n @ state[f"{at}.self_attention.in_proj_weight"].mT
        qkv = qkv + state[f"{at}.self_attention.in_proj_bias"]
        q, k, v = (p.unflatten(2, (heads, -1)).transpose(1, 2) for p in qkv.chunk(3, dim=2))
        a = (q @ k.mT / (dim / heads) ** 0.5).softmax(dim=-1) @ v
        a = a.transpose(1, 2).flatten(2)
        h = h + F.linear(a, state[f"{at}.self_attention.out_proj.weight"],
                         state[f"{at}.self_attention.out_proj.bias"])  # fmt: skip
        m = F.linear(norm(h, f"{at}.ln_2"), state[f"{at}.mlp.0.weight"], state[f"{at}.mlp.0.bias"])
        h = h + F.linear(F.gelu(m), state[f"{at}.mlp.3.weight"], state[f"{at}.mlp.3.bias"])
    return F.linear(norm(h, "encoder.ln")[:, 0], state["heads.head.weight"],
                    state["heads.head.bias"])  # fmt: skip


def test_scores_are_those_of_the_written_out_network_on_torchvisions_names():
    source = torch.Generator().manual_seed(0)
    net = ViT(3, 5, size=(16, 16), patch=4, dim=12, depth=2, heads=3).eval()
    table = names(net)
    state = {
        table[k]: torch.randn(v.shape, generator=source) / 5 for k, v in net.state_dict().items()
    }
    load_weights(net, state)
    x = torch.randn(2, 3, 16, 16, generator=source)
    assert_close(net(x), plain(state, x, 2, 3, 4), atol=1e-5, rtol=1e-4)


def test_images_that_patches_do_not_fill_are_refused():
    with pytest.raises(InvalidParameter, match="`patch` must divide .* 30 x 32; got 4"):
        ViT(3, 2, size=(30, 32))


def test_scores_equal_torchvisions():
    models = pytest.importorskip("torchvision.models")
    theirs = models.VisionTransformer(32, 8, 2, 4, 48, 96, num_classes=7).eval()
    nn.init.normal_(theirs.heads.head.weight)
    ours = ViT(3, 7, size=(32, 32), patch=8, dim=48, depth=2, heads=4, hidden=96).eval()
    load_weights(ours, theirs.state_dict(), head=True)
    x = torch.randn(2, 3, 32, 32)
    assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-4)


def test_scores_equal_timms():
    timm = pytest.importorskip("timm")
    theirs = timm.models.VisionTransformer(
        img_size=32, patch_size=8, embed_dim=48, depth=2, num_heads=4, num_classes=7
    ).eval()
    ours = ViT(3, 7, size=(32, 32), patch=8, dim=48, depth=2, heads=4).eval()
    load_weights(ours, theirs.state_dict(), head=True)
    x = torch.randn(2, 3, 32, 32)
    assert_close(ours(x), theirs(x), atol=1e-5, rtol=1e-4)
