"""Maps from sequences to sequences: what they remember, what they see, where they settle."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from castalia import AdaptiveFilter, Training
from castalia.models.language import (
    BERTTagger,
    Seq2Seq,
    TransformerClassifier,
    WindowLanguageModel,
)
from castalia.models.vision import ImageCaptioner
from castalia.nn import ElmanCell, Recurrent, influence

# ---- shapes ----

SMALL = {"epochs": 1, "random_state": 0}


def test_sequences_become_labels_marks_other_sequences_and_come_from_one_input():
    texts = ["a b c", "b a", "c c a b"] * 8
    words = [text.split() for text in texts]
    label = TransformerClassifier(dim=8, depth=1, heads=2, **SMALL).fit(texts, [0, 1, 2] * 8)
    assert label.predict(texts[:5]).shape == (5,)
    marks = BERTTagger(context=16, dim=8, depth=1, heads=2, **SMALL).fit(words, words)
    assert [len(row) for row in marks.predict(words[:3])] == [3, 2, 4]
    other = Seq2Seq(tokenizer="whitespace", dim=8, hidden=8, **SMALL).fit(texts, texts[::-1])
    assert all(isinstance(text, str) for text in other.predict(texts[:3]))
    one = np.zeros((24, 16, 16), dtype=np.uint8)
    told = ImageCaptioner(dim=8, hidden=8, **SMALL).fit(one, texts).predict(one[:2])
    assert all(isinstance(text, str) for text in told)


def test_texts_are_told_again_from_the_number_of_their_kind():
    random = np.random.default_rng(0)
    kinds = [f"kind{i}" for i in range(6)]
    texts = [" ".join(random.choice(list("abcdef"), random.integers(3, 7))) for _ in kinds]
    model = Seq2Seq(  # one vector, seen at every step beside the token before
        tokenizer="whitespace", attention="none", dim=16, hidden=48, dropout=0.0, epochs=50,
        batch_size=16, lr=1e-2, random_state=0, training=Training(validation=0),
    ).fit(kinds * 8, texts * 8)  # fmt: skip
    assert model.predict(kinds).tolist() == texts


def test_eight_layers_learn_to_turn_words_round_only_where_each_adds_to_its_input():
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(list("abcd"), 3)) for _ in range(256)]
    deep = {"tokenizer": "whitespace", "dim": 32, "hidden": 32, "depth": 8, "attention": "none"}
    settings = {"dropout": 0.0, "epochs": 6, "batch_size": 32, "lr": 8e-3, "random_state": 0}

    def loss(residual):
        training = Training(validation=0, clip=1.0)
        model = Seq2Seq(**deep, **settings, residual=residual, training=training)
        return model.fit(texts, [text[::-1] for text in texts]).history_[-1]["loss"]

    guessing = 3 / 4 * np.log(4)  # 1.04: letters are even, and where a text ends is known
    assert loss(True) < 0.5 * guessing
    assert loss(False) > 0.85 * guessing


# ---- memory and causes ----


class AlongTime(nn.Module):
    """A recurrent network from (B, C, T) to (B, H, T)."""

    def __init__(self, **settings):
        super().__init__()
        self.net = Recurrent("gru", 2, 3, **settings)

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x.transpose(1, 2))[0].transpose(1, 2)


class Causal(nn.Module):
    """A convolution of the last three places."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(nn.functional.pad(x, (2, 0)))


KINDS = {
    "algebraic": (lambda: nn.Conv1d(2, 3, 1), (0, 0)),
    "finite memory": (Causal, (2, 0)),
    "causal": (AlongTime, (10, 0)),
    "not causal": (lambda: AlongTime(bidirectional=True), (10, 9)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_transduction_is_told_by_the_places_that_move_its_answers(kind):
    make, (back, ahead) = KINDS[kind]
    torch.manual_seed(0)
    net, x = make().double(), torch.randn(4, 2, 20, dtype=torch.float64)
    seen = (influence(net, x, at=(10,)) > 0).nonzero().flatten() - 10
    assert seen.tolist() == list(range(-back, ahead + 1))
    if ahead == 0 and back < 10:  # stationary: later inputs, later answers, and nothing else
        moved = net(x.roll(1, dims=2))[:, :, 6:]
        torch.testing.assert_close(moved, net(x)[:, :, 5:-1])


# ---- windows ----


def echoes(rows, seed):
    """Texts in which three letters of four are those three places before them."""
    random = np.random.default_rng(seed)
    fresh, drawn = random.random((rows, 36)) < 0.25, random.integers(4, size=(rows, 36))
    for t in range(3, 36):
        drawn[:, t] = np.where(fresh[:, t], drawn[:, t], drawn[:, t - 3])
    return ["".join("abcd"[i] for i in row) for row in drawn]


@pytest.mark.parametrize(("window", "solved"), [(2, False), (3, True), (4, True)])
def test_a_window_recalls_what_lies_in_it_and_nothing_before(window, solved):
    model = WindowLanguageModel(
        window=window, dim=8, hidden=64, dropout=0.0, context=36, epochs=60, batch_size=16,
        lr=1e-2, random_state=0, training=Training(validation=0),
    ).fit(echoes(100, seed=0))  # fmt: skip
    loss = -model.score_samples(echoes(50, seed=1)).mean()
    guessing = 36 * np.log(4)  # 49.9 nats; with the rule 26.9
    assert loss < 0.7 * guessing if solved else loss > 0.97 * guessing


# ---- autoregression ----


def test_the_weights_of_an_autoregressive_process_are_found_from_its_past():
    random = np.random.default_rng(0)
    series = np.zeros(20_002)
    for t in range(2, len(series)):
        series[t] = 1.2 * series[t - 1] - 0.5 * series[t - 2] + random.normal()
    past, present = series[:-1, None], series[1:]
    model = AdaptiveFilter(taps=2, lr=2e-3, epochs=3).fit(past, present)
    assert model.coef_[0] == pytest.approx([1.2, -0.5], abs=0.05)
    (now, before), x = model.coef_[0], past[:, 0]
    assert model.predict(past)[1:] == pytest.approx(now * x[1:] + before * x[:-1])
    assert np.var(present - model.predict(past)) == pytest.approx(1, abs=0.05)  # the noise alone
    changed = past.copy()
    changed[5000:] += 10  # what is to come
    assert (model.predict(changed)[:5000] == model.predict(past)[:5000]).all()


# ---- settling ----


def test_a_recurrent_network_that_shrinks_distances_settles_at_one_point():
    torch.manual_seed(0)
    cell = ElmanCell(2, 6).double()
    with torch.no_grad():
        cell.w.weight.mul_(0.9 / torch.linalg.matrix_norm(cell.w.weight, 2))
    x, starts = torch.ones(5, 2, dtype=torch.float64), 10 * torch.randn(5, 6, dtype=torch.float64)
    state, apart = (starts,), []
    for _ in range(300):
        _, state = cell(x, state)
        apart.append((state[0] - state[0][0]).norm().item())
    assert all(
        later <= 0.9 * earlier for earlier, later in zip(apart[:50], apart[1:51], strict=True)
    )
    torch.testing.assert_close(cell(x, state)[0], state[0])  # a fixed point, the same for all
