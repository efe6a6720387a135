"""Multi-head attention and transformer blocks equal torch's, and do what attention does."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.evaluate import AttentionMap
from castalia.evaluate.attention import attention_weights
from castalia.nn.attention import (
    FeedForward,
    LearnedPositions,
    MultiHeadAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    attend,
    causal,
    padding,
)

DRAW = torch.Generator().manual_seed(0)
X, MEMORY = torch.randn(2, 5, 8, generator=DRAW), torch.randn(2, 7, 8, generator=DRAW)


def lively(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=DRAW))
    return module.eval()


def copy_attention(theirs, ours):
    ours.qkv.weight.data.copy_(theirs.in_proj_weight)
    ours.qkv.bias.data.copy_(theirs.in_proj_bias)
    ours.out.load_state_dict(theirs.out_proj.state_dict())


@pytest.fixture
def peers():
    theirs = lively(nn.MultiheadAttention(8, 2, batch_first=True))
    ours = MultiHeadAttention(8, 2)
    copy_attention(theirs, ours)
    return theirs, ours


# ---- multi-head attention ----


def test_attention_is_that_of_torch(peers):
    theirs, ours = peers
    out, weights = theirs(X, X, X, average_attn_weights=False)
    assert_close(ours(X), out)
    assert_close(ours.weights(X), weights)


def test_attention_to_a_memory_is_that_of_torch(peers):
    theirs, ours = peers
    out, weights = theirs(X, MEMORY, MEMORY, average_attn_weights=False)
    assert_close(ours(X, MEMORY), out)
    assert_close(ours.weights(X, MEMORY), weights)
    assert weights.shape == (2, 2, 5, 7)


def test_masked_attention_is_that_of_torch(peers):
    theirs, ours = peers
    lengths = torch.tensor([3, 5])
    hidden = torch.arange(5) >= lengths[:, None]
    future = torch.ones(5, 5).triu(1).bool()
    out, weights = theirs(
        X, X, X, key_padding_mask=hidden, attn_mask=future, average_attn_weights=False
    )
    mask = causal() & padding(lengths)
    assert_close(ours(X, mask=mask), out)
    assert_close(ours.weights(X, mask=mask), weights)


def test_gradients_of_attention_reach_the_memory():
    memory = MEMORY.clone().requires_grad_()
    MultiHeadAttention(8, 2)(X, memory).sum().backward()
    assert (memory.grad.abs().sum(-1) > 0).all()


def test_queries_keys_and_values_are_projections():
    attention = MultiHeadAttention(8, 2, head_dim=3)
    q, k, v = attention._project(X)
    rows = attention.qkv(X)
    assert q.shape == k.shape == v.shape == (2, 2, 5, 3)
    assert q[0, 1, 2].equal(rows[0, 2, 3:6])
    assert k[0, 0, 2].equal(rows[0, 2, 6:9])
    assert v[1, 1, 4].equal(rows[1, 4, 15:18])


@pytest.mark.parametrize(
    "layout, count", [("chunked", 24_576), ("whole", 1_572_864), ("standard", 196_608)]
)
def test_the_layouts_of_heads_have_the_weights_of_the_notes(layout, count):  # WE-112
    attention = MultiHeadAttention(256, 8, layout=layout, bias=False)
    assert sum(p.numel() for p in attention.qkv.parameters()) == count
    assert attention(torch.ones(1, 3, 256)).shape == (1, 3, 256)


@pytest.mark.parametrize("layout", ["standard", "chunked", "whole"])
def test_a_layout_attends_with_its_own_heads(layout):
    attention = lively(MultiHeadAttention(8, 2, layout=layout))
    assert_close(attention.weights(X).sum(-1), torch.ones(2, 2, 5))
    out, across = attention(X), attention(X, X)
    assert_close(out, across)
    changed = X.clone()
    changed[..., 4:] += 1.0  # the second head's chunk
    same = attention.weights(X)[:, 0].allclose(attention.weights(changed)[:, 0], atol=1e-6)
    assert same == (layout == "chunked")


def test_chunked_heads_are_attentions_of_their_chunks():
    attention = lively(MultiHeadAttention(8, 2, layout="chunked", bias=False))
    heads = []
    for h in (0, 1):
        q, k, v = (X[..., 4 * h : 4 * h + 4] @ attention.qkv.weight[h]).chunk(3, dim=-1)
        heads.append(nn.functional.scaled_dot_product_attention(q, k, v))
    assert_close(attention(X), attention.out(torch.cat(heads, -1)))


def test_attention_without_positions_commutes_with_permutations():
    block = lively(TransformerEncoderBlock(8, 2))
    order = torch.tensor([3, 1, 4, 0, 2])
    assert_close(block(X[:, order]), block(X)[:, order])
    positions = LearnedPositions(5, 8)(torch.arange(5))
    moved = block(X[:, order] + positions)
    assert not torch.allclose(moved, block(X + positions)[:, order], atol=1e-2)


def test_the_future_changes_no_bit_of_the_past():
    block = lively(TransformerEncoderBlock(8, 2))
    later = X.clone()
    later[:, 3:] += 5.0
    for mask in (causal(), causal() & padding(torch.tensor([5, 5]))):
        assert block(X, mask=mask)[:, :3].equal(block(later, mask=mask)[:, :3])
        assert not block(X, mask=mask)[:, 3:].equal(block(later, mask=mask)[:, 3:])


def test_padding_changes_no_result():
    block = lively(TransformerEncoderBlock(8, 2))
    mask = padding(torch.tensor([3, 5]))
    other = X.clone()
    other[0, 3:] = 100.0
    out, changed = block(X, mask=mask), block(other, mask=mask)
    assert out[0, :3].equal(changed[0, :3])
    assert_close(out[:1, :3], block(X[:1, :3]))


def test_a_query_that_sees_nothing_stays_finite_forwards_and_backwards():
    x = X.clone().requires_grad_()
    nothing = padding(torch.tensor([0, 5]))
    out = MultiHeadAttention(8, 2)(x, mask=nothing)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()


def test_attention_on_a_map_is_attention_on_its_places_in_any_order():
    attention = lively(MultiHeadAttention(8, 2))
    grid = torch.randn(1, 8, 3, 4, generator=DRAW)  # (B, C, height, width)
    by_rows = attention(grid.flatten(2).transpose(1, 2)).transpose(1, 2).view(1, 8, 3, 4)
    turned = grid.transpose(2, 3)
    by_columns = attention(turned.flatten(2).transpose(1, 2)).transpose(1, 2).view(1, 8, 4, 3)
    assert_close(by_rows, by_columns.transpose(2, 3))


def test_dropout_falls_on_weights_in_training_only():
    attention = MultiHeadAttention(8, 2, dropout=0.5)
    torch.manual_seed(0)
    assert not attention(X).equal(attention(X))
    assert attention.eval()(X).equal(attention(X))


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"heads": 3}, r"`heads` must divide dim=8; got 3"),
        ({"heads": 2, "layout": "hole"}, r"`layout` must be .*got 'hole'. Did you mean `whole`"),
        ({"heads": 2, "layout": "whole", "head_dim": 4}, r"`head_dim` must be None.*got 4"),
    ],
)
def test_heads_that_do_not_fit_are_refused(settings, said):
    with pytest.raises(InvalidParameter, match=said):
        MultiHeadAttention(8, **settings)


# ---- maps ----


def test_maps_are_caught_from_a_block_and_rows_sum_to_one():
    block = lively(TransformerDecoderBlock(8, 2))
    found = attention_weights(block, (X, MEMORY))
    assert [(one.name, one.weights.shape) for one in found] == [
        ("attention", (2, 2, 5, 5)),
        ("cross", (2, 2, 5, 7)),
    ]
    for one in found:
        assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))
    assert_close(found[0].weights, block.attention.weights(X))


def test_a_planted_reference_is_found_in_the_map():
    attention = MultiHeadAttention(4, 1, bias=False)
    with torch.no_grad():
        attention.qkv.weight.zero_()
        attention.qkv.weight[0, 1] = attention.qkv.weight[4, 0] = 6.0  # "it" asks, "robot" answers
    words = ["a", "robot", "must", "obey", "it"]
    x = torch.zeros(1, 5, 4)
    x[0, 1, 0] = x[0, 4, 1] = 1.0
    shown = AttentionMap.from_network(attention, x, tokens=words)
    assert words[shown.of("it")[0].argmax()] == "robot"
    assert shown.of("it")[0].max() > 0.99


# ---- blocks ----


def copy_block(theirs, ours):
    copy_attention(theirs.self_attn, ours.attention)
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.down.load_state_dict(theirs.linear2.state_dict())
    for i in (1, 2, 3):
        if hasattr(theirs, f"norm{i}"):
            getattr(ours, f"norm{i}").load_state_dict(getattr(theirs, f"norm{i}").state_dict())
    if hasattr(ours, "cross"):
        copy_attention(theirs.multihead_attn, ours.cross)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("pre_norm", [False, True])
def test_an_encoder_block_is_that_of_torch(pre_norm, activation):
    theirs = lively(
        nn.TransformerEncoderLayer(
            8, 2, 16, norm_first=pre_norm, activation=activation, batch_first=True
        )
    )
    ours = TransformerEncoderBlock(8, 2, hidden=16, pre_norm=pre_norm, activation=activation)
    copy_block(theirs, ours)
    assert_close(ours(X), theirs(X))
    future = nn.Transformer.generate_square_subsequent_mask(5)
    assert_close(ours(X, mask=causal()), theirs(X, src_mask=future, is_causal=True))


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_decoder_block_is_that_of_torch(pre_norm):
    theirs = lively(nn.TransformerDecoderLayer(8, 2, 16, norm_first=pre_norm, batch_first=True))
    ours = TransformerDecoderBlock(8, 2, hidden=16, pre_norm=pre_norm)
    copy_block(theirs, ours)
    lengths = torch.tensor([4, 7])
    out = theirs(
        X,
        MEMORY,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(5),
        memory_key_padding_mask=torch.arange(7) >= lengths[:, None],
    )
    assert_close(ours(X, MEMORY, mask=causal(), memory_mask=padding(lengths)), out)


def test_post_norm_is_the_norm_of_the_sum():
    block = lively(TransformerEncoderBlock(8, 2))
    h = block.norm1(X + block.attention(X))
    assert_close(block(X), block.norm2(h + block.feed_forward(h)))


def test_the_position_wise_network_is_two_convolutions_of_width_one():
    net = FeedForward(8, 16)
    up, down = nn.Conv1d(8, 16, 1), nn.Conv1d(16, 8, 1)
    up.weight.data, up.bias.data = net.up.weight[..., None], net.up.bias
    down.weight.data, down.bias.data = net.down.weight[..., None], net.down.bias
    expected = down(up(X.transpose(1, 2)).relu()).transpose(1, 2)
    assert_close(net(X), expected)


def test_a_gated_network_multiplies_two_projections():
    net = FeedForward(8, 16, activation="gelu_tanh", gated=True, bias=False)
    gate = nn.functional.gelu(X @ net.gate.weight.T, approximate="tanh")
    assert_close(net(X), (gate * (X @ net.up.weight.T)) @ net.down.weight.T)


def test_a_norm_without_mean_is_the_root_mean_square():
    block = TransformerEncoderBlock(8, 2, norm="rms", pre_norm=True, bias=False)
    expected = X / (X.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * block.norm1.weight
    assert_close(block.norm1(X), expected)
    assert not any(name.endswith("bias") for name, _ in block.named_parameters())


def test_an_unknown_norm_is_named():
    with pytest.raises(InvalidParameter, match="`norm` must be `layer` or `rms`; got 'batch'"):
        TransformerEncoderBlock(8, 2, norm="batch")


def test_attention_costs_the_square_of_the_length_and_the_network_that_of_the_width():  # WE-114
    from torch.utils.flop_counter import FlopCounterMode

    def flops(f):
        with FlopCounterMode(display=False) as counter:
            f()
        return counter.get_total_flops()

    def pair(length, dim):
        x = torch.ones(1, 1, length, dim, device="meta")
        one = nn.Linear(dim, dim, bias=False, device="meta")  # a map T D^2
        # Scores and weighted sum are T^2 D multiply-adds each; flops count both at 2.
        return flops(lambda: attend(x, x, x)) / 4, flops(lambda: one(x)) / 2

    assert pair(768, 768) == (768**3, 768**3)
    attention, network = pair(128, 768)
    assert (attention, network) == (128**2 * 768, 128 * 768**2)
    assert (f"{attention:.3g}", f"{network:.3g}") == ("1.26e+07", "7.55e+07")
    attention, network = pair(4096, 768)
    assert (f"{attention:.3g}", f"{network:.3g}") == ("1.29e+10", "2.42e+09")
