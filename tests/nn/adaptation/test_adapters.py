"""LoRA, bottleneck adapters and learnt prompts: where they begin, what they train, the way back."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import BERT, GPT, T5, EncoderClassifier, Transformer, generate
from castalia.nn.adaptation.bottleneck_adapters import BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA, LoRALinear, merge_lora, unmerge_lora
from castalia.nn.adaptation.soft_prompts import Prompts

IDS = torch.tensor([[3, 1, 4, 1, 5]])
NETWORKS = {
    "GPT": (lambda: GPT(50, context=16, dim=16, depth=2, heads=2), (IDS,)),
    "BERT": (lambda: BERT(50, context=16, dim=16, depth=2, heads=2), (IDS,)),
    "T5": (lambda: T5(50, dim=16, depth=1, heads=2, head_dim=8, hidden=32), (IDS, IDS)),
    "Transformer": (lambda: Transformer(50, dim=16, depth=1, heads=2), (IDS, IDS)),
}
SMALL_PARTS = {"LoRA": LoRA(rank=2, pattern="qkv|out"), "adapters": BottleneckAdapters(4)}


@pytest.mark.parametrize("adapt", SMALL_PARTS.values(), ids=SMALL_PARTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_an_adapted_network_begins_where_it_was_and_trains_only_what_was_added(name, adapt):
    torch.manual_seed(0)
    make, given = NETWORKS[name]
    net = make().eval()
    before = net(*given).detach()
    known = {k: v.clone() for k, v in net.state_dict().items()}
    adapt.apply(net)
    assert_close(net(*given), before)
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(*given).square().mean().backward()
        optimizer.step()
    now = net.state_dict()
    assert all(torch.equal(now[k], v) for k, v in known.items())  # the rest, bit by bit
    assert (net(*given) - before).abs().max() > 1e-3


def adapted(rank: int = 2) -> nn.Module:
    torch.manual_seed(0)
    net = LoRA(rank=rank, pattern="qkv|out").apply(NETWORKS["Transformer"][0]().eval())
    for name, parameter in net.named_parameters():
        if "lora" in name:
            nn.init.normal_(parameter, 0, 0.1)
    return net


def test_merging_keeps_the_answers_and_unmerging_gives_every_bit_back():
    net = adapted()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    wanted = net(IDS, IDS).detach()
    assert_close(merge_lora(net)(IDS, IDS), wanted, atol=1e-5, rtol=1e-5)
    name = "encoder.0.attention.qkv.weight"
    assert not torch.equal(net.state_dict()[name], before[name])
    unmerge_lora(net)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert torch.equal(net(IDS, IDS), wanted)


def test_the_update_has_the_rank_and_the_equation():
    layer = LoRALinear(nn.Linear(12, 9), rank=3, alpha=6.0)
    nn.init.normal_(layer.lora_up)
    x = torch.randn(4, 12)
    base = layer._parameters["weight"]
    expected = x @ base.T + layer.bias + 2.0 * (x @ layer.lora_down.T @ layer.lora_up.T)
    assert_close(layer(x), expected)
    assert int(torch.linalg.matrix_rank(layer.update())) == 3
    assert_close(layer.weight, base + layer.update())


def test_an_adapted_network_can_be_copied_and_pickled():
    net = adapted()
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(IDS, IDS), net(IDS, IDS))


def test_adapters_are_a_small_share_of_the_network():
    net = BERT(1000, context=64, dim=128, depth=4, heads=4)
    whole = sum(p.numel() for p in net.parameters())
    BottleneckAdapters(4).apply(net)
    added = sum(p.numel() for p in net.parameters()) - whole
    assert added == 4 * 2 * (2 * 4 * 128 + 4 + 128)
    assert added / whole < 0.05


@pytest.mark.parametrize(
    ("adapt", "said"),
    [
        (LoRA(pattern="nothing"), "`pattern` must be found"),
        (LoRA(rank=100), "`rank` must be from 1 to 16"),
        (BottleneckAdapters(0), "`width` must be"),
        (BottleneckAdapters(2, "nothing"), "`pattern` must be found"),
        (Prompts(0), "`count` must be"),
    ],
    ids=["pattern", "rank", "width", "parts", "count"],
)
def test_settings_that_cannot_be_are_refused(adapt, said):
    with pytest.raises(InvalidParameter, match=said):
        adapt.apply(NETWORKS["GPT"][0]())


def test_prompts_equal_tokens_with_the_same_vectors():
    torch.manual_seed(0)
    net = GPT(50, context=16, dim=8, depth=2, heads=2).eval()
    wanted = net(torch.tensor([[7, 9, 3, 1, 4]]))[:, 2:]
    prompted = Prompts(2).apply(net)
    with torch.no_grad():
        prompted.net.tokens.prompts.copy_(net.tokens.weight[[7, 9]])
    assert_close(prompted(IDS[:, :3]), wanted)
    assert prompted.context == 14


def test_prompts_behind_the_first_token_leave_it_first_and_train_alone():
    torch.manual_seed(0)
    net = EncoderClassifier(BERT(50, context=16, dim=8, depth=1, heads=2), 3, end=2, padding=0)
    net.encoder = Prompts(3, at=1).apply(net.encoder)
    net(torch.tensor([[1, 7, 2, 0]])).sum().backward()
    trained = {name for name, p in net.named_parameters() if p.grad is not None}
    assert trained == {"encoder.net.tokens.prompts", "head.weight", "head.bias"}


def test_padding_never_changes_what_a_prompted_network_says():
    torch.manual_seed(0)
    net = Prompts(2).apply(GPT(50, context=16, dim=8, depth=2, heads=2).eval())
    padded = torch.nn.functional.pad(IDS, (0, 3))
    keep = torch.arange(8)[None] < 5
    assert_close(net(padded, keep=keep)[:, :5], net(IDS))


def test_a_text_conditions_a_frozen_language_model_and_changes_no_weight():
    torch.manual_seed(0)
    net = GPT(12, context=24, dim=32, depth=1, heads=2)
    rows = torch.tensor([[1, *range(3, 11)], [2, *range(10, 2, -1)]])  # 1: upwards, 2: downwards
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        logits = net(rows[:, :-1])
        nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).backward()
        optimizer.step()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    said = generate(net, [[1, 3, 4], [2, 10, 9]], tokens=3).tolist()
    assert said == [[5, 6, 7], [8, 7, 6]]  # the same weights do what the prompt asks for
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
