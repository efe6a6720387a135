"""Batches of rows of like lengths: little padding, the same training."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from castalia import Callback, Training
from castalia.data.batches import Samples
from castalia.data.buckets import fixed_widths, grouped, packed, padding_share, widths_of
from castalia.errors import InvalidParameter
from castalia.models.language import Transformer, TransformerClassifier
from castalia.testing.toys import reversal

LENGTHS = torch.from_numpy(
    np.random.default_rng(0).lognormal(2.5, 0.7, 2003).clip(1, 96).astype(np.int64)
)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def test_batches_of_like_lengths_hold_far_less_padding_than_random_ones():
    alike = padding_share(LENGTHS, grouped(LENGTHS, 16, source()).split(16))
    chance = padding_share(LENGTHS, torch.randperm(2003, generator=source()).split(16))
    assert chance > 0.5
    assert alike < 0.15


def test_every_row_comes_once_and_every_epoch_puts_others_together():
    first, second = (grouped(LENGTHS, 16, source(seed)) for seed in (1, 2))
    assert_close(first.sort().values, torch.arange(2003))
    assert torch.equal(first, grouped(LENGTHS, 16, source(1)))
    sets = [{frozenset(batch.tolist()) for batch in order.split(16)} for order in (first, second)]
    assert not sets[0] & sets[1]


def test_long_and_short_batches_come_mixed():
    widths = LENGTHS[grouped(LENGTHS, 16, source())[:2000]].view(-1, 16).amax(dim=1).double()
    number = torch.arange(len(widths), dtype=torch.float64)
    assert abs(torch.corrcoef(torch.stack([widths, number]))[0, 1]) < 0.25


@pytest.mark.parametrize("tokens", [96, 500, 10**6])
def test_a_batch_holds_at_most_its_tokens(tokens):
    order, cuts = packed(LENGTHS, tokens, source())
    batches = [order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    assert max(len(batch) * int(LENGTHS[batch].max()) for batch in batches) <= tokens
    assert_close(order.sort().values, torch.arange(2003))
    assert len(packed(LENGTHS, tokens, source(5))[1]) == len(cuts)  # every epoch has as many steps


def test_few_widths_cover_every_batch():
    both = torch.stack([LENGTHS, LENGTHS.flip(0)], dim=1)
    fixed = fixed_widths(both)
    assert len(fixed) <= 8
    order, cuts = torch.arange(2003), range(0, 2003 + 16, 16)
    exact, few = (torch.tensor(widths_of(both, order, cuts, f)) for f in (None, fixed))
    assert (few >= exact).all()
    assert len(few.unique(dim=0)) <= 8
    assert torch.equal(exact[0], both[:16].amax(dim=0))


TEXTS = [" ".join(["ab", "cd", "ef"][k % 3] for k in range(i % 23 + 1)) for i in range(240)]
LABELS = np.array([i % 23 % 2 for i in range(240)])
SMALL = {"dim": 8, "depth": 1, "heads": 2, "dropout": 0.0, "epochs": 2, "random_state": 0}
NO_WATCH = Training(validation=0.2, watch=False, verbose=False)


def classifier(**settings):
    made = TransformerClassifier(**SMALL, batch_size=8, lr=1e-2)
    return made.set_params(**{"training": NO_WATCH, **settings})


def translator(**settings):
    made = Transformer(tokenizer="whitespace", **SMALL, batch_size=8, lr=1e-2)
    return made.set_params(**{"training": NO_WATCH, **settings})


@pytest.mark.parametrize("tokens", [None, 256])
@pytest.mark.parametrize("kind", ["classifier", "translator"])
def test_a_training_ends_as_one_padded_to_the_full_length(kind, tokens, monkeypatch):
    make = {"classifier": classifier, "translator": translator}[kind]
    data = (TEXTS, LABELS) if kind == "classifier" else reversal(160)
    # Adam would blow up the rounding of gradients that are zero, such as that of a key's bias.
    settings = {"batch_tokens": tokens, "training": replace(NO_WATCH, optimizer="momentum")}
    trimmed = make(**settings).fit(*data)
    batch = Samples.batch
    wide = lambda self, index, widths=None: batch(replace(self, lengths=None), index)  # noqa: E731
    monkeypatch.setattr(Samples, "batch", wide)
    full = make(**settings).fit(*data)
    assert trimmed.history_[-1]["val_loss"] == pytest.approx(full.history_[-1]["val_loss"], 1e-4)
    pairs = zip(trimmed.module_.parameters(), full.module_.parameters(), strict=True)
    for p, q in pairs:
        assert_close(p, q, rtol=1e-4, atol=1e-5)


class Shapes(Callback):
    """Keeps the shapes of all batches."""

    def __init__(self, cut=None):
        self.seen, self.cut = [], cut

    def on_batch_start(self, state):
        batch = state.stepper.next_batch()
        self.seen.append((tuple(batch.x.shape), tuple(batch.y.shape)))
        if state.total == self.cut:
            raise KeyboardInterrupt


def test_batches_are_as_wide_as_their_longest_text():
    seen = Shapes()
    model = classifier(training=replace(NO_WATCH, callbacks=[seen])).fit(TEXTS, LABELS)
    widths = {x[1] for x, _ in seen.seen}
    assert model.adapter_.length == 24
    assert len(widths) > 3
    assert sum(x[0] * x[1] for x, _ in seen.seen) < 0.8 * sum(x[0] * 24 for x, _ in seen.seen)


def test_a_budget_of_tokens_bounds_sources_and_answers():
    seen = Shapes()
    X, y = reversal(160)
    translator(training=replace(NO_WATCH, callbacks=[seen]), batch_tokens=90).fit(X, y)
    assert max(max(x[0] * x[1], a[0] * a[1]) for x, a in seen.seen) <= 90
    assert len({x[0] for x, _ in seen.seen}) > 1


@pytest.mark.parametrize("tokens", [None, 200])
def test_a_cut_training_goes_on_to_the_same_bits(tokens, tmp_path):
    settings = replace(NO_WATCH, run=tmp_path / "run", checkpoint_every=5)
    cut = replace(settings, callbacks=[Shapes(cut=12)])
    with pytest.raises(KeyboardInterrupt):
        classifier(training=cut, batch_tokens=tokens, dropout=0.1).fit(TEXTS, LABELS)
    resumed = classifier(training=settings, batch_tokens=tokens, dropout=0.1).fit(TEXTS, LABELS)
    whole = classifier(batch_tokens=tokens, dropout=0.1).fit(TEXTS, LABELS)
    for p, q in zip(resumed.module_.parameters(), whole.module_.parameters(), strict=True):
        assert torch.equal(p, q)


def test_a_budget_below_the_longest_text_is_refused():
    with pytest.raises(InvalidParameter, match=r"`batch_tokens` must be at least 23.*got 20"):
        classifier(batch_tokens=20).fit(TEXTS, LABELS)


def test_the_doctor_looks_at_batches_of_every_width():
    watched = replace(NO_WATCH, watch=True)
    said = classifier(training=watched, epochs=1).fit(TEXTS, LABELS).diagnosis_
    assert not [note for note in said.notes if "given up" in note]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_recorded_steps_of_every_width_equal_eager_ones():
    settings = {"device": "cuda", "optimizer": "momentum", "precision": "float32"}
    recorded = classifier(training=replace(NO_WATCH, **settings)).fit(TEXTS, LABELS)
    eager = classifier(training=replace(NO_WATCH, **settings, compile=False)).fit(TEXTS, LABELS)
    assert recorded.settings_["graph"]
    for p, q in zip(recorded.module_.parameters(), eager.module_.parameters(), strict=True):
        assert_close(p, q, rtol=1e-4, atol=1e-5)
