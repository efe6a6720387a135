"""GPT on a task: starts, what is trained, layouts, and that pretraining pays."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import castalia
from castalia import Training
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language import BERT, GPTClassifier, GPTLanguageModel
from castalia.nn.adaptation.bottleneck_adapters import BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA
from castalia.nn.adaptation.soft_prompts import Prompts

TINY = {"context": 24, "dim": 16, "depth": 2, "heads": 2, "dropout": 0.0, "random_state": 0}
ANIMALS = ["the cat eats fish .", "a dog likes bones .", "cows eat green grass ."] * 12
LABELS = np.array([0, 1, 2] * 12)


@pytest.fixture(scope="module")
def pretrained() -> GPTLanguageModel:
    return GPTLanguageModel(**TINY, tokenizer="words", epochs=3, lr=1e-2).fit(ANIMALS)


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in module.state_dict().items()}


def test_the_network_begins_as_the_start_with_new_tokens_like_its_end(pretrained):
    model = GPTClassifier(**TINY, start=pretrained, epochs=1, lr=1e-30).fit(ANIMALS, LABELS)
    known, end = model.adapter_.known, pretrained.adapter_.end
    table, given = model.module_.decoder.tokens.weight, pretrained.module_.tokens.weight
    assert known == len(given) == len(table) - 4
    assert torch.equal(table[:known], given)
    assert (table[known:] == given[end]).all()
    ids = torch.tensor([[end, *pretrained.tokenizer_.encode("the dog eats")]])
    inside = ids.clone()
    inside[0, 0] = known  # the start token of the task
    assert_allclose(
        model.module_.decoder.features(inside).detach(),
        pretrained.module_.features(ids).detach(),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("settings", "moves"),
    [
        ({"train": "head"}, ("head",)),
        ({"train": 1}, ("head", "blocks.1", "decoder.norm")),
        ({"adapt": LoRA(rank=2)}, ("head", "lora")),
        ({"adapt": BottleneckAdapters(2)}, ("head", "adapter")),
        ({"adapt": Prompts(2)}, ("head", "prompts")),
    ],
    ids=["head", "last block", "LoRA", "bottleneck", "prompts"],
)
def test_only_what_is_asked_for_is_trained_and_the_rest_keeps_every_bit(
    pretrained, settings, moves, tmp_path
):
    model = GPTClassifier(**TINY, start=pretrained, epochs=2, lr=1e-2, **settings)
    model.fit(ANIMALS, LABELS)
    given, seen = weights(pretrained.module_), 0
    for name, value in weights(model.module_).items():
        plain = name.removeprefix("decoder.").removeprefix("net.").replace("table.", "")
        if plain in given and not any(part in name for part in moves):
            assert torch.equal(value[: len(given[plain])], given[plain]), name
            seen += 1
    assert seen > 5
    castalia.save(model, tmp_path / "m")
    loaded = castalia.load(tmp_path / "m")
    assert_array_equal(loaded.predict_proba(ANIMALS[:3]), model.predict_proba(ANIMALS[:3]))
    assert clone(model).start is pretrained


def test_starts_may_be_folders_and_models_made_from_one(pretrained, tmp_path):
    castalia.save(pretrained, tmp_path / "ours")
    pretrained.save_pretrained(tmp_path / "theirs")
    settings = {"train": "head", "epochs": 1, "lr": 1e-30}
    first = GPTClassifier(**TINY, start=pretrained, **settings).fit(ANIMALS, LABELS)
    expected = first.module_.decoder.tokens.weight
    for start in (tmp_path / "ours", str(tmp_path / "theirs"), first):
        model = GPTClassifier(**TINY, start=start, **settings).fit(ANIMALS, LABELS)
        assert torch.equal(model.module_.decoder.tokens.weight, expected)


def test_a_start_tuned_by_lora_is_taken_with_its_updates(pretrained):
    tuned = GPTClassifier(**TINY, start=pretrained, adapt=LoRA(rank=2), epochs=2, lr=1e-2)
    tuned.fit(ANIMALS, LABELS)
    again = GPTClassifier(**TINY, start=tuned, train="head", epochs=1, lr=1e-30)
    again.fit(ANIMALS, LABELS)
    ids = torch.tensor([[5, 6, 7]])
    one, other = (m.module_.decoder.features(ids) for m in (tuned, again))
    torch.testing.assert_close(one, other)
    prompted = GPTClassifier(**TINY, start=pretrained, adapt=Prompts(2), epochs=1)
    with pytest.raises(InvalidParameter, match="a GPT without added parts"):
        GPTClassifier(**TINY, start=prompted.fit(ANIMALS, LABELS)).fit(ANIMALS, LABELS)


def test_what_cannot_be_a_start_is_refused(pretrained):
    with pytest.raises(InvalidParameter, match="random weights would be kept; got 'head'"):
        GPTClassifier(**TINY, train="head").fit(ANIMALS, LABELS)
    with pytest.raises(InvalidParameter, match="`train` must be at most 2"):
        GPTClassifier(**TINY, start=pretrained, train=5).fit(ANIMALS, LABELS)
    other = BERT(**TINY, epochs=1).fit(ANIMALS)
    with pytest.raises(InvalidParameter, match=r"(?s)must hold a GPT; got .* with a BERT"):
        GPTClassifier(**TINY, start=other).fit(ANIMALS, LABELS)
    numbers = GPTLanguageModel(**TINY, epochs=1).fit([[1, 2, 3, 4, 5] * 10])
    with pytest.raises(InvalidParameter, match="`tokenizer` must be given, for `start` has none"):
        GPTClassifier(**TINY, start=numbers).fit(ANIMALS, LABELS)


def test_early_blocks_move_less_with_a_smaller_lr_decay(pretrained):
    settings = {"start": pretrained, "epochs": 1, "lr": 1e-3, "auxiliary": 0.0}
    model = GPTClassifier(**TINY, **settings, lr_decay=0.1).fit(ANIMALS, LABELS)
    given = pretrained.module_.blocks
    moved = [
        (block.attention.qkv.weight - old.attention.qkv.weight).abs().max().item()
        for block, old in zip(model.module_.decoder.blocks, given, strict=True)
    ]
    assert 5 * moved[0] < moved[1] < 5e-3


def test_the_language_loss_is_in_the_history_unless_it_is_left_out(pretrained):
    tune = {"start": pretrained, "epochs": 1}
    line = GPTClassifier(**TINY, **tune, auxiliary=0.3).fit(ANIMALS, LABELS).history_[0]
    assert line["loss"] == pytest.approx(line["task"] + 0.3 * line["language"], rel=1e-5)
    for settings in ({"auxiliary": 0.0}, {"train": "head"}):
        model = GPTClassifier(**TINY, **tune, **settings).fit(ANIMALS, LABELS)
        assert "language" not in model.history_[0]


def topics(n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six words of one topic, out of thirty; which topic it is."""
    y = np.arange(n) % 2
    words = [30 * topic + random.integers(30, size=6) for topic in y]
    return np.array([" ".join(f"w{k}" for k in row) for row in words], dtype=object), y


def test_a_pretrained_network_with_few_labels_beats_one_from_scratch():
    random = np.random.default_rng(0)
    (texts, _), (X, y), (new, true) = (topics(n, random) for n in (300, 10, 200))
    sizes = {"context": 8, "dim": 32, "depth": 1, "heads": 2, "dropout": 0.0, "random_state": 1}
    base = GPTLanguageModel(**sizes, tokenizer="whitespace", epochs=12, batch_size=32, lr=1e-2)
    base.fit(list(texts))
    tune = {"epochs": 12, "lr": 3e-3, "batch_size": 5, "training": Training(validation=0)}
    tuned = GPTClassifier(**sizes, **tune, start=base).fit(X, y)
    scratch = GPTClassifier(**sizes, **tune, tokenizer=base.tokenizer_).fit(X, y)
    assert tuned.score(new, true) > scratch.score(new, true) + 0.1


def test_a_similarity_does_not_depend_on_the_order_of_its_texts():
    words = ["cat", "dog", "cow", "hen"]
    X = [(a, b) for a in words for b in words] * 4
    y = [int(a == b) for a, b in X]
    model = GPTClassifier(**TINY, layout="similarity", epochs=2).fit(X, y)
    turned = [(b, a) for a, b in X]
    assert_allclose(model.predict_proba(turned), model.predict_proba(X), atol=1e-6)
    ordered = GPTClassifier(**TINY, epochs=2, lr=1e-2).fit(X, y)
    assert np.abs(ordered.predict_proba(turned) - ordered.predict_proba(X)).max() > 1e-5


def test_an_answer_is_chosen_by_a_softmax_over_the_candidates(tmp_path):
    """The right answer repeats the context's word; where it stands is drawn."""
    random, words = np.random.default_rng(0), np.array(["cat", "dog", "cow", "hen"])
    picked = [random.permutation(4)[:3] for _ in range(120)]
    y = random.integers(3, size=120)
    X = [
        (str(words[row[k]]), [str(w) for w in words[row]]) for row, k in zip(picked, y, strict=True)
    ]
    small = {**TINY, "depth": 1, "context": 8, "tokenizer": "words", "auxiliary": 0.0}
    model = GPTClassifier(**small, epochs=20, lr=1e-2, batch_size=16).fit(X, y)
    assert model.score(X, y) > 0.95
    p = model.predict_proba(X[:20])
    assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    other = [(context, answers[::-1]) for context, answers in X[:20]]
    assert_allclose(model.predict_proba(other), p[:, ::-1], atol=1e-5)
    castalia.save(model, tmp_path / "m")
    assert_array_equal(castalia.load(tmp_path / "m").predict(X[:20]), model.predict(X[:20]))
    with pytest.raises(InvalidData, match="number of the right answer, from 0 to 2; got 7"):
        GPTClassifier(**TINY).fit(X, np.where(y == 0, 7, y))


def test_the_last_answer_may_never_be_right_in_training():
    X = [("a", ["a", "b", "c"]), ("b", ["a", "b", "c"])] * 5
    model = GPTClassifier(**TINY, epochs=1).fit(X, [0, 1] * 5)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (10, 3)


def test_several_labels_at_once_are_learnt():
    X = ["good long", "bad long", "good short", "bad short"] * 10
    Y = np.array([[1, 1], [0, 1], [1, 0], [0, 0]] * 10)
    small = {**TINY, "depth": 1, "tokenizer": "words", "auxiliary": 0.0}
    model = GPTClassifier(**small, epochs=15, lr=1e-2, batch_size=8).fit(X, Y)
    assert (model.predict(X) == Y).mean() == 1


def test_a_text_longer_than_those_of_the_training_is_read_up_to_the_context():
    model = GPTClassifier(**TINY, tokenizer="words", epochs=1).fit(ANIMALS, LABELS)
    long = " ".join(["the cat eats fish ."] * 9)
    cut = " ".join(long.split()[: TINY["context"] - 2])
    assert_array_equal(model.predict_proba([long]), model.predict_proba([cut]))
