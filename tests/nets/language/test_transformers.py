"""Every transformer: causality, padding, sizes, and what tells the kinds apart."""

import pytest
import torch
from tests.nets.language.peers import lively
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate.attention import attention_weights
from castalia.nets.language import (
    BART,
    BERT,
    GPT,
    T5,
    RoBERTa,
    Transformer,
    TransformerEncoder,
)
from castalia.nn.attention import full, prefix

SMALL = {"dim": 16, "depth": 2, "heads": 4, "hidden": 24}
DRAW = torch.Generator().manual_seed(0)
IDS, SOURCE = torch.randint(30, (2, 9), generator=DRAW), torch.randint(30, (2, 7), generator=DRAW)

ONE_PART = {
    "gpt": lambda: GPT(30, context=16, **SMALL),
    "gpt post-norm": lambda: GPT(30, context=16, pre_norm=False, **SMALL),
    "gpt rotary": lambda: GPT(30, context=16, rotary=True, **SMALL),
}
TWO_PARTS = {
    "transformer": lambda: Transformer(30, **SMALL),
    "transformer pre-norm": lambda: Transformer(30, 30, pre_norm=True, **SMALL),
    "t5": lambda: T5(30, head_dim=6, **SMALL),
    "bart": lambda: BART(30, context=16, **SMALL),
}
ENCODERS = {
    "bert": lambda: BERT(30, context=16, **SMALL),
    "roberta": lambda: RoBERTa(30, context=16, **SMALL),
    "encoder": lambda: TransformerEncoder(30, 5, pool="none", **SMALL),
    "learned": lambda: TransformerEncoder(30, 5, pool="none", positions="learned", **SMALL),
}
ALL = {**ONE_PART, **TWO_PARTS, **ENCODERS}


def logits(name, net, ids, **settings):
    return net(SOURCE, ids, **settings) if name in TWO_PARTS else net(ids, **settings)


def size(net):
    return sum(p.numel() for p in net.parameters())


@pytest.mark.parametrize("name", [*ONE_PART, *TWO_PARTS])
def test_the_future_changes_no_bit_of_a_decoder(name):
    net = lively(ALL[name]())
    later = IDS.clone()
    later[:, 5:] = (later[:, 5:] + 7) % 30
    before, after = logits(name, net, IDS), logits(name, net, later)
    assert before[:, :5].equal(after[:, :5])
    assert not before[:, 5:].equal(after[:, 5:])


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_sees_the_future(name):
    net = lively(ALL[name]())
    later = IDS.clone()
    later[:, 8] = (later[:, 8] + 7) % 30
    assert (net(IDS)[:, 0] - net(later)[:, 0]).abs().max() > 1e-3


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", [*ONE_PART, *ENCODERS])
def test_padding_on_either_side_changes_no_result(name, side):
    net = lively(ALL[name]())
    short = IDS[:1, :5]
    filler = torch.tensor([[9, 9, 3]])
    parts = [filler, short] if side == "left" else [short, filler]
    real = torch.zeros(1, 8, dtype=torch.bool)
    real[:, 3:] = side == "left"
    real[:, :5] |= side == "right"
    padded = net(torch.cat(parts, dim=1), keep=real)[real]
    assert_close(padded, net(short)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", TWO_PARTS)
def test_padding_of_the_source_and_the_answer_changes_no_result(name):
    net = lively(ALL[name]())
    ids = torch.cat([SOURCE[:1, :4], torch.tensor([[9, 9]])], dim=1)
    answer = torch.cat([IDS[:1, :3], torch.tensor([[9]])], dim=1)
    keep, answer_keep = torch.arange(6)[None] < 4, torch.arange(4)[None] < 3
    out = net(ids, answer, keep=keep, decoder_keep=answer_keep)[:, :3]
    assert_close(out, net(SOURCE[:1, :4], IDS[:1, :3]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_gets_a_gradient(name):
    net = ALL[name]()
    logits(name, net, IDS).pow(2).sum().backward()
    unused = {"pooler", "next_sentence"}
    for path, parameter in net.named_parameters():
        if path.split(".")[0] not in unused:
            assert parameter.grad is not None, path
            assert parameter.grad.abs().sum() > 0, path


@pytest.mark.parametrize("name", ALL)
def test_attention_maps_of_a_network_are_caught_and_sum_to_one(name):
    net = lively(ALL[name]())
    found = attention_weights(net, (SOURCE, IDS) if name in TWO_PARTS else IDS)
    assert len(found) == (6 if name in TWO_PARTS else 2)
    for one in found:
        assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))


@pytest.mark.parametrize("name", ["gpt", "bert", "t5"])
def test_a_network_is_one_graph_for_the_compiler(name):
    net = lively(ALL[name]())
    keep = torch.arange(7)[None] < torch.tensor([[4], [7]])
    args = (SOURCE, IDS) if name in TWO_PARTS else (SOURCE,)
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    assert_close(compiled(*args, keep=keep), net(*args, keep=keep))


@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # processors without bf16
@pytest.mark.parametrize("name", ["gpt", "bert", "t5", "bart"])
def test_half_precision_gives_nearly_the_same(name):
    net = lively(ALL[name]())
    keep = torch.arange(7)[None] < torch.tensor([[4], [7]])
    args = (SOURCE, IDS) if name in TWO_PARTS else (SOURCE,)
    exact = net(*args, keep=keep)
    with torch.autocast("cpu", torch.bfloat16):
        near = net(*args, keep=keep)
    near.float().sum().backward()
    assert (near.float() - exact).abs().mean() < 0.05 * exact.std()
    half = net.bfloat16()(*args, keep=keep)
    assert half.dtype == torch.bfloat16
    assert (half.float() - exact).abs().mean() < 0.05 * exact.std()


def test_a_decoder_can_read_a_prefix_in_both_directions():
    net = lively(ALL["gpt"]())
    later = IDS.clone()
    later[:, 2] = (later[:, 2] + 7) % 30
    mask = prefix(3)
    assert not net(IDS, mask=mask)[:, 0].equal(net(later, mask=mask)[:, 0])
    later = IDS.clone()
    later[:, 5] = (later[:, 5] + 7) % 30
    assert net(IDS, mask=mask)[:, :5].equal(net(later, mask=mask)[:, :5])
    later[:, 8] = (later[:, 8] + 7) % 30
    assert not net(IDS, mask=full())[:, 0].equal(net(later, mask=full())[:, 0])


def test_without_positions_an_encoder_reads_a_bag_of_tokens():
    net = lively(TransformerEncoder(30, 5, positions="none", **SMALL))
    order = torch.randperm(9, generator=DRAW)
    assert_close(net(IDS[:, order]), net(IDS), atol=1e-5, rtol=1e-5)
    ordered = lively(TransformerEncoder(30, 5, **SMALL))
    assert (ordered(IDS[:, order]) - ordered(IDS)).abs().max() > 1e-2


def test_without_blocks_it_is_a_bag_of_words():
    net = TransformerEncoder(
        30, 5, dim=8, depth=0, heads=2, positions="none", pool="sum", pre_norm=True, pad=0
    )
    ids = torch.tensor([[3, 1, 4, 1, 0, 0]])  # two of padding
    words = net.tokens.weight[[3, 1, 4, 1]].sum(dim=0) / 2  # the root of 4
    assert_close(net(ids)[0], net.output(words))
    assert sorted(name for name, _ in net.named_parameters()) == [
        "output.bias",
        "output.weight",
        "tokens.weight",
    ]


@pytest.mark.parametrize("pool", ["mean", "sum", "attention", "first"])
def test_padding_has_no_share_in_the_summary(pool):
    net = lively(TransformerEncoder(30, 5, pool=pool, **SMALL))
    keep = torch.arange(9)[None] < 6
    assert_close(net(IDS[:1], keep=keep), net(IDS[:1, :6]), atol=1e-5, rtol=1e-5)


def test_the_mean_of_the_vectors_is_classified():
    net = lively(TransformerEncoder(30, 5, **SMALL))
    assert_close(net(IDS), net.output(net.features(IDS).mean(1)))


def test_a_sum_of_three_vectors_enters_bert():
    net = lively(ALL["bert"]())
    kinds = torch.tensor([[0] * 5 + [1] * 4] * 2)
    tables = net.tokens.weight, net.segments.weight, net.positions.weight
    expected = tables[0][IDS] + tables[1][kinds] + tables[2][:9]
    assert_close(net.embed(IDS, kinds), expected)
    assert_close(net.embed(IDS), tables[0][IDS] + tables[1][0] + tables[2][:9])
    assert_close(net.layers(IDS, kinds)[0], net.norm(expected))


def test_positions_of_roberta_begin_at_row_two():
    net = lively(ALL["roberta"]())
    expected = net.tokens.weight[IDS] + net.segments.weight[0] + net.positions.weight[2:11]
    assert_close(net.embed(IDS), expected)


def test_tied_weights_are_one_table():
    net = ALL["gpt"]()
    assert size(GPT(30, context=16, tied=False, **SMALL)) == size(net) + 30 * 16
    h = net.features(IDS)
    assert_close(net(IDS), h @ net.tokens.weight.T)


# ---- published sizes ----

GPTS = {
    "GPT": ({"vocabulary": 40478, "context": 512, "pre_norm": False}, 116_534_784),
    "GPT-2": ({"vocabulary": 50257}, 124_439_808),
    "GPT-2 medium": ({"vocabulary": 50257, "dim": 1024, "depth": 24, "heads": 16}, 354_823_168),
    "GPT-2 large": ({"vocabulary": 50257, "dim": 1280, "depth": 36, "heads": 20}, 774_030_080),
    "GPT-2 XL": ({"vocabulary": 50257, "dim": 1600, "depth": 48, "heads": 25}, 1_557_611_200),
    "GPT-3": (
        {"vocabulary": 50257, "context": 2048, "dim": 12288, "depth": 96, "heads": 96},
        174_604_259_328,
    ),
}


@pytest.mark.parametrize("name", GPTS)
def test_the_sizes_of_gpt_are_the_published_ones(name):
    settings, expected = GPTS[name]
    with torch.device("meta"):
        net = GPT(**settings)
    v, t, d, n = net.vocabulary, net.context, net.dim, len(net.blocks)
    last = 2 * d if settings.get("pre_norm", True) else 0
    assert size(net) == expected == (v + t) * d + n * (12 * d * d + 13 * d) + last


BODY = {"masked": False, "next_sentence": False}
LARGE = {"dim": 1024, "depth": 24, "heads": 16}


@pytest.mark.parametrize(
    "build, expected",
    [
        (lambda: BERT(30522, **BODY), 109_482_240),
        (lambda: BERT(30522, **BODY, **LARGE), 335_141_888),
        (lambda: RoBERTa(50265, pooler=True, masked=False), 124_645_632),
        (lambda: RoBERTa(50265, pooler=True, masked=False, **LARGE), 355_359_744),
        (lambda: T5(32128), 60_506_624),
        (lambda: T5(32128, dim=768, depth=12, heads=12, hidden=3072), 222_903_552),
        (lambda: T5(32128, hidden=4096, **LARGE), 737_668_096),
        (lambda: BART(50265), 139_420_416),
        (lambda: BART(50265, dim=1024, depth=12, heads=16), 406_291_456),
    ],
    ids=[
        "BERT base",
        "BERT large",
        "RoBERTa base",
        "RoBERTa large",
        "T5 small",
        "T5 base",
        "T5 large",
        "BART base",
        "BART large",
    ],
)
def test_the_sizes_of_encoders_and_pairs_are_the_published_ones(build, expected):
    with torch.device("meta"):
        assert size(build()) == expected


def test_bert_has_the_size_of_the_formula():
    v, t, d, n = 30522, 512, 768, 12
    blocks = n * (12 * d * d + 13 * d)
    with torch.device("meta"):
        assert size(BERT(v, **BODY)) == (v + t + 2) * d + 2 * d + blocks + d * d + d


def test_the_original_transformer_has_six_blocks_on_each_side():  # WE-115
    with torch.device("meta"):
        net = Transformer(100)
    assert (len(net.encoder), len(net.decoder), net.dim, net.heads) == (6, 6, 512, 8)


# ---- learning ----


def learn(net, batch, steps, lr):
    adam = torch.optim.Adam(net.parameters(), lr=lr)
    net.train()
    for step in range(steps):
        adam.zero_grad()
        scores, target = batch(net, step)
        nn.functional.cross_entropy(scores.flatten(0, -2), target.flatten()).backward()
        adam.step()
    return net.eval()


def test_a_small_gpt_learns_hello_by_heart():
    torch.manual_seed(0)
    text = torch.tensor([[ord(c) - ord("a") for c in "hellohellohello"]])
    net = GPT(26, context=16, dim=16, depth=2, heads=2)
    learn(net, lambda net, _: (net(text[:, :-1]), text[:, 1:]), 60, 0.02)
    loss = nn.functional.cross_entropy(net(text[:, :-1])[0], text[0, 1:])
    assert loss < 0.05


def test_an_encoder_tells_orders_that_a_bag_of_words_cannot():
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(2, 12, (400, 8), generator=draw)
    places = torch.rand(400, 8, generator=draw).argsort(1)[:, :2]
    rows = torch.arange(400)
    ids[rows, places[:, 0]], ids[rows, places[:, 1]] = 0, 1
    label = (places[:, 0] < places[:, 1]).long()  # is 0 before 1?
    accuracy = {}
    for positions in ("sinusoidal", "none"):
        net = TransformerEncoder(12, 2, dim=16, depth=2, heads=2, positions=positions)

        def batch(net, step):
            chosen = (torch.arange(100) + 100 * step) % 300
            return net(ids[chosen]), label[chosen]

        learn(net, batch, 100, 0.01)
        accuracy[positions] = (net(ids[300:]).argmax(1) == label[300:]).float().mean().item()
    assert accuracy["sinusoidal"] > 0.95
    assert accuracy["none"] < 0.7


# ---- what cannot be done ----


@pytest.mark.parametrize("name", ["gpt", "bert", "roberta", "bart"])
def test_a_text_longer_than_the_context_is_told(name):
    net, ids = ALL[name](), torch.zeros(1, 17, dtype=torch.long)
    with pytest.raises(InvalidData, match=r"at most (context=)?16 tokens; got 17"):
        logits(name, net, ids)


def test_heads_that_were_left_out_are_named():
    net = BERT(30, context=16, masked=False, next_sentence=False, pooler=False, **SMALL)
    with pytest.raises(InvalidParameter, match="`masked` must be True"):
        net(IDS)
    with pytest.raises(InvalidParameter, match="`next_sentence` must be True"):
        net.judge(net.features(IDS))
    assert net.pool(net.features(IDS)).equal(net.features(IDS)[:, 0])
    with pytest.raises(InvalidParameter, match="`pooler` must be True with next_sentence=True"):
        BERT(30, pooler=False)


def test_an_unknown_pool_is_named():
    with pytest.raises(InvalidParameter, match="`pool` must be `mean`.*got 'max'"):
        TransformerEncoder(30, 5, pool="max")
