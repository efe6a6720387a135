"""Decode steps by kernels of our own against the network's own steps."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.nets.language import GPT, generate
from castalia.nets.language.decoding import fused_decode as fused
from castalia.nets.language.decoding.fused_decode import ManyRows, OneRow, fused_step
from castalia.nets.language.decoding.greedy_choice import write_greatest
from castalia.nets.language.decoding.prompt_tensors import Reader, as_prompt
from castalia.nn.attention import TransformerEncoderBlock

ONE, PADDED = [[3, 1, 4]], [[3, 1, 4], [5], [9, 2]]
CASES = {
    "one row": (ONE, {"dim": 512, "heads": 8}, OneRow),
    "one row, many slots": ([[3] * 300], {"dim": 512, "heads": 8}, OneRow),
    "one row, no biases": (ONE, {"dim": 768, "heads": 12, "bias": False, "tied": False}, OneRow),
    "one row, wide heads": (ONE, {"dim": 1024, "heads": 8}, OneRow),
    "one row of a small network": (ONE, {"dim": 64, "heads": 4}, ManyRows),
    "rows": ([[3, 1], [4, 1]], {"dim": 64, "heads": 4}, ManyRows),
    "padded rows": (PADDED, {"dim": 64, "heads": 2, "bias": False}, ManyRows),
    "rows with wide heads": (PADDED, {"dim": 256, "heads": 2}, ManyRows),
}


def lively(**sizes):
    """A network with weights so large that every part of it matters."""
    torch.manual_seed(0)
    net = GPT(97, context=400, depth=3, **sizes).eval()
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return net


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("case", CASES)
@torch.no_grad()
def test_a_fused_step_gives_the_scores_of_the_network(case, dtype):
    prompts, sizes, kind = CASES[case]
    net = lively(**sizes).to("cuda", dtype)
    read = Reader(net, as_prompt(prompts, None, net.tokens.weight.device), None)
    plain, own = read.cache(16), read.cache(16)
    step = fused_step(net, own)
    assert type(step) is kind
    last = read(read.first.ids, None, plain).argmax(dim=-1)[:, None]
    read(read.first.ids, None, own)
    close = {"atol": 1e-4, "rtol": 1e-4} if dtype is torch.float32 else {"atol": 0.5, "rtol": 0.1}
    for _ in range(8):
        expected = read(last, None, plain)
        assert_close(step(last).float(), expected, **close)
        last = expected.argmax(dim=-1)[:, None]
    assert own.seen == plain.seen
    assert own.position.equal(plain.position)


@pytest.mark.gpu
@pytest.mark.parametrize("prompts", [ONE, PADDED])
def test_long_texts_are_the_same_by_fused_steps(prompts, monkeypatch):
    net = lively(dim=512, heads=8).cuda()
    used = []
    real = fused_step
    monkeypatch.setattr(
        "castalia.nets.language.decoding.recordings.fused_step",
        lambda *args: used.append(real(*args)) or used[-1],
    )
    plain = generate(net, prompts, tokens=70, cached=False)
    for _ in range(3):  # the second time a kept recording is replayed, and the prompts' recorded
        assert generate(net, prompts, tokens=70).equal(plain)
    others = [[7 * token % 97 for token in prompt] for prompt in prompts]
    found = generate(net, others, tokens=70)
    assert not found.equal(plain)
    assert found.equal(generate(net, others, tokens=70, cached=False))
    assert len(used) == 1
    assert used[0] is not None
    stopped = generate(net, prompts, tokens=70, stop=int(plain[0, 40]), pad=96)
    assert (stopped[0] == 96).any()


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 5, 64])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_best_tokens_are_written_by_kernels(rows, layout):
    torch.manual_seed(0)
    shape = (rows, 50_257) if layout == "rows" else (50_257, rows)
    logits = torch.randn(shape, device="cuda")
    logits = logits if layout == "rows" else logits.T
    sound, cursor = torch.zeros(rows, device="cuda"), torch.tensor([1], device="cuda")
    written = torch.zeros(3, rows, dtype=torch.long, device="cuda")
    last = torch.zeros(rows, 1, dtype=torch.long, device="cuda")
    assert write_greatest(logits, sound, written, cursor, last)
    assert last[:, 0].equal(logits.argmax(dim=-1))
    assert written[1].equal(last[:, 0])
    assert written[[0, 2]].eq(0).all()
    assert cursor.item() == 2
    assert not sound.isnan().any()
    for wrong in (torch.nan, torch.inf):
        spoilt = logits.clone()
        spoilt[0, 7] = wrong
        write_greatest(spoilt, sound, written, torch.tensor([0], device="cuda"), last)
        assert sound.isnan().tolist() == [True] + [False] * (rows - 1)


def test_without_a_gpu_networks_take_their_own_steps():
    net = GPT(9, context=8, dim=64, depth=1, heads=4)
    assert fused_step(net, net.cache(1, 8)) is None
    state = torch.zeros(1), torch.zeros(2, 1).long(), torch.zeros(1).long(), torch.zeros(1, 1)
    assert not write_greatest(torch.zeros(1, 9), *state)


@pytest.mark.parametrize(
    ("changed", "plain"),
    [
        (lambda block: None, True),
        (lambda block: setattr(block.attention, "out", nn.Sequential(block.attention.out)), False),
        (lambda block: setattr(block.feed_forward, "gate", nn.Linear(8, 32)), False),
        (lambda block: setattr(block.attention, "layout", "chunked"), False),
    ],
)
def test_only_blocks_of_plain_layers_are_known_to_the_kernels(changed, plain):
    block = TransformerEncoderBlock(8, heads=2)
    changed(block)
    assert fused._is_plain(block) is plain
