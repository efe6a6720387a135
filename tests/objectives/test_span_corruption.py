"""Span corruption and denoising: the notes' example, statistics, and the way back."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import T5
from castalia.objectives import Denoising, SequenceCrossEntropy, SpanCorruption
from castalia.objectives.denoising_loss import delete, infill, mask_some, permute_sentences
from castalia.objectives.span_corruption import cut_spans, noise_places, restore_spans
from castalia.protocols import Batch

PAD, END, START = 0, 1, 2
SENTINELS = list(range(900, 1000))


def rows(n: int, length: int) -> torch.Tensor:
    ids = torch.randint(5, 800, (n, length), generator=torch.Generator().manual_seed(0))
    ids[:, -1] = END
    return ids


def test_the_example_of_the_notes_comes_out_exactly():
    words = ["Thank", "you", "for", "inviting", "me", "to", "your", "party", "last", "week", "."]
    cut = {"for", "inviting", "last"}
    names = [*words, "<X>", "<Y>", "<Z>"]
    ids = torch.arange(1, len(words) + 1)[None]
    noise = torch.tensor([[word in cut for word in words]])
    sentinels = [len(words) + k for k in (1, 2, 3)]
    source, answer = cut_spans(ids, noise, sentinels, pad=0)
    said = [" ".join(names[i - 1] for i in row[0].tolist() if i) for row in (source, answer)]
    assert said[0] == "Thank you <X> me to your party <Y> week ."
    assert said[1] == "<X> for inviting <Y> last <Z>"


@pytest.mark.parametrize("mean_span", [2, 3, 5, 10])
def test_rate_and_mean_span_are_those_asked_for(mean_span):
    eligible = torch.ones(300, 200, dtype=torch.bool)
    noise = noise_places(eligible, 0.15, mean_span, torch.Generator().manual_seed(0))
    begins = noise & ~torch.nn.functional.pad(noise[:, :-1], (1, 0))
    assert int(noise.sum()) == 300 * 30  # exactly 15 %
    assert float(noise.sum() / begins.sum()) == 30 / round(30 / mean_span)
    assert not noise[:, 0].any()  # a kept stretch comes first


@pytest.mark.parametrize("rate, mean_span", [(0.1, 3), (0.15, 3), (0.25, 3), (0.15, 5), (0.5, 10)])
def test_the_objective_cuts_at_its_rate_in_stretches_of_its_mean_length(rate, mean_span):
    kinds = {"pad": PAD, "start": START, "end": END, "rate": rate, "mean_span": mean_span}
    source, answer = SpanCorruption(SENTINELS, **kinds).corrupt(rows(50, 101))
    cut = round(100 * rate)  # of 100 words and an end
    words = (source >= 5) & (source < 800)
    assert (words.sum(dim=1) == 100 - cut).all()
    assert (((answer >= 5) & (answer < 800)).sum(dim=1) == cut).all()
    assert ((source >= SENTINELS[0]).sum(dim=1) == round(cut / mean_span)).all()


def test_lengths_of_stretches_vary():
    eligible = torch.ones(200, 100, dtype=torch.bool)
    noise = noise_places(eligible, 0.15, 3, torch.Generator().manual_seed(0))
    ends = noise & ~torch.nn.functional.pad(noise[:, 1:], (0, 1))
    run = torch.zeros(200)
    sizes = []
    for t in range(100):
        run = (run + 1) * noise[:, t]
        sizes.append(run[ends[:, t]])
    sizes = torch.cat(sizes)
    assert sizes.mean() == 3
    assert set(sizes.tolist()) >= {1, 2, 3, 4, 5, 6}


def test_independent_tokens_are_cut_at_the_rate():
    eligible = torch.ones(500, 40, dtype=torch.bool)
    noise = noise_places(eligible, 0.15, 1, torch.Generator().manual_seed(0))
    assert (noise.sum(dim=1) == 6).all()
    share = noise.float().mean(dim=0)
    assert ((share - 0.15).abs() < 4 * math.sqrt(0.15 * 0.85 / 500)).all()


@pytest.mark.parametrize("mean_span", [1, 3])
def test_source_and_answer_give_the_row_back_with_sentinels_in_order(mean_span):
    ids = rows(50, 60)
    ids[7, 30:] = PAD
    ids[7, 29] = END
    objective = SpanCorruption(SENTINELS, pad=PAD, start=START, end=END, mean_span=mean_span)
    sources, answers = objective.corrupt(ids)
    assert answers.shape == (50, objective.width(60))
    for row, source, answer in zip(ids, sources, answers, strict=True):
        real = [t for t in answer.tolist() if t != PAD]
        assert real[-1] == END
        seen = [t for t in real if t in SENTINELS]
        assert seen == SENTINELS[: len(seen)]
        given = [t for t in source.tolist() if t != PAD]
        assert [t for t in given if t in SENTINELS] == seen[:-1]
        assert restore_spans(given, real[:-1], SENTINELS) == [t for t in row.tolist() if t != PAD]


def test_too_few_sentinels_are_reported():
    objective = SpanCorruption(SENTINELS[:3], pad=PAD, start=START, end=END)
    with pytest.raises(InvalidParameter, match="100 tokens must find 6 sentinels; got 3"):
        objective.corrupt(rows(2, 100))


def test_padding_of_source_and_answer_never_changes_the_loss():
    torch.manual_seed(0)
    net = T5(1000, dim=8, depth=1, heads=2, head_dim=4, hidden=16).eval()
    source, answer = rows(2, 7), rows(2, 5)
    objective = SequenceCrossEntropy(pad=PAD, start=START)
    wide = [torch.nn.functional.pad(x, (0, 4)) for x in (source, answer)]
    assert_close(objective.rows(net, source, answer), objective.rows(net, *wide))


def test_per_step_losses_with_teacher_forcing_equal_sequential_ones():
    torch.manual_seed(0)
    net = T5(50, dim=8, depth=1, heads=2, head_dim=4, hidden=16).eval()
    source, answer = torch.randint(3, 50, (1, 6)), torch.randint(3, 50, (1, 4))
    at_once = SequenceCrossEntropy(pad=PAD, start=START).rows(net, source, answer)
    fed, losses = [START], []
    for token in answer[0].tolist():
        log_p = net(source, torch.tensor([fed]))[0, -1].log_softmax(dim=-1)
        losses.append(-log_p[token])
        fed.append(token)  # the true one, whatever was probable
    assert_close(at_once[0], torch.stack(losses).mean())


def test_a_common_divisor_lets_every_token_count_the_same():
    torch.manual_seed(0)
    net = T5(50, dim=8, depth=1, heads=2, head_dim=4, hidden=16).eval()
    source, answer = torch.randint(3, 50, (2, 6)), torch.randint(3, 50, (2, 4))
    answer[0, 1:] = PAD
    own = SequenceCrossEntropy(pad=PAD, start=START).rows(net, source, answer)
    same = SequenceCrossEntropy(pad=PAD, start=START, per=4.0).rows(net, source, answer)
    assert_close(same, own * torch.tensor([1 / 4, 1.0]))


def test_infilling_covers_the_share_with_one_mask_a_stretch():
    ids = torch.arange(5, 405).repeat(200, 1)
    eligible = torch.ones_like(ids, dtype=torch.bool)
    source = torch.Generator().manual_seed(0)
    found = infill(ids, eligible, share=0.3, mean_span=3.0, mask=4, pad=0, source=source)
    kept = ((found != 4) & (found != 0)).sum(dim=1).double() / 400
    assert abs(float(kept.mean()) - 0.7) < 0.01
    body = found[0][found[0] != 0]
    order = body[body != 4]
    assert torch.equal(order, order.sort().values)  # what stays keeps its order
    gaps = (order.diff() > 1).sum()
    inside = (body[1:-1] == 4).sum()
    assert gaps <= inside <= gaps + 40  # a mask a gap, and some that were inserted


def test_deletion_and_masking_hit_their_share():
    ids = torch.arange(5, 405).repeat(100, 1)
    eligible = torch.ones_like(ids, dtype=torch.bool)
    eligible[:, 0] = False
    source = torch.Generator().manual_seed(0)
    gone = delete(ids, eligible, 0.2, 0, source)
    assert abs(float((gone == 0).float().mean()) - 0.2) < 0.01
    assert (gone[:, 0] == 5).all()
    hidden = mask_some(ids, eligible, 0.2, 4, source)
    assert abs(float((hidden == 4).float().mean()) - 0.2) < 0.01
    assert torch.equal(hidden[hidden != 4], ids[hidden != 4])


def test_sentences_are_permuted_whole_between_begin_and_end():
    dot = 9
    ids = torch.tensor([[2, 21, 22, dot, 31, dot, 41, 42, 43, dot, 1, 0]]).repeat(300, 1)
    eligible = ~torch.isin(ids, torch.tensor([0, 1, 2]))
    source = torch.Generator().manual_seed(0)
    found = permute_sentences(ids, eligible, (dot,), source=source)
    assert (found[:, 0] == 2).all()
    assert (found[:, -2] == 1).all()
    assert (found[:, -1] == 0).all()
    texts = {tuple(row[1:-2].tolist()) for row in found}
    sentences = {(21, 22), (31,), (41, 42, 43)}
    assert len(texts) == 6  # all orders of three sentences
    for text in texts:
        parts = " ".join(map(str, text)).split(f" {dot}")
        assert {tuple(map(int, part.split())) for part in parts if part} == sentences


def test_denoising_asks_for_the_whole_text_and_its_loss_falls():
    torch.manual_seed(0)
    ids = (5 + (torch.arange(10) + torch.randint(0, 40, (64, 1))) % 40).long()  # counting up
    net = T5(50, dim=16, depth=1, heads=2, head_dim=8, hidden=32)
    objective = Denoising(mask=4, pad=0, start=2, infilled=0.3, masked=0.1, deleted=0.1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = objective.terms(net, Batch(ids), "")["loss"]
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_denoising_without_damage_is_refused():
    with pytest.raises(InvalidParameter, match="nothing to learn"):
        Denoising(mask=4, pad=0, start=2, infilled=0.0)
