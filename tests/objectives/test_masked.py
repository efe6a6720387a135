"""Masked tokens, next sentences and prefixes: the statistics of the damage, and what counts."""

import math

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import BERT, GPT
from castalia.objectives import MaskedLM, NextSentence, PrefixLM
from castalia.objectives.next_sentence import join_pairs
from castalia.protocols import Batch

PAD, UNKNOWN, BEGIN, END, MASK = range(5)
SPECIAL = (PAD, UNKNOWN, BEGIN, END, MASK)


def rows(n: int, length: int, vocabulary: int = 1000, seed: int = 0) -> torch.Tensor:
    source = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, vocabulary, (n, length), generator=source)
    ids[:, 0], ids[:, -1] = BEGIN, END
    return ids


def masked(**settings) -> MaskedLM:
    return MaskedLM(1000, mask=MASK, pad=PAD, special=SPECIAL, **settings)


def test_fifteen_percent_are_chosen_and_split_80_10_10_within_three_sigma():
    ids = rows(400, 102)
    found = masked().damage(ids, torch.Generator().manual_seed(1))
    n = int(found.counted.sum())
    assert n == 400 * 15  # of 100 ordinary tokens each
    put = found.ids.gather(1, found.places)
    for share, hit in (
        (0.8, put == MASK),
        (0.1 * 994 / 995, (put != MASK) & (put != found.targets)),  # a draw may be the token itself
        (0.1 + 0.1 / 995, put == found.targets),
    ):
        sigma = math.sqrt(share * (1 - share) / n)
        assert abs(float(hit.float().mean()) - share) < 3 * sigma


def test_every_place_is_chosen_equally_often_and_special_tokens_never():
    ids = rows(4000, 22)
    found = masked().damage(ids, torch.Generator().manual_seed(2))
    counts = torch.bincount(found.places[found.counted], minlength=22).double()
    assert counts[0] == counts[-1] == 0
    expected = 4000 * 3 / 20
    assert ((counts[1:-1] - expected).abs() < 4 * math.sqrt(expected)).all()
    assert not torch.isin(found.ids, torch.tensor([PAD, UNKNOWN])).any()


def test_short_rows_give_fewer_tokens_and_at_least_one():
    ids = rows(1, 40)
    ids[0, 5:] = PAD
    found = masked().damage(ids)
    assert int(found.counted.sum()) == 1
    assert (found.ids[0, 5:] == PAD).all()


def test_the_loss_is_that_of_the_chosen_places_only():
    torch.manual_seed(0)
    net = BERT(1000, context=32, dim=8, depth=1, heads=2).eval()
    ids = rows(3, 20)
    objective = masked()
    loss = objective.terms(net, Batch(ids), "train")["loss"]
    found = objective.damage(ids, torch.Generator().manual_seed(0))  # the draw of an evaluation
    log_p = net(found.ids, keep=ids != PAD).log_softmax(dim=-1)
    each = -log_p.gather(2, ids[..., None]).squeeze(2).gather(1, found.places)
    assert_close(loss, each[found.counted].view(3, -1).mean(dim=1).mean())


def test_an_evaluation_repeats_and_a_training_draws_anew():
    net = BERT(1000, context=32, dim=8, depth=1, heads=2)
    batch = Batch(rows(8, 20))
    with torch.no_grad():
        first, second = (float(masked().terms(net, batch, "")["loss"]) for _ in range(2))
        net.eval()
        third, fourth = (float(masked().terms(net, batch, "")["loss"]) for _ in range(2))
    assert first != second
    assert third == fourth


def test_micro_batches_add_up_to_the_batch():
    net = BERT(1000, context=32, dim=8, depth=1, heads=2).eval()
    ids = rows(8, 20)
    ids[3, 9:] = PAD

    class Fixed(MaskedLM):
        def damage(self, given, source=None):
            whole = super().damage(ids, torch.Generator().manual_seed(0))
            index = [int((ids == row).all(dim=1).nonzero()[0]) for row in given]
            return type(whole)(*(part[index] for part in whole))

    objective = Fixed(1000, mask=MASK, pad=PAD, special=SPECIAL)
    whole = objective.terms(net, Batch(ids), "")["loss"]
    parts = [objective.terms(net, Batch(part), "")["loss"] * len(part) for part in ids.split(3)]
    assert_close(sum(parts) / 8, whole)


@pytest.mark.parametrize("settings", [{"rate": 0.0}, {"masked": 0.8, "random": 0.3}])
def test_shares_that_cannot_be_are_refused(settings):
    with pytest.raises(InvalidParameter, match="MaskedLM: `"):
        masked(**settings)


def test_pairs_are_joined_with_begin_end_and_segments():
    first = torch.tensor([[7, 8, 0], [9, 0, 0]])
    second = torch.tensor([[5, 0, 0], [6, 7, 8]])
    ids, segments = join_pairs(first, second, begin=BEGIN, end=END, pad=PAD)
    assert ids.tolist() == [[2, 7, 8, 3, 5, 3, 0, 0, 0], [2, 9, 3, 6, 7, 8, 3, 0, 0]]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1, 1, 0, 0]]


def test_half_of_the_second_texts_come_from_another_row():
    x = torch.arange(5, 5 + 2000).repeat_interleave(2).view(2000, 2, 1)  # a row follows itself
    objective = NextSentence(MaskedLM(3000, mask=MASK, pad=PAD), begin=BEGIN, end=END)
    pairs = objective.pairs(x, torch.Generator().manual_seed(0))
    follows = pairs.ids[:, 1] == pairs.ids[:, 3]
    assert torch.equal(follows, pairs.labels == 0)
    assert abs(float(follows.float().mean()) - 0.5) < 3 * math.sqrt(0.25 / 2000)


def test_a_row_alone_keeps_its_own_second_text():
    objective = NextSentence(masked(), begin=BEGIN, end=END, exchanged=1.0)
    assert objective.pairs(torch.full((1, 2, 4), 9)).labels.tolist() == [0]


def test_next_sentence_beats_chance_on_texts_that_belong_together():
    torch.manual_seed(0)
    topic = torch.randint(0, 4, (128,))
    x = 5 + 10 * topic[:, None, None] + torch.randint(0, 10, (128, 2, 4))  # words of one topic
    net = BERT(45, context=16, dim=32, depth=1, heads=4)
    objective = NextSentence(MaskedLM(45, mask=MASK, pad=PAD, special=SPECIAL), begin=2, end=3)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(80):
        optimizer.zero_grad()
        objective.terms(net, Batch(x), "")["loss"].backward()
        optimizer.step()
    pairs = objective.pairs(x)
    with torch.no_grad():
        h = net.eval().features(pairs.ids, pairs.segments, keep=pairs.ids != PAD)
        guessed = net.judge(h).argmax(dim=1)
    assert float((guessed == pairs.labels).float().mean()) > 0.75


def test_prefix_tokens_see_each_other_and_only_later_ones_count():
    torch.manual_seed(0)
    net = GPT(50, context=16, dim=8, depth=1, heads=2).eval()
    ids = torch.randint(1, 50, (1, 8))
    loss = PrefixLM(pad=0, length=5).terms(net, Batch(ids), "")["loss"]
    from castalia.nn.attention import prefix

    log_p = net(ids, mask=prefix(5)).log_softmax(dim=-1)
    expected = -torch.stack([log_p[0, t - 1, ids[0, t]] for t in (5, 6, 7)]).mean()
    assert_close(loss, expected)


def test_prefix_cuts_lie_inside_the_row():
    ids = torch.ones(500, 8, dtype=torch.long)
    ids[:, 6:] = 0
    cuts = PrefixLM(pad=0).cuts(ids)
    assert cuts.unique().tolist() == [1, 2, 3, 4, 5]
