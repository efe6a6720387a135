"""The mathematics of Llama's network: grouped heads, windows, stretched positions, sizes."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import GPT, Llama, generate
from castalia.nn.attention import MultiHeadAttention, Rotary, causal

IDS = torch.tensor([[5, 9, 2, 30, 11, 7, 1, 4, 8], [8, 3, 3, 21, 12, 19, 2, 2, 6]])
SIZES = {"context": 32, "dim": 16, "depth": 3, "heads": 4, "kv_heads": 2}


def lively(net, seed=0):
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in net.named_parameters():
            gain = 1.0 if "norm" in name else 0.0
            weight.copy_(gain + 0.3 * torch.randn(weight.shape, generator=source))
    return net.eval()


def llama(**changes):
    return lively(Llama(40, **{**SIZES, **changes}))


# ---- attention ----


def test_grouped_heads_are_heads_whose_keys_and_values_are_the_same():
    x = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(0))
    grouped, whole = MultiHeadAttention(12, 6, kv_heads=2), MultiHeadAttention(12, 6)
    parts = [grouped.qkv.weight[:12], *grouped.qkv.weight[12:].view(2, 2, 2, 12)]  # q, k, v
    biases = [grouped.qkv.bias[:12], *grouped.qkv.bias[12:].view(2, 2, 2)]
    repeat = [part.repeat_interleave(3, dim=0).flatten(0, 1) for part in parts[1:]]
    with torch.no_grad():
        whole.qkv.weight.copy_(torch.cat([parts[0], *repeat]))
        again = [bias.repeat_interleave(3, dim=0).flatten() for bias in biases[1:]]
        whole.qkv.bias.copy_(torch.cat([biases[0], *again]))
        whole.out.load_state_dict(grouped.out.state_dict())
    for mask in (None, causal()):
        assert_close(grouped(x, mask=mask), whole(x, mask=mask))
        assert_close(grouped.weights(x, mask=mask), whole.weights(x, mask=mask))
    assert_close(grouped(x, x[:, :3]), whole(x, x[:, :3]))


def test_heads_that_cannot_be_grouped_are_refused():
    with pytest.raises(InvalidParameter, match="`kv_heads` must divide heads=6; got 4"):
        MultiHeadAttention(12, 6, kv_heads=4)
    with pytest.raises(InvalidParameter, match="`kv_heads` must be None with layout='chunked'"):
        MultiHeadAttention(12, 6, kv_heads=2, layout="chunked")


# ---- positions ----

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@pytest.mark.parametrize("scaling", [{"rope_type": "linear", "factor": 4.0}, LLAMA3])
def test_stretched_frequencies_are_those_of_transformers(scaling):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=64,
        num_attention_heads=2,
        max_position_embeddings=512,
        rope_parameters={**scaling, "rope_theta": 500.0},
    )
    theirs, _ = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config)
    ours = Rotary(32, base=500.0, scaling=scaling).frequencies
    assert_close(ours, theirs)
    assert not torch.allclose(ours, Rotary(32, base=500.0).frequencies)


def test_positions_survive_half_precision_and_networks_without_memory():
    x, places = torch.ones(1, 1, 3, 8), torch.tensor([0, 1000, 4001])
    exact = Rotary(8)(x, places)
    assert_close(Rotary(8).bfloat16()(x, places), exact)
    with torch.device("meta"):
        rotary = Rotary(8)
    assert_close(rotary(x, places), exact)


def test_an_unknown_stretch_is_named():
    with pytest.raises(InvalidParameter, match="`linear` or `llama3`; got 'yarn'"):
        Rotary(8, scaling={"rope_type": "yarn", "factor": 2.0})
    with pytest.raises(InvalidParameter, match="must have `factor`, numbers above 0; got"):
        Rotary(8, scaling={"rope_type": "linear", "factor": 0})


# ---- the network ----


@pytest.mark.parametrize("changes", [{}, {"window": 4}, {"window": 4, "unwindowed": 2}])
def test_generation_with_a_cache_is_generation_without(changes):
    net, prompts = llama(**changes), [[5, 9, 2, 30, 11, 7], [8, 3]]
    written = generate(net, prompts, tokens=12)
    assert written.equal(generate(net, prompts, tokens=12, cached=False))
    assert len(set(written.flatten().tolist())) > 4


def test_a_window_hides_what_is_far_behind_in_its_blocks_only():
    other = IDS.clone()
    other[:, 0] = 1
    net = llama(window=3, depth=2)  # two blocks see 2 (3 - 1) tokens back
    moved = (net(IDS) - net(other)).abs().amax(dim=(0, 2)) > 1e-6
    assert moved.tolist() == [True] * 5 + [False] * 4
    net = llama(window=3, depth=2, unwindowed=1)
    assert ((net(IDS) - net(other)).abs().amax(dim=(0, 2)) > 1e-6).all()
    assert_close(llama(window=9)(IDS), llama()(IDS))


def test_a_token_sees_no_later_one_and_no_padding():
    net, later = llama(), IDS.clone()
    later[:, 5:] = 1
    assert_close(net(IDS)[:, :5], net(later)[:, :5])
    keep = torch.arange(9) >= torch.tensor([[4], [0]])
    alone = net(IDS[:1, 4:])
    assert_close(net(IDS, keep=keep)[:1, 4:], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    "vocabulary, sizes, count",
    [
        (32_000, (4096, 32, 32, 32, 11008, False, ()), 6_738_415_616),
        (128_256, (2048, 16, 32, 8, 8192, True, ()), 1_235_814_400),
        (128_256, (4096, 32, 32, 8, 14336, False, ()), 8_030_261_248),
        (32_000, (4096, 32, 32, 8, 14336, False, ()), 7_241_732_096),
        (151_936, (896, 24, 14, 2, 4864, True, ("qkv",)), 494_032_768),
    ],
    ids=["Llama 2 7B", "Llama 3.2 1B", "Llama 3.1 8B", "Mistral 7B", "Qwen2 0.5B"],
)
def test_published_sizes_have_their_number_of_parameters(vocabulary, sizes, count):
    names = ("dim", "depth", "heads", "kv_heads", "hidden", "tied", "biases")
    with torch.device("meta"):
        net = Llama(vocabulary, **dict(zip(names, sizes, strict=True)))
    assert sum(p.numel() for p in net.parameters()) == count


def test_the_sizes_of_a_network_build_it_again():
    given = {"window": 5, "unwindowed": 1, "biases": ("qkv",), "scaling": LLAMA3, "tied": True}
    net = llama(**given, base=123.0, head_dim=6, hidden=20, dropout=0.1, activation="gelu")
    again = Llama(40, **net.sizes).eval()
    again.load_state_dict(net.state_dict())
    assert again.sizes == net.sizes
    assert_close(again(IDS), net(IDS))


def test_what_cannot_be_built_is_refused():
    with pytest.raises(InvalidParameter, match="`biases` must be .*; got 'qkv'"):
        Llama(40, biases="qkv")
    with pytest.raises(InvalidParameter, match="`heads` must divide dim=16; got 3"):
        Llama(40, dim=16, heads=3)


def test_the_cache_of_grouped_heads_is_smaller():
    wide, narrow = GPT(9, context=8, dim=16, heads=4, depth=1), llama(depth=1)
    assert narrow.cache(1, 8).layers[0].keys.shape == (1, 2, 16, 4)
    assert wide.cache(1, 8).layers[0].keys.shape == (1, 4, 16, 4)
