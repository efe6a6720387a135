"""GPT language models that continue from weights: starts, what is trained, beams, folders."""

import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from tests.nets.language import peers
from torch.testing import assert_close

import castalia
from castalia.errors import InvalidParameter
from castalia.models.language import BART, BERT, GPTLanguageModel
from castalia.nn import BottleneckAdapters, LoRA, Prompts

TINY = {"context": 24, "dim": 16, "depth": 2, "heads": 2, "dropout": 0.0, "random_state": 0}
TEXTS = ["the cat eats fish .", "a dog likes bones .", "cows eat green grass ."] * 12
OTHERS = ["the dog eats grass .", "a cat likes fish ."] * 12


@pytest.fixture(scope="module")
def base() -> GPTLanguageModel:
    return GPTLanguageModel(**TINY, tokenizer="words", epochs=3, lr=1e-2).fit(TEXTS)


def test_a_start_is_where_the_training_begins(base):
    model = GPTLanguageModel(
        start=base, context=24, dropout=0.0, epochs=1, lr=1e-30, random_state=1
    )
    model.fit(OTHERS)
    for ours, given in zip(model.module_.parameters(), base.module_.parameters(), strict=True):
        assert torch.equal(ours, given)
    assert model.tokenizer_ is base.tokenizer_
    assert_allclose(model.score_samples(TEXTS[:3]), base.score_samples(TEXTS[:3]), rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "moves"),
    [
        ({"train": 1}, ("blocks.1", "norm")),
        ({"adapt": LoRA(rank=2)}, ("lora",)),
        ({"adapt": BottleneckAdapters(2)}, ("adapter",)),
        ({"adapt": Prompts(2)}, ("prompts",)),
    ],
    ids=["last block", "LoRA", "bottleneck", "prompts"],
)
def test_only_what_is_asked_for_is_trained_and_a_saved_model_writes_the_same(
    base, settings, moves, tmp_path
):
    before = {k: v.clone() for k, v in base.module_.state_dict().items()}
    model = GPTLanguageModel(start=base, context=24, dropout=0.0, epochs=2, lr=0.01, **settings)
    model.set_params(random_state=0).fit(OTHERS)
    trained = [name for name, p in model.module_.named_parameters() if p.requires_grad]
    assert trained
    assert all(any(part in name for part in moves) for name in trained)
    assert all(v.equal(before[k]) for k, v in base.module_.state_dict().items())
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    castalia.save(model, tmp_path / "m")
    again = castalia.load(tmp_path / "m")
    said = [m.generate("the dog", 6, temperature=0) for m in (model, again)]
    assert said[0] == said[1]


def test_fine_tuning_by_lora_is_written_whole(base, tmp_path):
    from transformers import GPT2LMHeadModel

    tuned = GPTLanguageModel(start=base, adapt=LoRA(rank=2), epochs=2, lr=0.05, random_state=0)
    tuned.fit(OTHERS).save_pretrained(tmp_path)
    ids = torch.tensor([[5, 9, 2, 11]])
    tuned.module_.eval()
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path).eval()(ids).logits
    assert_close(tuned.module_(ids), theirs, atol=1e-5, rtol=1e-5)
    assert not torch.allclose(base.module_.eval()(ids), theirs, atol=1e-3)


def test_parts_without_a_place_in_a_folder_are_not_dropped_silently(base, tmp_path):
    model = GPTLanguageModel(start=base, adapt=Prompts(2), epochs=1, random_state=0).fit(OTHERS)
    with pytest.raises(InvalidParameter, match="without learnt prompts and adapters"):
        model.save_pretrained(tmp_path)


def test_a_folder_is_continued_by_start_and_not_forgotten_without(tmp_path):
    peers.gpt2().save_pretrained(tmp_path)
    read = GPTLanguageModel.from_pretrained(tmp_path)
    ids = [[5, 9, 2, 30, 11, 7] * 8] * 6
    with pytest.raises(InvalidParameter, match=r"`start` must be given.*start=folder"):
        read.fit(ids)
    assert clone(read).set_params(epochs=1, context=8, random_state=0).fit(ids).n_iter_ == 1
    kept = GPTLanguageModel(start=tmp_path, context=8, epochs=1, lr=1e-30, random_state=0).fit(ids)
    given = torch.tensor([[5, 9, 2]])
    assert_close(kept.module_.eval()(given), read.module_(given))
    read.set_params(start=tmp_path, epochs=1, context=8).fit(ids)
    assert read.n_iter_ == 1


@pytest.mark.parametrize("kind", [BERT, BART])
def test_other_models_of_folders_are_not_forgotten_either(kind, tmp_path):
    small = {"dim": 16, "depth": 1, "heads": 2, "epochs": 1, "random_state": 0}
    kind(**small).fit(TEXTS).save_pretrained(tmp_path)
    with pytest.raises(InvalidParameter, match=f"{kind.__name__}: `start` must be given"):
        kind.from_pretrained(tmp_path).fit(TEXTS)


def test_settings_that_contradict_a_start_are_refused(base):
    with pytest.raises(InvalidParameter, match="the table of the tokens; got 'head'"):
        GPTLanguageModel(start=base, train="head").fit(TEXTS)
    with pytest.raises(InvalidParameter, match="without a `start`, or random weights"):
        GPTLanguageModel(**TINY, adapt=LoRA()).fit(TEXTS)


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_beams_write_what_transformers_writes(tmp_path, penalty):
    ids = torch.tensor([[5, 9, 2, 30, 11, 7], [8, 3, 3, 21, 12, 19]])
    for seed in range(4):
        model = peers.lively(peers.gpt2(), seed=seed)
        model.save_pretrained(tmp_path)
        ours = GPTLanguageModel.from_pretrained(tmp_path)
        said = ours.generate(ids.tolist(), 12, beams=4, length_penalty=penalty)
        settings = {"num_beams": 4, "do_sample": False, "length_penalty": penalty}
        theirs = model.generate(ids, max_new_tokens=12, pad_token_id=0, **settings)
        assert said == theirs.tolist()


def test_beams_without_a_cache_find_the_same_and_draw_nothing(base):
    from castalia.nets.language import beam_search

    prompts = [[3, 5, 6], [4, 7]]
    slow, quick = (beam_search(base.module_, prompts, tokens=6, cached=c).ids for c in (0, 1))
    assert slow.equal(quick)
    assert len(base.generate("the", 40, beams=2)) > 40  # longer than the context
    with pytest.raises(InvalidParameter, match="`top_p` must be left out with beams"):
        base.generate("the", 4, beams=2, top_p=0.5)
