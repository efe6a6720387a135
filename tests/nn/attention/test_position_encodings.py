"""Positions are their formulas."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter
from castalia.nn.attention import (
    LearnedPositions,
    MultiHeadAttention,
    RelativeBias,
    Rotary,
    SinusoidalPositions,
)


def test_the_sines_of_four_positions_are_those_of_the_notes():  # WE-110
    table = SinusoidalPositions(4, base=100.0)(torch.arange(4))
    expected = [
        [0, 1, 0, 1],
        [0.8415, 0.5403, 0.0998, 0.9950],
        [0.9093, -0.4161, 0.1987, 0.9801],
        [0.1411, -0.9900, 0.2955, 0.9553],
    ]
    assert_close(table, torch.tensor(expected), atol=5e-5, rtol=0)


def test_a_shift_is_a_rotation_of_the_encoding():
    encoding = SinusoidalPositions(8).double()
    at = encoding(torch.arange(20)).view(20, 4, 2)
    for m in (1, 7):
        angle = m * encoding.frequencies
        rotation = torch.stack(
            [
                torch.stack([angle.cos(), angle.sin()], -1),
                torch.stack([-angle.sin(), angle.cos()], -1),
            ],
            -2,
        )
        turned = torch.einsum("fij,kfj->kfi", rotation, at[:-m])
        assert_close(turned, at[m:], atol=1e-6, rtol=1e-6)


def test_learned_positions_are_rows_of_a_table_and_end_with_it():
    positions = LearnedPositions(5, 3)
    assert positions(torch.tensor([4, 0])).equal(positions.weight[[4, 0]])
    with pytest.raises(InvalidData, match="at most 5 tokens; got 6"):
        positions(torch.arange(6))


def test_position_vectors_are_added_to_those_of_the_tokens():
    from castalia.nets.language import GPT, Transformer

    ids = torch.tensor([[3, 1, 4]])
    net = GPT(9, context=4, dim=8, depth=0, heads=2)
    expected = net.norm(net.tokens.weight[ids] + net.positions.weight[:3])
    assert_close(net.features(ids), expected)
    sines = Transformer(9, dim=8, depth=0, heads=2).eval()
    table = SinusoidalPositions(8)(torch.arange(3))
    assert_close(sines.encode(ids), sines.tokens(ids) * math.sqrt(8) + table)


@pytest.mark.parametrize("both_ways", [True, False])
def test_buckets_are_those_of_t5(both_ways):
    from transformers.models.t5.modeling_t5 import T5Attention

    offset = torch.arange(-300, 301)
    for buckets, furthest in ((32, 128), (8, 10), (16, 64)):
        ours = RelativeBias(1, buckets=buckets, furthest=furthest, both_ways=both_ways)
        theirs = T5Attention._relative_position_bucket(offset, both_ways, buckets, furthest)
        assert ours.bucket(offset).equal(theirs)


def test_relative_bias_depends_on_the_distance_only():
    bias = RelativeBias(2)
    i, j = torch.arange(4), torch.arange(6)
    assert bias(i, j).equal(bias(i + 17, j + 17))
    assert not bias(i, j).equal(bias(i + 17, j))


def test_rotated_scores_depend_on_the_distance_only():
    draw = torch.Generator().manual_seed(0)
    rotary = Rotary(8)
    q, k = torch.randn(2, 1, 2, 5, 8, generator=draw)
    at = torch.arange(5)
    scores = [rotary(q, at + m) @ rotary(k, at + m).transpose(-2, -1) for m in (0, 11)]
    assert_close(scores[0], scores[1], atol=1e-4, rtol=1e-4)
    assert_close(rotary(q, at).norm(dim=-1), q.norm(dim=-1))
    assert not torch.allclose(scores[0], q @ k.transpose(-2, -1), atol=1e-2)


def test_rotation_is_that_of_transformers():
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    rotary, at = Rotary(8), torch.arange(5)
    angles = (at[:, None] * rotary.frequencies).repeat(1, 2)[None]
    theirs, _ = apply_rotary_pos_emb(x, x, angles.cos(), angles.sin())
    assert_close(rotary(x, at), theirs)


def test_rotary_attention_is_the_same_wherever_the_text_begins():
    attention = MultiHeadAttention(8, 2, rotary=Rotary(4))
    x = torch.randn(1, 5, 8, generator=torch.Generator().manual_seed(0))
    places = torch.arange(5)
    q, k, v = attention._project(x)
    shifted = [attention.rotary(part, places + 9) for part in (q, k)]
    scores = shifted[0] @ shifted[1].transpose(-2, -1) / 2
    assert_close(scores.softmax(-1), attention.weights(x), atol=1e-5, rtol=1e-5)


def test_an_odd_width_has_no_pairs():
    with pytest.raises(InvalidParameter, match="SinusoidalPositions: `dim` must be even; got 5"):
        SinusoidalPositions(5)
    with pytest.raises(InvalidParameter, match="Rotary: `dim` must be even; got 3"):
        Rotary(3)
