"""GPT classifiers exchanged with GPT2ForSequenceClassification: equal logits both ways."""

import pytest
import tokenizers as rust
import torch
from tests.nets.language import peers
from tokenizers import models, pre_tokenizers
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.language import GPTClassifier

TEXTS = ["w1 w2 w3", "w4 w5 w6 w7 w8", "w9"]


def their_logits(path, texts):
    from transformers import GPT2ForSequenceClassification, PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"))
    net = GPT2ForSequenceClassification.from_pretrained(path).eval()
    with torch.no_grad():
        return torch.cat([net(**made(text, return_tensors="pt")).logits for text in texts])


def ours(model, X):
    return torch.cat(list(model._through(model._checked(X)))).float()


@pytest.fixture
def folder(tmp_path):
    from transformers import GPT2Config, GPT2ForSequenceClassification

    sizes = {"vocab_size": 40, "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4}
    config = GPT2Config(**sizes, num_labels=3, pad_token_id=0, bos_token_id=1, eos_token_id=1)
    peers.lively(GPT2ForSequenceClassification(config)).save_pretrained(tmp_path / "a")
    names = ["<pad>", "<|endoftext|>", "<unk>", *(f"w{i}" for i in range(30))]
    made = rust.Tokenizer(models.WordLevel({n: i for i, n in enumerate(names)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(names[:3])
    made.save(str(tmp_path / "a" / "tokenizer.json"))
    return tmp_path


def test_a_folder_has_equal_logits_both_ways(folder):
    model = GPTClassifier.from_pretrained(folder / "a")
    said = their_logits(folder / "a", TEXTS)
    assert_close(ours(model, TEXTS), said, atol=1e-5, rtol=1e-5)
    assert model.predict(TEXTS).tolist() == said.argmax(1).tolist()
    model.save_pretrained(folder / "b")
    assert_close(their_logits(folder / "b", TEXTS), said, atol=1e-5, rtol=1e-5)
    with pytest.raises(InvalidParameter, match="`start` must be given"):
        model.fit(TEXTS, [0, 1, 2])


def test_a_trained_classifier_is_read_by_transformers_with_its_tokens_and_bias(tmp_path):
    X, y = ["good film", "bad film", "a good one", "a bad one"] * 10, ["yes", "no"] * 20
    model = GPTClassifier(context=16, dim=16, depth=1, heads=2, epochs=3, lr=0.01, random_state=0)
    model.fit(X, y).save_pretrained(tmp_path)
    assert model.module_.head.bias.abs().max() > 0
    assert_close(their_logits(tmp_path, X[:4]), ours(model, X[:4]), atol=1e-4, rtol=1e-4)


def test_a_language_model_is_no_classifier(tmp_path):
    peers.gpt2().save_pretrained(tmp_path)
    with pytest.raises(CheckpointMismatch, match="must hold a GPT2ForSequenceClassification"):
        GPTClassifier.from_pretrained(tmp_path)
