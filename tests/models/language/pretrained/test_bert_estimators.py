"""Pretrained encoders as estimators: texts in, vectors, labels and files out."""

from functools import cache

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import castalia
from castalia import Training
from castalia.data.text import PairAdapter, sentence_pairs
from castalia.errors import CheckpointMismatch, InvalidData, InvalidParameter
from castalia.models.language import BERT, BERTClassifier, RoBERTa
from castalia.nets.language import GPT, load_pretrained, save_pretrained
from castalia.nn.adaptation.bottleneck_adapters import BottleneckAdapters
from castalia.nn.adaptation.lora import LoRA
from castalia.nn.adaptation.soft_prompts import Prompts

TINY = {"context": 24, "dim": 16, "depth": 2, "heads": 2, "dropout": 0.0, "random_state": 0}
ANIMALS = ["the cat eats fish .", "a dog likes bones .", "cows eat green grass ."] * 12
LABELS = np.array([0, 1, 2] * 12)


@pytest.fixture(scope="module")
def pretrained() -> BERT:
    return BERT(**TINY, epochs=3, lr=1e-2).fit(ANIMALS)


def test_a_text_is_read_as_begin_text_end_and_a_pair_with_an_end_between():
    adapter = PairAdapter("words", context=8)
    single = adapter.check(["so good", "bad"], "fit")
    names = adapter.fit(single).tokenizer
    row = adapter.rows(single, None).take(torch.tensor([0]))[0].tolist()
    begin, end, pad = (names.id_of(role) for role in ("begin", "end", "pad"))
    assert row == [begin, *names.encode("so good"), end, pad, pad, pad, pad]
    pair = adapter.encode(adapter.check([("so", "bad")], "fit"))[0]
    assert pair == [begin, *names.encode("so"), end, *names.encode("bad"), end]


def test_of_a_long_pair_the_longer_text_is_cut():
    adapter = PairAdapter("words", context=9)
    texts = adapter.check([("a", "b c d e f g h i"), ("a b c d e f g h", "i")], "fit")
    sizes = adapter.fit(texts).encode(texts)
    assert [len(row) for row in sizes] == [9, 9]
    assert [row.index(adapter.end) for row in sizes] == [2, 6]


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (["good", ""], "text 1 is empty"),
        ([("a", "b"), "c"], "every row must be a pair of texts"),
        ("one text", "X must be a list of texts"),
        ([3.5], "a text must be a string; got 3.5"),
    ],
    ids=["empty", "mixed", "string", "number"],
)
def test_what_is_no_text_is_refused(X, said):
    with pytest.raises(InvalidData, match=f"BERTClassifier: .*{said}|BERTClassifier: {said}"):
        BERTClassifier(**TINY).fit(X, [0] * len(X))


def test_embeddings_come_from_the_layers_asked_for(pretrained):
    X = ["the cat likes fish", "cows"]
    layers = [pretrained.embed(X, layers=k, pool=None) for k in (0, 1, 2)]
    assert_array_equal(pretrained.embed(X, layers=-1, pool=None)[0], layers[2][0])
    joined = pretrained.embed(X, layers=(-2, -1), pool=None)[1]
    assert_array_equal(joined, np.concatenate([layers[1][1], layers[2][1]], axis=1))
    added = pretrained.embed(X, layers=(0, 1, 2), merge="sum", pool=None)[0]
    assert_allclose(added, sum(layer[0] for layer in layers), rtol=1e-5, atol=1e-6)
    assert_allclose(pretrained.transform(X)[0], layers[2][0].mean(axis=0), rtol=1e-5, atol=1e-6)
    assert_array_equal(pretrained.embed(X, pool="first")[1], layers[2][1][0])
    with pytest.raises(InvalidParameter, match="`layers` must be from 0 to 2"):
        pretrained.embed(X, layers=7)


def test_layers_are_the_embeddings_and_what_each_block_gives(pretrained):
    X = ["the cat likes fish", "cows"]
    seen = []
    net = pretrained.module_
    hooks = [b.register_forward_hook(lambda m, given, out: seen.append(out)) for b in net.blocks]
    first = net.blocks[0].register_forward_pre_hook(lambda m, given: seen.append(given[0]))
    found = [pretrained.embed(X, layers=k, pool=None) for k in (0, 1, 2)]
    for hook in (*hooks, first):
        hook.remove()
    for k, layer in enumerate(seen[:3]):
        for row, vectors in enumerate(found[k]):
            assert_array_equal(vectors, layer[row, : len(vectors)])
    assert [len(vectors) for vectors in found[0]] == [6, 3]  # begin and end included


def test_a_folder_of_hugging_face_gives_the_same_network_back(pretrained, tmp_path):
    pretrained.save_pretrained(tmp_path / "hf")
    again = BERT.from_pretrained(tmp_path / "hf")
    assert_array_equal(again.transform(ANIMALS[:4]), pretrained.transform(ANIMALS[:4]))
    question = "the cat [MASK] fish"
    assert again.fill(question, top=2)[0] == pretrained.fill(question)[0]
    castalia.save(again, tmp_path / "ours")
    loaded = castalia.load(tmp_path / "ours")
    assert_array_equal(loaded.transform(ANIMALS[:4]), again.transform(ANIMALS[:4]))
    assert isinstance(load_pretrained(tmp_path / "hf"), torch.nn.Module)
    with pytest.raises(CheckpointMismatch, match="must hold a RoBERTa; it holds a BERT"):
        RoBERTa.from_pretrained(tmp_path / "hf")
    save_pretrained(GPT(30, context=8, dim=8, depth=1, heads=2), tmp_path / "gpt")
    with pytest.raises(CheckpointMismatch, match="must hold a BERT; it holds a GPT"):
        BERT.from_pretrained(tmp_path / "gpt")


def test_next_sentence_pretraining_wants_pairs_and_trains_the_judge():
    pairs = sentence_pairs([" ".join(ANIMALS[k : k + 3]) for k in range(20)])
    model = BERT(**TINY, next_sentence=True, epochs=2).fit(pairs)
    assert {"masked", "next_sentence"} <= set(model.history_[-1])
    assert model.transform(pairs[:2]).shape == model.transform(["a dog"] * 2).shape == (2, 16)
    with pytest.raises(InvalidData, match="sentence_pairs"):
        BERT(**TINY, next_sentence=True).fit(ANIMALS)


def test_roberta_has_no_segments_no_pooler_and_positions_from_row_two():
    model = RoBERTa(**TINY, epochs=1).fit(ANIMALS)
    net = model.module_
    assert (net.segments.num_embeddings, net.offset, net.pooler) == (1, 2, None)
    assert model.adapter_.tokenizer.special[:3] == ("<s>", "<pad>", "</s>")


def weights(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in module.state_dict().items()}


@pytest.mark.parametrize(
    ("settings", "moves"),
    [
        ({"train": "head"}, ("head", "encoder.pooler")),
        ({"train": 1}, ("head", "encoder.pooler", "encoder.blocks.1")),
        ({"adapt": LoRA(rank=2)}, ("head", "encoder.pooler", "lora")),
        ({"adapt": BottleneckAdapters(2)}, ("head", "encoder.pooler", "adapter")),
        ({"adapt": Prompts(2, at=1)}, ("head", "pooler", "prompts")),
        ({"adapt": Prompts(2, at=1), "pool": "mean"}, ("head", "prompts")),
        ({"train": "head", "pool": "mean"}, ("head",)),
    ],
    ids=["head", "last block", "LoRA", "bottleneck", "prompts", "mean of prompted", "mean"],
)
def test_only_what_is_asked_for_is_trained_and_the_rest_keeps_every_bit(
    pretrained, settings, moves, tmp_path
):
    model = BERTClassifier(**TINY, start=pretrained, epochs=2, lr=1e-2, **settings)
    model.fit(ANIMALS, LABELS)
    given = weights(pretrained.module_)
    for name, value in weights(model.module_).items():
        plain = name.removeprefix("encoder.").removeprefix("net.").replace("table.", "")
        if plain in given and not any(part in name for part in moves):
            assert torch.equal(value, given[plain]), name
    castalia.save(model, tmp_path / "m")
    loaded = castalia.load(tmp_path / "m")
    assert_array_equal(loaded.predict_proba(ANIMALS[:3]), model.predict_proba(ANIMALS[:3]))
    assert clone(model).start is pretrained


def test_starts_may_be_folders_and_models_made_from_one(pretrained, tmp_path):
    castalia.save(pretrained, tmp_path / "ours")
    pretrained.save_pretrained(tmp_path / "theirs")
    first = BERTClassifier(**TINY, start=pretrained, train="head", epochs=1).fit(ANIMALS, LABELS)
    for start in (tmp_path / "ours", str(tmp_path / "theirs"), first):
        settings = {"train": "head", "epochs": 1, "lr": 1e-30}
        model = BERTClassifier(**TINY, start=start, **settings).fit(ANIMALS, LABELS)
        assert torch.equal(model.module_.encoder.tokens.weight, pretrained.module_.tokens.weight)


def test_freezing_without_a_start_is_refused():
    with pytest.raises(InvalidParameter, match="random weights would be kept; got 'head'"):
        BERTClassifier(**TINY, train="head").fit(ANIMALS, LABELS)
    start = BERT(**TINY, epochs=1).fit(ANIMALS)
    with pytest.raises(InvalidParameter, match="`train` must be at most 2"):
        BERTClassifier(**TINY, start=start, train=5).fit(ANIMALS, LABELS)


def test_pairs_are_classified_by_what_both_say():
    words = ["cat", "dog", "cow", "hen"]
    X = [(a, b) for a in words for b in words] * 4
    y = [2 * (a < "d") + (b < "d") for a, b in X]  # the same words, by where they stand
    model = BERTClassifier(**{**TINY, "dim": 32}, epochs=25, lr=5e-3, batch_size=16).fit(X, y)
    assert model.score(X, y) == 1.0


def topics(n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Six words of one topic, out of thirty; which topic it is."""
    y = np.arange(n) % 2
    words = [30 * topic + random.integers(30, size=6) for topic in y]
    return np.array([" ".join(f"w{k}" for k in row) for row in words], dtype=object), y


@cache
def topic_base() -> tuple[BERT, dict]:
    """A small encoder pretrained on such texts, and its sizes."""
    texts, _ = topics(300, np.random.default_rng(9))
    sizes = {"context": 8, "dim": 32, "depth": 1, "heads": 2, "dropout": 0.0, "random_state": 0}
    settings = {"tokenizer": "whitespace", "epochs": 25, "batch_size": 30, "lr": 1e-2}
    return BERT(**sizes, **settings).fit(texts), sizes


def test_vectors_of_a_frozen_encoder_come_near_fine_tuning():
    base, sizes = topic_base()
    before = weights(base.module_)
    random = np.random.default_rng(0)
    (X, y), (new, true) = (topics(n, random) for n in (40, 200))
    tune = {"epochs": 20, "lr": 3e-3, "batch_size": 5, "training": Training(validation=0)}
    tuned = BERTClassifier(**sizes, **tune, start=base).fit(X, y).score(new, true)
    for choice in ({"layers": -1}, {"layers": (0, 1)}, {"layers": (0, 1), "merge": "sum"}):
        reader = LogisticRegression(max_iter=500).fit(base.embed(X, **choice), y)
        assert reader.score(base.embed(new, **choice), true) > tuned - 0.05
    assert tuned > 0.9
    assert all(torch.equal(value, before[name]) for name, value in weights(base.module_).items())


def test_pretraining_then_few_labels_beats_the_labels_alone():
    random = np.random.default_rng(0)
    base, sizes = topic_base()
    (X, y), (new, true) = (topics(n, random) for n in (10, 200))
    tune = {"epochs": 20, "lr": 3e-3, "batch_size": 5, "training": Training(validation=0)}
    tuned = BERTClassifier(**sizes, **tune, start=base).fit(X, y)
    scratch = BERTClassifier(**sizes, **tune, tokenizer=base.adapter_.tokenizer).fit(X, y)
    assert tuned.score(new, true) > scratch.score(new, true) + 0.03


def test_added_parts_alone_come_near_fine_tuning_the_whole(pretrained):
    tune = {"start": pretrained, "epochs": 12, "lr": 1e-2, "batch_size": 6}
    whole = BERTClassifier(**TINY, **tune).fit(ANIMALS, LABELS)
    scores = {"whole": whole.score(ANIMALS, LABELS)}
    for name, adapt in {"adapters": BottleneckAdapters(4), "LoRA": LoRA(rank=4)}.items():
        model = BERTClassifier(**TINY, **tune, adapt=adapt).fit(ANIMALS, LABELS)
        scores[name] = model.score(ANIMALS, LABELS)
    assert scores["whole"] == 1
    assert min(scores.values()) >= scores["whole"] - 0.05


def test_a_text_without_the_mask_is_told_what_the_mask_is():
    model = RoBERTa(dim=8, depth=1, heads=2, context=16, epochs=1).fit(["some words"] * 4)
    for text in ("the [MASK] sat", ["<mask>"]):
        with pytest.raises(InvalidParameter, match="RoBERTa.fill: .* holds <mask>, the mask"):
            model.fill(text)
    with pytest.raises(InvalidParameter, match="`top` must be a whole number at least 1; got 0"):
        model.fill("the <mask> sat", top=0)


def test_learnt_prompts_leave_room_in_a_full_context(tmp_path):
    texts = ["the cat eats fish and drinks milk and sleeps all day long ."] * 12
    base = BERT(context=8, dim=16, depth=1, heads=2, epochs=1, random_state=0).fit(texts)
    model = BERTClassifier(start=base, context=8, adapt=Prompts(3), epochs=1, random_state=0)
    model.fit(texts, [0, 1] * 6)
    assert model.adapter_.context == 5
    assert len(model.predict(texts[:2])) == 2
