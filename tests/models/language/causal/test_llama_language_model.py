"""Llama as an estimator: folders, conversations of which answers are learnt, LoRA."""

import json

import numpy as np
import pytest
import torch
from tests.nets.language import peers
from torch.testing import assert_close

import castalia
from castalia.data.prompts import ChatTemplate
from castalia.data.text.conversation_adapter import IGNORED, ConversationAdapter
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language import GPTLanguageModel, LlamaLanguageModel
from castalia.nn.adaptation.lora import LoRA
from castalia.objectives import CausalLM
from castalia.protocols import Batch

WORDS = ["user", "assistant", "hi", "hello", "bye", "ciao", "what", "is", "it", "?"]
SPECIAL = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]
TURNS = [("hi", "hello"), ("bye", "ciao")]


def talk(question, answer=None):
    messages = [{"role": "user", "content": question}]
    return messages if answer is None else [*messages, {"role": "assistant", "content": answer}]


TALKS = [talk(*turn) for turn in TURNS] * 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A chat model as transformers saves it, and its tokenizer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = {word: i for i, word in enumerate([*SPECIAL, "<unk>", "\n", *WORDS])}
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    newline = pre_tokenizers.Split("\n", "isolated")
    space = pre_tokenizers.Split(" ", "removed")
    backend.pre_tokenizer = pre_tokenizers.Sequence([newline, space])
    backend.decoder = decoders.WordPiece(prefix="##")
    backend.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 0)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        additional_special_tokens=SPECIAL[2:],
        chat_template=ChatTemplate().source,
    )
    path = tmp_path_factory.mktemp("theirs")
    model = peers.llama(eos_token_id=[1, 3], bos_token_id=0)  # some ids have no token
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path, model, tokenizer


def test_texts_are_continued_as_transformers_continues_them(folder):
    path, model, tokenizer = folder
    ours = LlamaLanguageModel.from_pretrained(path)
    given = tokenizer("hi hello what", return_tensors="pt")
    theirs = model.generate(**given, max_new_tokens=9, do_sample=False, pad_token_id=1)[0]
    prompt = given.input_ids[0].tolist()
    assert ours._prompt("hi hello what") == prompt
    assert prompt[0] == 0
    wanted = [i for i in theirs.tolist() if i not in (1, 3)]
    text = tokenizer.decode(wanted[1:], skip_special_tokens=True)
    assert ours.generate("hi hello what", 9, temperature=0).split() == text.split()
    theirs = model.generate(**given, max_new_tokens=9, num_beams=3, do_sample=False, pad_token_id=1)
    wanted = [i for i in theirs[0].tolist() if i not in (1, 3)]
    text = tokenizer.decode(wanted[1:], skip_special_tokens=True)
    best = ours.generate("hi hello what", 9, beams=3, length_penalty=1.0)
    assert best.split() == text.split()


def test_a_conversation_becomes_the_ids_that_transformers_makes_of_it(folder):
    path, _, tokenizer = folder
    ours = LlamaLanguageModel.from_pretrained(path)
    asked = tokenizer.apply_chat_template(talk("bye"), add_generation_prompt=True)
    assert ours._asked(talk("bye")) == list(asked["input_ids"])
    X = ours.adapter_.check([talk("hi", "hello")], "fit")
    whole = tokenizer.apply_chat_template(talk("hi", "hello"))["input_ids"]
    assert X[0, 0].tolist() == list(whole)[:-1]
    answer = [tokenizer.convert_tokens_to_ids(word) for word in ("hello", "<|im_end|>", "\n")]
    assert X[0, 1].tolist() == [IGNORED] * (len(whole) - 4) + answer
    assert ours.adapter_.stops == (1, 3)


def test_tokens_of_questions_have_no_gradient():
    talks = [talk("hi", "hello"), [*talk("what is it ?", "hello"), *talk("bye", "ciao")]]
    adapter = ConversationAdapter(context=128)
    X = adapter.check(talks, "fit")
    x, y = (torch.from_numpy(X[:, k]).long() for k in (0, 1))
    logits = torch.randn(*x.shape, adapter.vocabulary, requires_grad=True)
    CausalLM(ignore=IGNORED).terms(lambda ids: logits, Batch(x, y), "train")["loss"].backward()
    moved = logits.grad.abs().amax(dim=2) > 0
    assert moved.equal(y != IGNORED)
    learnt = [
        adapter.tokenizer.decode(row[keep], special=True)
        for row, keep in zip(y, moved, strict=True)
    ]
    assert learnt == ["hello<|im_end|>\n", "hello<|im_end|>\nciao<|im_end|>\n"]


def test_answers_are_found_by_tokenizers_that_the_backend_alone_is_not(folder):
    for name in ("sentencepiece", "unigram", "byte-bpe", "words"):
        adapter = ConversationAdapter(name, context=200)
        X = adapter.check([talk("hi hello", "it is ciao")] * 3, "fit")
        text = adapter.tokenizer.decode(X[0, 1][X[0, 1] != IGNORED].tolist(), special=True)
        assert "it is ciao" in text
        assert "hello" not in text


def test_lora_learns_answers_in_a_frozen_start_and_is_written_merged(folder, tmp_path):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path, model, _ = folder
    settings = {"epochs": 12, "batch_size": 8, "lr": 3e-2, "random_state": 0}
    adapt = LoRA(rank=4, pattern=r"attention\.(qkv|out)$|feed_forward")
    ours = LlamaLanguageModel(start=path, adapt=adapt, context=32, **settings).fit(TALKS)
    assert [ours.chat(talk(question)) for question, _ in TURNS] == ["hello", "ciao"]
    assert ours.chat([talk("bye"), talk("hi")]) == ["ciao", "hello"]
    weights = ours.module_.state_dict()
    kept = model.state_dict()["model.layers.1.mlp.up_proj.weight"]
    assert weights["blocks.1.feed_forward.up.weight"].equal(kept)
    ours.save_pretrained(tmp_path / "ours")
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    ids = torch.tensor([ours._asked(talk("bye"))])
    assert_close(theirs(ids).logits, ours.module_(ids), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(theirs(ids).logits, model(ids).logits, atol=0.1)
    reader = AutoTokenizer.from_pretrained(tmp_path / "ours")
    asked = reader.apply_chat_template(talk("bye"), add_generation_prompt=True)
    assert list(asked["input_ids"]) == ids[0].tolist()
    castalia.save(ours, tmp_path / "saved")
    assert castalia.load(tmp_path / "saved").chat(talk("bye")) == "ciao"
    again = LlamaLanguageModel.from_pretrained(tmp_path / "ours")
    assert again.chat(talk("hi")) == "hello"


def test_a_model_of_a_folder_goes_on_from_its_weights(folder):
    path, model, _ = folder
    ours = LlamaLanguageModel.from_pretrained(path).set_params(epochs=1, lr=1e-30, context=16)
    ours.fit(["hi hello what is it ?"] * 4)
    ids = torch.tensor([[0, 7, 8, 9]])
    assert_close(ours.module_(ids), model(ids).logits, atol=1e-5, rtol=1e-5)
    other = LlamaLanguageModel(start=ours, epochs=1, lr=1e-30, context=16).fit(["hi bye"] * 4)
    assert_close(other.module_(ids), ours.module_(ids))


@pytest.mark.parametrize(
    "train, moved",
    [("head", {"output"}), (1, {"blocks.2", "output", "norm"})],
)
def test_only_what_is_asked_for_is_trained(folder, train, moved):
    path, _, _ = folder
    start = LlamaLanguageModel.from_pretrained(path)
    ours = LlamaLanguageModel(start=path, train=train, context=8, epochs=1, lr=1e-2, random_state=0)
    after = ours.fit(["hi hello what is it ?"] * 4).module_.state_dict()
    before = start.module_.state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert {".".join(n.split(".")[: 1 + n.startswith("blocks")]) for n in changed} == moved


def test_a_saved_model_of_a_folder_in_half_precision_answers_alike(folder, tmp_path):
    path, _, _ = folder
    ours = LlamaLanguageModel.from_pretrained(path)
    ours.module_.bfloat16()
    castalia.save(ours, tmp_path / "saved")
    again = castalia.load(tmp_path / "saved")
    ids = torch.arange(30)[None] % 17
    assert again.module_(ids).equal(ours.module_(ids))
    assert again.adapter_.stops == ours.adapter_.stops


def test_what_cannot_be_is_refused(folder):
    path, _, _ = folder
    with pytest.raises(InvalidData, match="row 1 does not. Leave it out"):
        LlamaLanguageModel(context=64).fit([talk("a", "b"), talk("a")])
    with pytest.raises(InvalidData, match="begins among its first 8 tokens; row 0"):
        LlamaLanguageModel(context=8).fit([talk("a", "b")])
    with pytest.raises(InvalidParameter, match="`train` must be 'all' and `adapt` None without"):
        LlamaLanguageModel(adapt=LoRA()).fit(["ab"] * 5)
    with pytest.raises(InvalidParameter, match="`train` must be at most 3"):
        LlamaLanguageModel(start=path, train=7).fit(["hi hello"] * 3)
    gpt = GPTLanguageModel(dim=8, heads=2, depth=1, context=8, epochs=1).fit(["abab"] * 5)
    with pytest.raises(InvalidParameter, match="`start` must hold a Llama"):
        LlamaLanguageModel(start=gpt).fit(["ab"] * 5)
    with pytest.raises(InvalidParameter, match="`kv_heads` must divide heads=4; got 3"):
        LlamaLanguageModel(kv_heads=3).fit(["ab"] * 5)


def test_generation_and_end_tokens_of_a_folder_are_checked(folder, tmp_path):
    path, model, _ = folder
    model.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": 99}))
    with pytest.raises(castalia.errors.DamagedFile, match="`eos_token_id` must be ids below 40"):
        LlamaLanguageModel.from_pretrained(tmp_path)


def test_conversations_are_scored_by_their_answers(folder):
    path, model, _ = folder
    ours = LlamaLanguageModel.from_pretrained(path)
    talks = [talk("hi", "hello"), [*talk("bye", "ciao"), *talk("hi", "hello")]]
    total, count = 0.0, 0
    for row in talks:
        X = ours.adapter_.check([row], "score")
        x, y = (torch.from_numpy(X[:, k]).long() for k in (0, 1))
        logs = -torch.nn.functional.cross_entropy(model(x).logits[0], y[0], reduction="sum")
        total, count = total + logs.item(), count + int((y != IGNORED).sum())
    assert ours.score(talks) == pytest.approx(total / count, rel=1e-5)
    assert ours.perplexity(talks) == pytest.approx(np.exp(-total / count), rel=1e-5)
    whole = ours.token_log_probabilities(talks)
    assert ours.score_samples(talks) == pytest.approx([logs.sum() for logs in whole])
    assert len(whole[0]) == len(ours.adapter_.streams(talks[:1], "score")[0]) - 1
