"""Recurrent and window language models, and hierarchical attention: their mathematics."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import GPT, HierarchicalAttention, RecurrentLM, WindowNetwork, generate

NETS = {
    "lstm": lambda: RecurrentLM(11, hidden=8, depth=2, cell="lstm"),
    "gru": lambda: RecurrentLM(11, hidden=8, cell="gru", tied=True),
    "elman": lambda: RecurrentLM(11, hidden=8, cell="elman", dim=5),
    "window": lambda: WindowNetwork(11, window=3, dim=6, hidden=8),
    "convolutional": lambda: WindowNetwork(11, window=3, dim=6, hidden=8, depth=3),
}


def made(name):
    torch.manual_seed(0)
    return NETS[name]().eval()


@pytest.mark.parametrize("name", NETS)
def test_output_at_t_ignores_tokens_after_t(name):
    net, ids = made(name), torch.randint(11, (2, 12))
    late = ids.clone()
    late[:, 7:] = (late[:, 7:] + 1) % 11
    assert_close(net(ids)[:, :7], net(late)[:, :7])
    assert not torch.allclose(net(ids)[:, 7:], net(late)[:, 7:])


@pytest.mark.parametrize("name, seen", [("window", 3), ("convolutional", 7)])
def test_a_window_sees_as_many_tokens_as_it_says(name, seen):
    net, ids = made(name), torch.randint(11, (1, 20))
    assert net.context == seen
    early, inside = ids.clone(), ids.clone()
    early[:, : 20 - seen] = (early[:, : 20 - seen] + 1) % 11
    inside[:, 20 - seen] = (inside[:, 20 - seen] + 1) % 11
    assert_close(net(ids)[:, -1], net(early)[:, -1])
    assert not torch.allclose(net(ids)[:, -1], net(inside)[:, -1])


def test_one_window_layer_is_bengios_equation():
    net, ids = made("window"), torch.randint(11, (1, 3))
    layer = net.layers[0]
    e = net.tokens(ids)[0]  # (3, D)
    h = torch.tanh(torch.einsum("hdn,nd->h", layer.weight, e) + layer.bias)
    assert_close(net(ids)[0, -1], net.output(h))


@pytest.mark.parametrize("name", ["lstm", "gru", "elman"])
def test_generation_with_a_kept_state_equals_reading_everything_anew(name):
    net = made(name)
    prompts = [[3, 1, 4], [1, 5, 9, 2, 6], [7]]
    fast = generate(net, prompts, tokens=8)
    assert torch.equal(fast, generate(net, prompts, tokens=8, cached=False))
    for row, prompt in zip(fast, prompts, strict=True):  # padding on the left changes nothing
        assert torch.equal(row, generate(net, [prompt], tokens=8)[0])


def test_a_window_network_continues_prompts_of_several_lengths():
    net = made("window")
    prompts = [[3, 1, 4], [1, 5, 9, 2, 6], [7]]
    rows = generate(net, prompts, tokens=8, cached=False, slide=True)
    for row, prompt in zip(rows, prompts, strict=True):
        assert torch.equal(row, generate(net, [prompt], tokens=8, cached=False, slide=True)[0])


def test_tied_weights_are_one_tensor_and_need_one_width():
    net = made("gru")
    assert net.output.weight is net.tokens.weight
    with pytest.raises(InvalidParameter, match="`dim` must be hidden=8 with tied weights; got 4"):
        RecurrentLM(11, hidden=8, dim=4, tied=True)


def test_the_lstm_has_as_many_parameters_as_the_formula_says():
    net = RecurrentLM(100, hidden=7, depth=2, dim=5)
    cells = 4 * ((5 + 7) * 7 + 2 * 7) + 4 * ((7 + 7) * 7 + 2 * 7)
    assert sum(p.numel() for p in net.parameters()) == 100 * 5 + cells + (7 + 1) * 100


def test_tied_gpt_weights_share_storage():
    net = GPT(11, context=8, dim=8, depth=1, heads=2)
    assert net.output is None
    h = torch.randn(1, 1, 8)
    assert_close(net.head(h), h @ net.tokens.weight.T)


# ---- hierarchical attention ----


def documents():
    torch.manual_seed(0)
    net = HierarchicalAttention(20, 3, dim=6, hidden=4).eval()
    ids = torch.randint(1, 20, (2, 3, 5))
    ids[0, 1, 3:] = 0
    ids[0, 2] = 0
    return net, ids


def test_padding_of_words_and_sentences_changes_nothing():
    net, ids = documents()
    wide = torch.zeros(2, 6, 9, dtype=torch.long)
    wide[:, :3, :5] = ids
    assert_close(net(wide), net(ids))
    assert_close(net(ids)[:1], net(ids[:1, :2]))


def test_both_levels_of_weights_sum_to_one_and_padding_has_none():
    net, ids = documents()
    words, sentences = net.attention(ids)
    there = (ids != 0).any(dim=-1)
    assert_close(words.sum(dim=-1), there.float())
    assert_close(sentences.sum(dim=-1), torch.ones(2))
    assert (words[ids == 0] == 0).all()
    assert (sentences[~there] == 0).all()


def test_the_gru_in_both_directions_is_torchs_on_packed_rows():
    net, ids = documents()
    keep = (ids != 0).flatten(0, 1)[:2]  # rows of 5 and 3 words
    x = net.tokens(ids.flatten(0, 1)[:2])
    peer = torch.nn.GRU(6, 4, batch_first=True, bidirectional=True)
    for way, suffix in ((net.words.forwards, "l0"), (net.words.backwards, "l0_reverse")):
        for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(peer, f"{kind}_{suffix}").data = getattr(way.kernel, f"{kind}_l0").data
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, keep.sum(1), batch_first=True)
    wanted, _ = torch.nn.utils.rnn.pad_packed_sequence(peer(packed)[0], batch_first=True)
    assert_close(net.words(x, keep) * keep[..., None], wanted)
