"""T5 reads sentinels and ends that are written in a text, and names those that it fills."""

import pytest
import tokenizers as rust
from tests.nets.language import peers
from tokenizers import models, pre_tokenizers, processors

from castalia.models.language import T5

WORDS = [f"w{i}" for i in range(30)]
SENTINELS = [f"<extra_id_{i}>" for i in range(5)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("t5")
    special = ["<pad>", "</s>", "<unk>"]
    names = [*special, *WORDS, *SENTINELS]
    made = rust.Tokenizer(
        models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>")
    )
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens([*special, *SENTINELS])
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    peers.t5(num_decoder_layers=2).save_pretrained(path)
    made.save(str(path / "tokenizer.json"))
    return path


TEXTS = ["w1 <extra_id_0> w3 <extra_id_1>", "<extra_id_0> w5", "w7 w8"]


def test_sentinels_of_a_text_are_read_as_transformers_reads_them(folder):
    import numpy as np
    from transformers import PreTrainedTokenizerFast

    theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    model = T5.from_pretrained(folder)
    read = model.adapter_.encode(np.array(TEXTS, dtype=object))
    assert read == theirs(TEXTS)["input_ids"]
    written = model.adapter_.encode(np.array(["w7 w8 </s>"], dtype=object))
    assert written == theirs(["w7 w8"])["input_ids"]


def test_an_answer_names_its_sentinels_where_the_text_has_some(folder):
    from transformers import PreTrainedTokenizerFast, T5ForConditionalGeneration

    theirs = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    net = T5ForConditionalGeneration.from_pretrained(folder).eval()
    model = T5.from_pretrained(folder)
    model.answer_tokens_ = 8
    for text, said in zip(TEXTS, model.predict(TEXTS), strict=True):
        ids = theirs(text, return_tensors="pt").input_ids
        given = {"max_new_tokens": 8, "do_sample": False, "decoder_start_token_id": 0}
        new = net.generate(ids, eos_token_id=1, pad_token_id=0, **given)[0].tolist()
        new = [i for i in new[1:] if i not in (0, 1)]
        assert said == theirs.decode(new, skip_special_tokens="<extra" not in text)


def test_training_pairs_may_be_written_with_sentinels():
    X = ["the <extra_id_0> sat on the <extra_id_1>"] * 30
    y = ["<extra_id_0> cat <extra_id_1> mat"] * 30
    small = {"dim": 16, "depth": 1, "heads": 2, "head_dim": 8, "hidden": 32, "random_state": 0}
    model = T5(tokenizer="whitespace", epochs=12, batch_size=8, lr=0.02, dropout=0.0, **small)
    assert model.fit(X, y).predict(X[:1]).tolist() == y[:1]
