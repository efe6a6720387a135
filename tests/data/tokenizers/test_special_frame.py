"""Special tokens of a tokenizer.json stand around a text once, as transformers puts them."""

import numpy as np
import pytest
import tokenizers as rust
from tokenizers import models, pre_tokenizers, processors

from castalia.data.text import PairAdapter
from castalia.data.tokenizers import ByteBPETokenizer, Tokenizer
from castalia.errors import DamagedFile

TEXTS = ["the cat sat", "a dog", "the dog sat down"]
WORDS = sorted({word for text in TEXTS for word in text.split()})
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
ODD = ["<pad>", "<unk>", "<bos>", "[CLS]", "<eos>", "[SEP]"]


def template(special, single, pair):
    numbers = [(token, special.index(token)) for token in special]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=numbers)


KINDS = {
    "template": (BERT, template(BERT, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1")),
    "bert": (BERT, processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))),
    "roberta": (ROBERTA, processors.RobertaProcessing(("</s>", 2), ("<s>", 0))),
    "t5": (["<pad>", "</s>", "<unk>"], template(["<pad>", "</s>"], "$A </s>", "$A </s> $B </s>")),
    "other roles": (ODD, template(ODD, "<bos> $A <eos>", "<bos> $A <eos> $B <eos>")),
}


@pytest.fixture(params=KINDS)
def folder(request, tmp_path):
    special, processor = KINDS[request.param]
    unknown = next(token for token in special if "unk" in token.lower())
    vocabulary = {token: i for i, token in enumerate([*special, *WORDS])}
    made = rust.Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(special)
    made.post_processor = processor
    made.enable_padding(length=20)  # what a training left in the file acts on no text of ours
    made.enable_truncation(2)
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def theirs(folder):
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))


def test_ids_are_those_of_transformers_with_and_without_special_tokens(folder):
    ours, other = Tokenizer.load(folder), theirs(folder)
    assert ours.encode(TEXTS, boundaries=True) == other(TEXTS)["input_ids"]
    assert ours.encode(TEXTS) == other(TEXTS, add_special_tokens=False)["input_ids"]
    assert ours.encode_pair(*TEXTS[:2])[0] == other(*TEXTS[:2])["input_ids"]


def test_what_estimators_read_is_what_transformers_reads(folder):
    reader, other = PairAdapter(context=16).adopt(Tokenizer.load(folder)), theirs(folder)
    assert reader.encode(np.array(TEXTS, dtype=object)) == other(TEXTS)["input_ids"]
    pairs = [TEXTS[:2], TEXTS[1:]]
    read = other([a for a, _ in pairs], [b for _, b in pairs])["input_ids"]
    assert reader.encode(np.array(pairs, dtype=object)) == read


def test_a_cut_text_keeps_its_special_tokens_as_in_transformers(folder):
    reader, other = PairAdapter(context=4).adopt(Tokenizer.load(folder)), theirs(folder)
    read = other(TEXTS, truncation=True, max_length=4)["input_ids"]
    assert reader.encode(np.array(TEXTS, dtype=object)) == read


def test_the_frame_survives_saving(folder):
    ours = Tokenizer.load(folder)
    again = Tokenizer.from_state(ours.state())
    assert again.encode(TEXTS, boundaries=True) == ours.encode(TEXTS, boundaries=True)


def test_a_tokenizer_of_ours_has_no_frame_and_uses_its_roles():
    made = ByteBPETokenizer(vocabulary_size=300).fit(TEXTS)
    assert made.frame is None
    row = made.encode("a dog", boundaries=True)
    assert (row[0], row[-1]) == (made.id_of("begin"), made.id_of("end"))


def test_a_post_processor_with_ids_beyond_the_vocabulary_is_refused():
    made = rust.Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    state = {"class": "PretrainedTokenizer", "parameters": {}, "backend": made.to_str()}
    with pytest.raises(DamagedFile, match="ids below 2, the size of the vocabulary; got 3"):
        Tokenizer.from_state(state).encode("a", boundaries=True)
