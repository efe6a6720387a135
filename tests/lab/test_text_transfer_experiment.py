"""T5's comparisons: what an arm reads, has, and costs is counted exactly at any size."""

from functools import cache

import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from castalia import lab
from castalia.lab import text_transfer_experiment
from castalia.lab.text_transfer_experiment import QUICK
from castalia.lab.transfer import (
    ARCHITECTURES,
    OBJECTIVES,
    TASKS,
    VOCABULARY,
    TextToTextLM,
    block_parameters,
    cross_parameters,
    forward_flops,
    task,
    unlabelled,
)
from castalia.lab.transfer.invented_language import END, FIRST_WORD, MASK, PAD, SENTINELS, WIDTH
from castalia.lab.transfer.transfer_networks import SIZES
from castalia.nets.language import GPT, T5


@cache
def numbers():
    return lab.run("text-transfer", quick=True).numbers


def words(row):
    return [i for i in row.tolist() if i != PAD]


def test_each_objective_is_a_text_that_answers_a_text():
    whole = {name: unlabelled(40, name) for name in OBJECTIVES}
    texts = [words(row) for row in whole["language model"].answers]
    assert all(words(row) == [END] for row in whole["language model"].sources)
    for k, text in enumerate(texts):
        first, second = (words(part[k]) for part in whole["prefix LM"][:2])
        assert first[:-1] + second == text
        assert first[-1] == END
        damaged, answer = (words(part[k]) for part in whole["masked words"][:2])
        assert answer == text
        assert all(a in (b, MASK) for a, b in zip(damaged, text, strict=True))
        left, cut = (words(part[k]) for part in whole["cut spans"][:2])
        spans = [i for i in cut if i not in SENTINELS]
        assert sorted(i for i in left if i not in SENTINELS) + sorted(spans) != []
        assert len([i for i in left if i >= FIRST_WORD]) + len(spans) - 1 == len(text) - 1


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_harness_reports_a_score_for_each_objective(objective):
    assert 0 <= numbers()[f"objective: {objective}"] <= 1
    assert "objective: labels alone" in numbers()


def test_encoder_and_decoder_have_twice_the_weights_and_sharing_or_halving_leaves_one_half():
    nets = {name: build(4) for name, build in ARCHITECTURES.items()}
    blocks = {name: block_parameters(net) for name, net in nets.items()}
    one = 4 * (4 * SIZES["dim"] ** 2 + 2 * SIZES["dim"] * SIZES["hidden"])
    assert blocks == {
        "encoder–decoder": 2 * one,
        "shared": one,
        "half the depth": one,
        "language model": one,
        "prefix LM": one,
    }
    shared, own = nets["shared"], nets["encoder–decoder"]
    assert shared.decoder[0].feed_forward is shared.encoder[0].feed_forward
    assert own.decoder[0].feed_forward is not own.encoder[0].feed_forward
    assert cross_parameters(shared) == cross_parameters(own) == 4 * 4 * SIZES["dim"] ** 2
    assert cross_parameters(nets["language model"]) == 0


def counted(vocabulary, dim, depth, hidden):
    """Return the weights of T5 and of a language model of the same blocks, by the formulas."""
    block = 4 * dim**2 + 2 * dim * hidden + 2 * dim
    both = 2 * depth * block + depth * (4 * dim**2 + dim) + 2 * dim
    return vocabulary * dim + both, vocabulary * dim + depth * block + dim


def test_at_the_size_of_t5_base_the_ratio_is_two_to_one_embeddings_and_all():
    small = {"dim": 8, "depth": 3, "hidden": 20}
    nets = T5(50, heads=2, head_dim=4, **small), GPT(50, heads=2, bias=False, rotary=True, **small)
    sums = [sum(p.numel() for p in net.parameters()) for net in nets]
    tables = 2 * 32 * 2  # relative positions, for each head and half
    assert (sums[0] - tables, sums[1]) == counted(50, **small)
    both, one = counted(32_128, 768, 12, 3072)
    assert both + 2 * 32 * 12 == 222_903_552
    assert both / one == pytest.approx(2, rel=0.03)


def test_costs_are_those_of_the_table_and_of_torchs_counter():
    assert numbers()["compute: shared"] == 1
    assert numbers()["compute: half the depth"] == 0.5
    assert numbers()["compute: language model"] == numbers()["compute: prefix LM"]
    ids = torch.full((1, WIDTH), FIRST_WORD)
    for name, build in ARCHITECTURES.items():
        net, counter = build(2), FlopCounterMode(display=False)
        with counter, torch.no_grad():
            net(ids, ids, keep=ids != PAD)
        products = sum(  # of queries and keys, where torch counts them
            count
            for kind, count in counter.get_flop_counts()["Global"].items()
            if "attention" in str(kind)
        )
        head = 2 * WIDTH * SIZES["dim"] * VOCABULARY
        assert forward_flops(net) == counter.get_total_flops() - products - head, name


def test_five_strategies_run_in_equal_steps_and_compute():
    arms = {
        name.removeprefix("strategy: "): value
        for name, value in numbers().items()
        if name.startswith("strategy: ")
    }
    assert list(arms) == [
        "pretrain, fine-tune",
        "multi-task",
        "multi-task, fine-tune",
        "leave one out, fine-tune",
        "supervised, fine-tune",
    ]
    assert arms["pretrain, fine-tune"] == numbers()["scaling: baseline"]
    found = text_transfer_experiment.strategies(QUICK)
    assert len({(arm.steps, arm.flops, arm.parameters) for arm in found}) == 1


def test_four_times_the_compute_is_the_same_whatever_it_is_spent_on():
    arms = ("4 × steps", "4 × batch", "2 × size, 2 × steps", "4 × size", "4 members")
    assert {numbers()[f"compute: {arm}"] for arm in arms} == {4.0}
    assert all(f"scaling: {arm}" in numbers() for arm in arms)


def test_a_prefix_lm_reads_its_source_from_both_sides_and_a_language_model_does_not():
    torch.manual_seed(0)
    ids = torch.randint(FIRST_WORD, VOCABULARY, (1, 6))
    later = ids.clone()
    later[0, -1] = FIRST_WORD + (later[0, -1] - FIRST_WORD + 1) % 8
    for name in ("language model", "prefix LM"):
        net = ARCHITECTURES[name](1).eval()
        assert isinstance(net, TextToTextLM)
        seen = []
        net.decoder.blocks[0].register_forward_hook(lambda m, a, out, seen=seen: seen.append(out))
        answer = torch.tensor([[PAD, FIRST_WORD]])
        one, other = (net(x, answer, keep=x != PAD) for x in (ids, later))
        assert (one - other).abs().max() > 1e-4  # the answer sees the whole source
        same = torch.equal(seen[0][0, 0], seen[1][0, 0])
        assert same == (name == "language model")


def test_padding_of_a_source_changes_no_answer():
    torch.manual_seed(0)
    ids = torch.randint(FIRST_WORD, VOCABULARY, (1, 5))
    padded = torch.cat([ids, torch.full((1, 3), PAD)], dim=1)
    answer = torch.tensor([[PAD, FIRST_WORD, END]])
    for name, build in ARCHITECTURES.items():
        net = build(2).eval()
        one, other = (net(x, answer, keep=x != PAD) for x in (ids, padded))
        assert_close(one, other, msg=lambda said, name=name: f"{name}: {said}")


def test_tasks_ask_for_topics_in_words():
    for name in TASKS:
        asked = task(name, 200)
        assert set(asked.answers[:, 0].tolist()) == set(asked.candidates)
        assert asked.sources.shape == (200, WIDTH)
        assert len({row[0] for row in asked.sources.tolist()}) == 1  # the prefix
    topic = task("topic", 200)
    own = (topic.sources[:, 1:9] - FIRST_WORD) // 16 == (topic.answers[:, :1] - 6)
    assert own.float().mean() > 0.7
