"""Cross-entropy of the next token, and the state that is carried from block to block."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.data.batches import Samples
from castalia.data.text import TokenRows, cut_blocks
from castalia.data.text.stream_adapter import as_streams
from castalia.models.language import GPTLanguageModel
from castalia.nets.language import GPT, RecurrentLM
from castalia.nn import network_modes
from castalia.objectives import CarriedLM, CausalLM
from castalia.objectives import next_token as module
from castalia.protocols import Batch
from castalia.train import Training


def gpt():
    torch.manual_seed(0)
    return GPT(11, context=8, dim=8, depth=1, heads=2)


def test_the_loss_is_torchs_cross_entropy_with_the_next_token():
    net, ids = gpt(), torch.randint(11, (3, 8))
    loss = CausalLM().terms(net, Batch(ids[:, :-1], ids[:, 1:]), "train")["loss"]
    assert_close(loss, F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()))
    assert_close(CausalLM().terms(net, Batch(ids), "train")["loss"], loss)
    labels = torch.zeros(3)  # a y that holds no tokens
    assert_close(CausalLM().terms(net, Batch(ids, labels), "train")["loss"], loss)


def test_ignored_tokens_do_not_count_and_a_row_of_them_costs_nothing():
    net, ids = gpt(), torch.tensor([[1, 2, 3, 0, 0], [0, 0, 0, 0, 0]])
    loss = CausalLM(ignore=0).terms(net, Batch(ids), "train")["loss"]
    alone = CausalLM().terms(net, Batch(ids[:1, :3]), "train")["loss"]
    assert_close(loss, alone / 2)


def test_without_gradients_rows_are_scored_a_few_at_a_time(monkeypatch):
    net, ids = gpt(), torch.randint(11, (7, 8))
    whole = CausalLM().terms(net, Batch(ids), "train")["loss"]
    monkeypatch.setattr(module, "LOGITS", 2 * 7 * 11)
    seen = []
    net.register_forward_hook(lambda net, args, out: seen.append(len(out)))
    with torch.no_grad():
        assert_close(CausalLM().terms(net, Batch(ids), "train")["loss"], whole.detach())
    assert seen == [2, 2, 2, 1]


def test_weights_count_rows():
    net, ids = gpt(), torch.randint(11, (2, 8))
    weighted = CausalLM().terms(net, Batch(ids, None, torch.tensor([2.0, 1.0])), "train")["loss"]
    repeated = CausalLM().terms(net, Batch(ids[[0, 0, 1]]), "train")["loss"]
    assert_close(weighted, repeated)


def streams(ids, length, count):
    blocks = torch.from_numpy(cut_blocks(ids, length, rest=False))
    return as_streams(Samples(TokenRows(blocks[:, :-1]), blocks[:, 1:]), count)


def test_batches_are_the_next_blocks_of_parallel_streams():
    samples = streams(np.arange(25), 4, 3)
    first, second = (samples.batch(samples.rows[i : i + 3]) for i in (0, 3))
    assert first.x[:, 0].tolist() == [0, 8, 16]
    assert second.x[:, 0].tolist() == [4, 12, 20]
    assert first.y[:, -2:].tolist() == [[0, 1], [1, 1], [2, 1]]
    assert second.y[:, -2:].tolist() == [[0, 0], [1, 0], [2, 0]]


@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
def test_blocks_with_a_carried_state_cost_what_the_whole_text_costs(cell):
    torch.manual_seed(0)
    net, ids = (
        RecurrentLM(9, hidden=6, depth=2, cell=cell),
        np.random.default_rng(0).integers(9, size=25),
    )
    samples, objective = streams(ids, 4, 2), CarriedLM(2)
    for _ in range(2):  # the second epoch begins at zero again
        parts = [samples.batch(index) for index in samples.rows.split(2)]
        losses = [objective.terms(net, batch, "train")["loss"] for batch in parts]
        text = torch.from_numpy(ids)
        halves = torch.stack([text[0:13], text[12:25]])
        whole = CausalLM().terms(net, Batch(halves), "train")["loss"]
        assert_close(torch.stack(losses).mean(), whole)


def test_the_carried_state_does_not_depend_on_how_a_batch_is_cut():
    torch.manual_seed(0)
    net, ids = RecurrentLM(9, hidden=6), np.random.default_rng(0).integers(9, size=33)
    samples, one, two = streams(ids, 4, 4), CarriedLM(4), CarriedLM(4)
    for index in samples.rows.split(4):
        whole = one.terms(net, samples.batch(index), "train")["loss"]
        parts = [two.terms(net, samples.batch(i), "train")["loss"] for i in index.split(2)]
        assert_close(torch.stack(parts).mean(), whole)


def test_gradients_end_at_the_beginning_of_a_block():
    torch.manual_seed(0)
    net, ids = RecurrentLM(9, hidden=6), np.random.default_rng(0).integers(9, size=17)
    samples, objective = streams(ids, 4, 1), CarriedLM(1)
    first, second = (samples.batch(index) for index in samples.rows.split(1)[:2])
    objective.terms(net, first, "train")
    before = tuple(part.clone() for part in objective.state)
    got = torch.autograd.grad(objective.terms(net, second, "train")["loss"], net.parameters())
    logits, _ = net.carry(second.x, before)
    loss = F.cross_entropy(logits.flatten(0, 1), second.y[:, :-2].flatten().long())
    for ours, theirs in zip(got, torch.autograd.grad(loss, net.parameters()), strict=True):
        assert_close(ours, theirs)


def test_a_validation_leaves_the_carried_state_alone():
    torch.manual_seed(0)
    net, ids = RecurrentLM(9, hidden=6), np.random.default_rng(0).integers(9, size=17)
    samples, objective = streams(ids, 4, 2), CarriedLM(2)
    objective.terms(net, samples.batch(samples.rows[:2]), "train")
    before = [part.clone() for part in objective.state]
    with torch.no_grad():
        loss = objective.terms(net, samples.batch(samples.rows[2:4]), "train")["loss"]
    assert all(torch.equal(a, b) for a, b in zip(before, objective.state, strict=True))
    batch = samples.batch(samples.rows[2:4])
    assert_close(
        loss, F.cross_entropy(net(batch.x).flatten(0, 1), batch.y[:, :-2].flatten().long()).detach()
    )


@pytest.mark.parametrize(("asked", "mode"), [(True, None), ("max-autotune", "max-autotune")])
def test_network_and_loss_are_compiled_in_the_mode_that_was_asked_for(monkeypatch, asked, mode):
    made = []

    def compiled(function, mode=None):
        made.append((function.__name__, mode))
        return function

    monkeypatch.setattr(torch, "compile", compiled)
    network_modes.compiled.cache_clear()
    training = Training(compile=asked, validation=0, verbose=False, watch=False)
    model = GPTLanguageModel(dim=8, depth=1, heads=2, context=8, epochs=1, training=training)
    model.fit(["abcabcabc"] * 4)
    network_modes.compiled.cache_clear()
    assert made == [("_call_impl", mode), ("_network_losses", mode)]
