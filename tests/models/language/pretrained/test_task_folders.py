"""Heads of classifiers, taggers and answerers, exchanged with transformers: equal logits."""

import json

import numpy as np
import pytest
import tokenizers as rust
import torch
from tests.nets.language import peers
from tokenizers import models, pre_tokenizers, processors
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.models.language import BERTClassifier, BERTQuestionAnswerer, BERTTagger
from castalia.nn import LoRA

WORDS = [f"w{i}" for i in range(30)]
TEXTS = ["w1 w2 w3", "w4 w5 w6 w7 w8", "w9"]
PAIRS = [("w1 w2", "w3 w4 w5"), ("w6", "w7 w8 w9")]
KINDS = {"SequenceClassification": BERTClassifier, "TokenClassification": BERTTagger}
KINDS["QuestionAnswering"] = BERTQuestionAnswerer


def tokenizer(family):
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    made = rust.Tokenizer(
        models.WordLevel({n: i for i, n in enumerate([*special, *WORDS])}, unk_token="<unk>")
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(special)
    kind = processors.RobertaProcessing if "roberta" in family else processors.BertProcessing
    made.post_processor = kind(("</s>", 2), ("<s>", 0))
    return made


NAMES = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}
NAMES["distilbert"] = "DistilBert"


@pytest.fixture(params=NAMES)
def family(request):
    return request.param


def folder_of(family, task, path, **changes):
    import transformers

    name, sizes = NAMES[family], peers.SIZES
    positions = {"max_position_embeddings": 26, "pad_token_id": 1}
    if family == "distilbert":
        words = {"hidden_size": "dim", "intermediate_size": "hidden_dim"}
        sizes = {words.get(name, name): size for name, size in sizes.items()}
    config = getattr(transformers, f"{name}Config")(**positions, **sizes, **changes)
    model = peers.lively(getattr(transformers, f"{name}For{task}")(config))
    model.save_pretrained(path)
    tokenizer(family).save(str(path / "tokenizer.json"))
    return model


def read(path, *texts):
    """What transformers makes of texts: ids, segments and mask, padded."""
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"), pad_token="<pad>")
    return made(*texts, padding=True, return_token_type_ids=True, return_tensors="pt")


def theirs(family, path, task, *texts):
    import transformers

    name, given = NAMES[family], read(path, *texts)
    if family != "bert":
        given.pop("token_type_ids", None)
    with torch.no_grad():
        return getattr(transformers, f"{name}For{task}").from_pretrained(path).eval()(**given)


def ours(model, X):
    return torch.cat(list(model._through(model._checked(X))))


def close(a, b):
    assert_close(a.float(), b, atol=1e-5, rtol=1e-5)


def test_a_classifier_of_texts_and_pairs_has_their_logits_both_ways(family, tmp_path):
    names = {"id2label": {0: "bad", 1: "fair", 2: "good"}}
    folder_of(family, "SequenceClassification", tmp_path / "a", **names)
    model = BERTClassifier.from_pretrained(tmp_path / "a")
    said = theirs(family, tmp_path / "a", "SequenceClassification", TEXTS).logits
    close(ours(model, TEXTS), said)
    best = np.array(["bad", "fair", "good"])[said.argmax(1)]
    assert model.predict(TEXTS).tolist() == best.tolist()
    two = [list(column) for column in zip(*PAIRS, strict=True)]
    close(ours(model, PAIRS), theirs(family, tmp_path / "a", "SequenceClassification", *two).logits)
    model.save_pretrained(tmp_path / "b")
    close(theirs(family, tmp_path / "b", "SequenceClassification", TEXTS).logits, said)
    assert json.loads((tmp_path / "b/config.json").read_text())["id2label"]["2"] == "good"


def test_a_tagger_has_their_logits_both_ways(family, tmp_path):
    names = {"id2label": {0: "O", 1: "NAME"}}
    folder_of(family, "TokenClassification", tmp_path / "a", **names)
    model = BERTTagger.from_pretrained(tmp_path / "a")
    said = theirs(family, tmp_path / "a", "TokenClassification", TEXTS)
    scores = ours(model, [text.split() for text in TEXTS])
    real = read(tmp_path / "a", TEXTS).attention_mask.bool()
    close(scores[real], said.logits[real])
    tags = model.predict([["w4", "w5"]])[0]
    assert len(tags) == 2
    model.save_pretrained(tmp_path / "b")
    again = theirs(family, tmp_path / "b", "TokenClassification", TEXTS)
    close(again.logits[real], said.logits[real])


def test_an_answerer_has_their_logits_both_ways(family, tmp_path):
    folder_of(family, "QuestionAnswering", tmp_path / "a")
    model = BERTQuestionAnswerer.from_pretrained(tmp_path / "a")
    two = [list(column) for column in zip(*PAIRS, strict=True)]
    said = theirs(family, tmp_path / "a", "QuestionAnswering", *two)
    scores = ours(model, PAIRS)
    allowed = scores[..., 0] > -1e4
    assert allowed.sum() == 2 + 3 + 3
    close(scores[..., 0][allowed], said.start_logits[allowed])
    close(scores[..., 1][allowed], said.end_logits[allowed])
    model.save_pretrained(tmp_path / "b")
    again = theirs(family, tmp_path / "b", "QuestionAnswering", *two)
    close(again.end_logits, said.end_logits)


def test_a_trained_classifier_is_written_with_lora_and_what_stands_around_texts(tmp_path):
    X, y = ["good film", "bad film", "a good one", "a bad one"] * 10, ["yes", "no"] * 20
    base = BERTClassifier(context=8, dim=16, depth=1, heads=2, epochs=1, random_state=0).fit(X, y)
    model = BERTClassifier(start=base, context=8, adapt=LoRA(rank=2), epochs=2, random_state=0)
    model.fit(X, y).save_pretrained(tmp_path)
    given = read_plain(tmp_path, X[:4])
    from transformers import BertForSequenceClassification

    with torch.no_grad():
        said = BertForSequenceClassification.from_pretrained(tmp_path).eval()(**given).logits
    close(ours(model, X[:4]), said)
    again = BERTClassifier.from_pretrained(tmp_path)
    assert again.classes_.tolist() == ["no", "yes"]
    close(ours(again, X[:4]), said)


def read_plain(path, texts):
    from transformers import PreTrainedTokenizerFast

    made = PreTrainedTokenizerFast(tokenizer_file=str(path / "tokenizer.json"), pad_token="[PAD]")
    return made(texts, padding=True, return_tensors="pt")


@pytest.mark.parametrize("task", KINDS)
def test_folders_of_other_tasks_are_refused(task, tmp_path):
    folder_of("bert", "MaskedLM", tmp_path)
    with pytest.raises(CheckpointMismatch, match=f"must hold a BertFor{task}"):
        KINDS[task].from_pretrained(tmp_path)


def test_labels_that_do_not_fit_and_fits_that_forget_are_refused(tmp_path):
    folder_of("bert", "SequenceClassification", tmp_path)
    model = BERTClassifier.from_pretrained(tmp_path)
    assert model.classes_.tolist() == [0, 1]
    with pytest.raises(InvalidParameter, match="`start` must be given"):
        model.fit(TEXTS, [0, 1, 0])
    config = json.loads((tmp_path / "config.json").read_text())
    for wrong in ({"0": "a"}, {"0": 1, "1": "b"}, {"0": "a", "1": "a"}):
        (tmp_path / "config.json").write_text(json.dumps({**config, "id2label": wrong}))
        with pytest.raises(CheckpointMismatch, match="`id2label` must give 2 different names"):
            BERTClassifier.from_pretrained(tmp_path)
