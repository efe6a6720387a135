"""Translators: what they learn, how they search, where they look."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal
from torch.testing import assert_close

import castalia
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import bleu
from castalia.models.language import BART, T5, Seq2Seq, Transformer
from castalia.nets import language as nets
from castalia.objectives import SequenceCrossEntropy
from castalia.protocols import Batch
from castalia.testing.toys import reversal

X, Y = reversal(600)
SMALL = {"tokenizer": "whitespace", "dim": 16, "random_state": 0}


@pytest.fixture(scope="module")
def reverser() -> Seq2Seq:
    settings = {"hidden": 48, "cell": "gru", "epochs": 30, "batch_size": 40, "lr": 1e-2}
    return Seq2Seq(**SMALL, **settings).fit(X[:300], Y[:300])


def test_sequences_of_unseen_content_are_reversed(reverser):
    known = set(X[:300])
    new = [i for i in range(300, 600) if X[i] not in known]
    exact = np.mean(reverser.predict(X[new]) == Y[new])
    assert exact > 0.99
    assert reverser.score(X[new], Y[new]) > 95  # BLEU


def test_the_decoder_looks_at_the_source_from_its_end_to_its_beginning(reverser):
    rows = [i for i in range(300, 600) if len(X[i].split()) == 5][:40]
    adapter, tokenizer = reverser.adapter_, reverser.adapter_.tokenizer
    source = torch.tensor(adapter.encode(X[rows]))
    answer = torch.tensor(tokenizer.encode(list(Y[rows])))
    read = torch.cat([torch.full((len(rows), 1), tokenizer.id_of("begin")), answer[:, :-1]], dim=1)
    weights = reverser.module_.eval().alignments(source, read)  # (B, 5, 7)
    assert_close(weights.sum(dim=-1), torch.ones(len(rows), 5))
    place = (weights * torch.arange(7.0)).sum(dim=-1).mean(dim=0)  # where each step looks
    assert np.corrcoef(place.numpy(), np.arange(5))[0, 1] < -0.95


def test_one_beam_is_the_greedy_search_and_more_find_nothing_less_probable(reverser):
    adapter, net = reverser.adapter_, reverser.module_
    ids = torch.tensor([row for row in adapter.encode(X[300:400]) if len(row) == 7])
    ask = {"tokens": 8, "stop": adapter.end, "start": adapter.begin, "pad": adapter.end}
    greedy = nets.generate(net, ids, **ask)
    one = nets.beam_search(net, ids, beams=1, **ask)
    assert torch.equal(one.ids[:, 0, : greedy.shape[1]], greedy)
    four = nets.beam_search(net, ids, beams=4, **ask)
    assert (four.scores[:, 0] >= one.scores[:, 0] - 1e-5).all()


def test_answers_drawn_follow_the_softmax(reverser):
    text = np.array([X[300]] * 400, dtype=object)
    hot = reverser.generate(text, temperature=20.0, random_state=0)
    assert len(set(hot)) > 300
    assert_array_equal(hot, reverser.generate(text, temperature=20.0, random_state=0))
    adapter = reverser.adapter_
    ids = torch.tensor(adapter.encode(text[:1]))
    logits = reverser.module_(ids, torch.tensor([[adapter.begin]]))[0, 0]
    p = (logits / 20).softmax(dim=-1).detach()
    ask = {"tokens": 1, "start": adapter.begin, "temperature": 20.0, "random_state": 0}
    drawn = nets.generate(reverser.module_, ids.repeat(4000, 1), **ask)[:, 0]
    share = torch.bincount(drawn, minlength=len(p)) / 4000
    assert ((share - p).abs() < 4 * (p * (1 - p) / 4000).sqrt() + 1e-3).all()


@pytest.mark.parametrize("attention", ["additive", "multiplicative", "none"])
def test_padding_of_the_source_changes_nothing(attention):
    torch.manual_seed(0)
    net = nets.Seq2Seq(20, dim=8, hidden=6, depth=2, attention=attention).eval()
    ids, answer = torch.randint(3, 20, (2, 5)), torch.randint(3, 20, (2, 4))
    right, left = (torch.nn.functional.pad(ids, side) for side in ((0, 3), (3, 0)))
    for padded in (right, left):
        assert_close(net(padded, answer, keep=padded != 0), net(ids, answer))


def test_without_attention_the_decoder_sees_one_fixed_vector():
    torch.manual_seed(0)
    net = nets.Seq2Seq(20, dim=8, hidden=6, attention="none").eval()
    memory = net.encode(torch.randint(3, 20, (1, 5)))
    middle = memory.clone()
    middle[:, 1:4] += 1.0  # neither the last state forwards nor the first backwards
    answer = torch.tensor([[1, 4, 5]])
    assert torch.equal(net.decode(answer, memory), net.decode(answer, middle))
    with pytest.raises(InvalidParameter, match="no alignments"):
        net.alignments(answer, answer)


def test_the_equations_of_bahdanau_step_by_step():
    torch.manual_seed(0)
    net = nets.Seq2Seq(20, dim=8, hidden=6, cell="gru").eval()
    ids, answer = torch.randint(3, 20, (1, 5)), torch.tensor([[1, 4]])
    h = net.encode(ids)
    s = torch.tanh(net.begin(torch.cat([h[:, -1, :6], h[:, 0, 6:]], dim=-1)))
    for t in range(2):
        y = net.tokens(answer[:, t])
        a = net.attention.weights(s[:, None], h)[:, 0]  # softmax_j a(s_{i-1}, h_j)
        c = (a[..., None] * h).sum(dim=1)
        s, _ = net.decoder[0](torch.cat([y, c], dim=-1), (s,))
        logits = net.output(torch.tanh(net.readout(torch.cat([s, c, y], dim=-1))))
        assert_close(net(ids, answer)[:, t], logits)


def test_sampled_inputs_are_guesses_at_the_share_asked_for():
    torch.manual_seed(0)
    net = nets.Seq2Seq(20, dim=8, hidden=6)
    ids, answer = torch.randint(3, 20, (4, 5)), torch.randint(3, 20, (4, 6))
    forced = net(ids, answer)
    assert_close(net(ids, answer, sampled=1e-9), forced)
    guessed, own = net(ids, answer, sampled=1.0), [answer[:, 0]]
    for t in range(5):  # by hand: each step reads what the one before thought most probable
        own.append(net(ids, torch.stack(own, dim=1))[:, t].argmax(dim=-1))
    assert_close(guessed, net(ids, torch.stack(own, dim=1)))


def test_scheduled_sampling_goes_through_its_stages():
    model = Seq2Seq(**SMALL, hidden=8, epochs=4, sampled=(0.0, 0.5)).fit(X[:60], Y[:60])
    assert model.n_iter_ == 4
    with pytest.raises(InvalidParameter, match="`sampled` must be a tuple of numbers"):
        Seq2Seq(sampled=0.5).fit(X[:60], Y[:60])


def test_a_residual_stack_passes_its_input_on():
    torch.manual_seed(0)
    plain, residual = (nets.Seq2Seq(20, dim=8, hidden=6, depth=3, residual=r) for r in (0, 1))
    ids, answer = torch.randint(3, 20, (8, 5)), torch.randint(3, 20, (8, 4))
    loss = SequenceCrossEntropy(pad=0, start=1)
    norms = []
    for net in (plain, residual):
        loss.terms(net, Batch(ids, answer), "")["loss"].backward()
        norms.append(float(net.encoder[0].kernel.weight_ih_l0.grad.norm()))
    assert norms[1] > 3 * norms[0]  # the lowest layer hears of the loss


SYSTEMS = {
    "Transformer": (Transformer, {"depth": 1, "heads": 2}),
    "Seq2Seq": (Seq2Seq, {"hidden": 8}),
    "T5": (T5, {"depth": 1, "heads": 2, "head_dim": 8, "hidden": 32}),
    "BART": (BART, {"depth": 1, "heads": 2}),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_predictions_are_texts_scored_by_bleu_and_survive_saving(name, tmp_path):
    kind, sizes = SYSTEMS[name]
    model = kind(**SMALL, **sizes, epochs=2, beams=2, length_penalty=0.5).fit(X[:80], Y[:80])
    said = model.predict(X[80:90])
    assert said.shape == (10,)
    assert all(isinstance(text, str) for text in said)
    assert model.score(X[80:90], Y[80:90]) == bleu(list(Y[80:90]), list(said)).score
    castalia.save(model, tmp_path / "m")
    assert_array_equal(castalia.load(tmp_path / "m").predict(X[80:90]), said)


@pytest.mark.parametrize("kind", [Transformer, Seq2Seq])
def test_targets_that_do_not_fit_are_refused(kind):
    with pytest.raises(InvalidData, match="same number of rows; got 5 and 4"):
        kind(**SMALL).fit(X[:5], Y[:4])
    with pytest.raises(InvalidData, match="requires y"):
        kind(**SMALL).fit(X[:5])
    with pytest.raises(InvalidData, match="a text must be a string; got 7"):
        kind(**SMALL).fit(X[:3], ["a", 7, "b"])


def test_without_settings_the_rate_of_the_transformer_rises_and_then_falls():
    model = Transformer(**SMALL, depth=1, heads=2, epochs=12, batch_size=20).fit(X[:60], Y[:60])
    rates = [line["lr"] for line in model.history_]
    peak = int(np.argmax(rates))
    assert 0 <= peak <= 2
    assert rates[-1] < 0.5 * max(rates)


@pytest.mark.parametrize("name", ["T5", "BART"])
def test_texts_alone_pretrain_and_pairs_continue_from_there(name, tmp_path):
    kind, sizes = SYSTEMS[name]
    base = kind(**SMALL, **sizes, epochs=4, batch_size=20, lr=5e-3).fit(X[:80])
    assert base.pretraining_
    assert base.history_[-1]["loss"] < base.history_[0]["loss"]
    base.save_pretrained(tmp_path / "hf")
    for start in (base, tmp_path / "hf"):
        tuned = kind(start=start, epochs=1, lr=1e-30, random_state=0).fit(X[:40], Y[:40])
        assert not tuned.pretraining_
        known = base.module_.state_dict()
        for key, value in tuned.module_.state_dict().items():
            assert_close(value.float(), known[key])
    again = kind.from_pretrained(tmp_path / "hf")
    assert len(again.predict(X[:2])) == 2
    with pytest.raises(InvalidParameter, match="`start` must hold a"):
        kind(start=Transformer(**SMALL, depth=1, heads=2, epochs=1).fit(X[:40], Y[:40])).fit(X[:40])


def test_texts_and_answers_that_are_none_are_told_apart():
    X, y = reversal(20)
    model = Seq2Seq(tokenizer="whitespace", dim=4, hidden=4, epochs=1)
    with pytest.raises(InvalidData, match="a text must be a string; got nan at place 1 of y"):
        model.fit(X[:2], [y[0], float("nan")])
    with pytest.raises(InvalidData, match="y must be a list of texts; got one string"):
        model.fit(X[:2], y[0])
    with pytest.raises(InvalidData, match="X must hold single texts; got pairs of texts"):
        model.fit(X, y).predict([("a", "b")])
