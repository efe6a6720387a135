"""Neural language models as estimators: scores, writing, saving, bad input."""

import json

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import castalia
from castalia import Training
from castalia.data.tokenizers import ByteBPETokenizer, CharTokenizer, WhitespaceTokenizer
from castalia.errors import CheckpointMismatch, DataWarning, InvalidData, InvalidParameter
from castalia.models.language import GPTLanguageModel, RNNLanguageModel, WindowLanguageModel
from castalia.testing import toy

TEXTS = toy("chain")[0]
SMALL = {"context": 8, "tokenizer": "words", "epochs": 2, "random_state": 0, "batch_size": 16}
KINDS = {
    "gpt": (GPTLanguageModel, {"dim": 8, "depth": 1, "heads": 2, "dropout": 0.0}),
    "rnn": (RNNLanguageModel, {"hidden": 8}),
    "window": (WindowLanguageModel, {"window": 3, "dim": 8, "hidden": 8}),
}


def make(kind, **settings):
    cls, own = KINDS[kind]
    return cls(**{**SMALL, **own, **settings})


@pytest.fixture(scope="module")
def models():
    return {kind: make(kind).fit(TEXTS[:100]) for kind in KINDS}


@pytest.fixture(params=KINDS)
def model(request, models):
    return models[request.param]


def silence(model):
    """Let a network give every token the same score."""
    with torch.no_grad():
        for parameter in model.module_.parameters():
            parameter.zero_()
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_the_perplexity_of_a_uniform_model_is_the_size_of_its_vocabulary(kind):
    model = silence(make(kind, epochs=1).fit(TEXTS[:50]))
    assert model.perplexity(TEXTS[50:60]) == pytest.approx(len(model.tokenizer_))
    logs = np.concatenate(model.token_log_probabilities(TEXTS[50:60]))
    assert np.exp(logs) == pytest.approx(1 / len(model.tokenizer_))


def test_a_text_is_scored_token_by_token_up_to_its_end(model):
    text = "a b c"  # short enough for one window
    made = model.tokenizer_
    ids = [made.id_of("end"), *made.encode(text), made.id_of("end")]
    logits = model.module_(torch.tensor([ids[:-1]]))[0]
    wanted = logits.log_softmax(-1)[torch.arange(4), torch.tensor(ids[1:])].detach()
    (found,) = model.token_log_probabilities([text])
    assert_close(torch.from_numpy(found).to(wanted), wanted)
    assert model.score_samples([text])[0] == pytest.approx(float(wanted.sum()))


def test_texts_are_scored_alike_alone_and_together(model):
    texts = [*TEXTS[100:110], " ".join("abcdef" * 12)]
    together = model.score_samples(texts)
    alone = [model.score_samples([text])[0] for text in texts]
    assert together == pytest.approx(alone, rel=1e-5)


def test_the_score_reads_texts_one_behind_the_other(models):
    texts = TEXTS[100:130]
    model = models["rnn"]
    stream = torch.from_numpy(model.adapter_.stream(texts, "test"))
    logits = model.module_(stream[None, :-1])[0].detach()
    loss = torch.nn.functional.cross_entropy(logits, stream[1:])
    assert model.score(texts) == pytest.approx(-float(loss), rel=1e-5)
    assert model.perplexity(texts) == pytest.approx(np.exp(float(loss)), rel=1e-5)


def test_every_token_of_a_long_text_has_half_a_context_before_it(models):
    model = models["gpt"]
    ids = model.adapter_.stream([" ".join("abcdef" * 5)], "test")  # 32 tokens, context 8
    (found,) = model._logs([ids])
    for t in range(1, len(ids)):
        first = (
            0
            if t <= 8
            else next(s for s in [*range(0, len(ids) - 9, 4), len(ids) - 9] if t <= s + 8)
        )
        assert t - first >= min(t, 4)
        logits = model.module_(torch.from_numpy(ids[None, first:t]))[0, -1].detach()
        assert found[t - 1] == pytest.approx(float(logits.log_softmax(-1)[ids[t]]), rel=1e-4)


def test_a_window_model_scores_long_texts_exactly(models):
    model = models["window"]
    ids = model.adapter_.stream([" ".join("abcdef" * 100)], "test")
    logits = model.module_(torch.from_numpy(ids[None, :-1]))[0].log_softmax(-1)
    wanted = logits[torch.arange(len(ids) - 1), torch.from_numpy(ids[1:])].detach().numpy()
    assert model._logs([ids])[0] == pytest.approx(wanted, rel=1e-4)


# ---- writing ----


def test_writing_continues_the_prompt_and_repeats_with_a_seed(model):
    one = model.generate("a b", tokens=12, random_state=3)
    assert one.startswith("a b")
    assert one == model.generate("a b", tokens=12, random_state=3)
    drawn = {model.generate("a b", tokens=12, temperature=2.0, random_state=s) for s in range(8)}
    assert len(drawn) > 1


def test_several_prompts_are_continued_as_each_would_be_alone(model):
    prompts = ["a b c", "d", "e f a b"]
    together = model.generate(prompts, tokens=6, temperature=0)
    assert together == [model.generate(prompt, tokens=6, temperature=0) for prompt in prompts]


def test_the_most_probable_token_is_the_one_that_is_written_coldly(model):
    p = model.next_distribution("a b")
    assert p.sum() == pytest.approx(1)
    best = model.predict_next("a b", top=3)
    assert len(best) == 3
    assert model.predict_next("a b") == best[:1]
    written = model.generate("a b", tokens=1, temperature=0)
    assert written == ("a b" if best[0] == "</s>" else f"a b {best[0]}")


def test_a_text_may_outgrow_the_context(model):
    text = model.generate("a b c d e f a b c", tokens=30, temperature=1.0, random_state=0)
    assert text.startswith("a b c d e f a b c")


def test_writing_ends_behind_a_stop(models):
    model = models["window"]
    free = model.generate("a", tokens=12, temperature=0)
    assert free.count("d") >= 1
    stopped = model.generate("a", tokens=12, temperature=0, stop="d")
    assert stopped == free[: free.index("d") + 1]
    assert model.generate("a", tokens=12, temperature=0, stop=None) == free


@pytest.mark.parametrize(
    "name, value",
    [("stop", ""), ("stop", [3]), ("stop", 5), ("tokens", 2.5), ("tokens", "3")]
    + [("temperature", "hot"), ("random_state", "x")],
)
def test_settings_of_writing_that_cannot_be_are_named(models, name, value):
    with pytest.raises(InvalidParameter, match=f"`{name}` must be .*; got"):
        models["gpt"].generate("a", **{name: value})
    with pytest.raises(InvalidParameter, match="`top` must be a whole number at least 1; got -1"):
        models["gpt"].predict_next("a", top=-1)


def test_unknown_symbols_of_a_prompt_are_told(models):
    with pytest.warns(DataWarning, match="1 of 2 tokens of the prompt 'a zebra' were not in"):
        models["gpt"].generate("a zebra", tokens=2)


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"top_p": 0.0}, "top_p"),
        ({"temperature": -1.0}, "temperature"),
        ({"tokens": 0}, "tokens"),
        ({"top_k": 0}, "top_k"),
    ],
)
def test_settings_of_writing_are_checked(models, wrong, said):
    with pytest.raises(InvalidParameter, match=f"`{said}` must be"):
        models["gpt"].generate("a", **wrong)


# ---- fitting ----


def test_the_end_of_the_texts_is_held_out():
    model = make("gpt", context=4, training=Training(validation=0.1)).fit(TEXTS[:100])
    blocks = len(model.adapter_.check(TEXTS[:100], "test"))
    assert model.settings_["validation_rows"] == blocks // 10
    assert model.settings_["rows"] == blocks - blocks // 10


def test_blocks_that_share_tokens_with_what_is_held_out_are_not_learnt():
    model = make("gpt", context=8, stride=2, training=Training(validation=0.1)).fit(TEXTS[:100])
    rows, held = model.settings_["rows"], model.settings_["validation_rows"]
    stream = model.adapter_.stream(TEXTS[:100], "test")
    last_learnt = 2 * (rows - 1) + 8  # the last target of the last training block
    first_held = 2 * (rows + 3)  # the first input of the first validation block
    assert last_learnt <= first_held
    assert rows + 3 + held == len(range(0, len(stream) - 8, 2)) + ((len(stream) - 9) % 2 != 0)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_to_validate_on_may_be_given(kind):
    training = Training(validation=(TEXTS[100:130], None), patience=1)
    model = make(kind, training=training).fit(TEXTS[:100])
    model.fit(TEXTS[:100])
    assert model.history_[-1]["val_loss"] == pytest.approx(-model.score(TEXTS[100:130]), abs=0.15)


def test_a_carried_state_tells_what_lies_before_a_block():
    random = np.random.default_rng(0)
    period = " ".join(random.permutation(list("abcdefgh")[:2] * 6))  # two words, twelve long
    text = [" ".join([period] * 20)]
    settings = {"context": 2, "batch_size": 2, "epochs": 12, "lr": 2e-2, "hidden": 16}
    model = make("rnn", **settings, training=Training(validation=0)).fit(text)
    # Within two tokens nothing tells where in the period they stand: without a carried state the
    # loss cannot fall below the entropy of the next word given two.
    blind = make("window", window=2, epochs=30, lr=1e-2, context=8).fit(text)
    assert model.history_[-1]["loss"] < 0.5 * -blind.score(text)


def test_sample_weights_are_refused():
    with pytest.raises(InvalidParameter, match="GPTLanguageModel: `sample_weight` must be None"):
        make("gpt", context=8).fit([np.arange(17)], sample_weight=[1.0])


def test_sizes_that_do_not_fit_are_named():
    with pytest.raises(InvalidParameter, match="`dim` must be a multiple of heads=3; got 8"):
        make("gpt", heads=3).fit(TEXTS[:20])
    with pytest.raises(InvalidParameter, match="None or hidden=8 with tied weights; got 4"):
        make("rnn", tied=True, dim=4).fit(TEXTS[:20])


def test_models_of_token_ids_answer_with_token_ids():
    ids = np.tile([4, 1, 2], 60)
    model = make("window", tokenizer=None, epochs=20, lr=1e-2, batch_size=4).fit([ids])
    assert model.tokenizer_ is None
    assert model.generate([4, 1], tokens=4, temperature=0) == [4, 1, 2, 4, 1, 2]
    assert model.predict_next([4]) == [1]
    with pytest.raises(InvalidData, match="fitted on token ids; the prompt must be a list"):
        model.generate("four")


# ---- files ----


@pytest.mark.parametrize(
    "tokenizer", [CharTokenizer(), ByteBPETokenizer(vocabulary_size=280), WhitespaceTokenizer()]
)
def test_a_saved_model_brings_its_tokenizer(tmp_path, tokenizer):
    model = make("gpt", tokenizer=tokenizer).fit(TEXTS[:50])
    castalia.save(model, tmp_path / "model")
    loaded = castalia.load(tmp_path / "model")
    assert type(loaded.tokenizer_) is type(tokenizer)
    assert loaded.generate("a b", tokens=5, random_state=0) == model.generate(
        "a b", tokens=5, random_state=0
    )


def test_a_folder_of_gpt2_gives_the_logits_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=60, n_positions=16, n_embd=12, n_layer=2, n_head=3)
    peer = transformers.GPT2LMHeadModel(config).eval()
    peer.save_pretrained(tmp_path / "gpt2")
    model = GPTLanguageModel.from_pretrained(tmp_path / "gpt2")
    ids = torch.randint(60, (2, 9))
    with torch.no_grad():
        assert_close(model.module_(ids), peer(ids).logits, atol=1e-5, rtol=1e-5)
    assert (model.dim, model.depth, model.heads, model.context) == (12, 2, 3, 16)
    castalia.save(model, tmp_path / "ours")
    assert_close(castalia.load(tmp_path / "ours").module_(ids), model.module_(ids))
    assert len(model.generate([5, 6], tokens=3, temperature=0)) == 5


def test_a_fitted_model_becomes_a_folder_that_comes_back(tmp_path):
    model = make("gpt", tokenizer=ByteBPETokenizer(vocabulary_size=280)).fit(TEXTS[:50])
    folder = model.save_pretrained(tmp_path / "hf")
    again = GPTLanguageModel.from_pretrained(folder)
    assert again.score_samples(TEXTS[:5]) == pytest.approx(model.score_samples(TEXTS[:5]))
    assert again.generate("a b", tokens=5, temperature=0) == model.generate(
        "a b", tokens=5, temperature=0
    )


def test_tensors_without_a_place_are_named_and_may_be_left_out(tmp_path):
    from safetensors.torch import load_file, save_file

    from castalia.nets.language import GPT, save_pretrained

    file = save_pretrained(GPT(9, context=8, dim=8, depth=1, heads=2), tmp_path / "hf")
    weights = load_file(file / "model.safetensors") | {"score.weight": torch.zeros(2, 8)}
    save_file(weights, file / "model.safetensors")
    with pytest.raises(CheckpointMismatch, match="`score.weight` have no place .* extra='ignore'"):
        GPTLanguageModel.from_pretrained(file)
    assert GPTLanguageModel.from_pretrained(file, extra="ignore").dim == 8


def test_a_folder_of_another_model_is_refused(tmp_path):
    from castalia.nets.language import BERT, save_pretrained

    save_pretrained(BERT(30, context=8, dim=8, depth=1, heads=2), tmp_path / "bert")
    with pytest.raises(CheckpointMismatch, match="must hold a GPT-2; it holds a BERT"):
        GPTLanguageModel.from_pretrained(tmp_path / "bert")


def test_settings_of_a_search_reach_the_model():
    model = make("gpt").set_params(training__clip=1.0, dim=4)
    assert json.dumps(model.get_params(deep=False)["dim"]) == "4"
    assert model.fit(TEXTS[:20]).module_.dim == 4
