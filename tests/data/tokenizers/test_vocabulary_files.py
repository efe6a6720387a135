"""Folders with only vocab.txt, or vocab.json and merges.txt: ids as transformers gives them."""

import json

import pytest
from tokenizers import ByteLevelBPETokenizer

from castalia.data.tokenizers import Tokenizer, has_tokenizer
from castalia.errors import CastaliaError, DamagedFile, InvalidData

TEXTS = ["The Cat sat, naïvely.", "a dog - on 2 mats!", "unseen wörds 中文 <mask> here"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz.,-!2"]
PIECES += [f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + ["the", "cat", "The", "中"]


def word_pieces(folder, **config):
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def byte_pieces(folder, special):
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(TEXTS * 3, vocab_size=300, special_tokens=special)
    made.save_model(str(folder))
    return folder


@pytest.mark.parametrize("lower", [True, False])
def test_word_pieces_are_those_of_transformers(tmp_path, lower):
    from transformers import BertTokenizerFast

    folder = word_pieces(tmp_path, do_lower_case=lower)
    ours, theirs = Tokenizer.load(folder), BertTokenizerFast.from_pretrained(folder)
    assert has_tokenizer(folder)
    assert ours.encode(TEXTS, boundaries=True) == theirs(TEXTS)["input_ids"]
    assert ours.encode_pair(*TEXTS[:2])[0] == theirs(*TEXTS[:2])["input_ids"]
    assert ours.id_of("mask") == theirs.mask_token_id


@pytest.mark.parametrize("family", ["gpt2", "roberta"])
def test_byte_pieces_are_those_of_transformers(tmp_path, family):
    import transformers

    roberta = family == "roberta"
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if roberta else ["<|endoftext|>"]
    kind = transformers.RobertaTokenizerFast if roberta else transformers.GPT2TokenizerFast
    folder = byte_pieces(tmp_path, special)
    ours, theirs = Tokenizer.load(folder), kind.from_pretrained(folder)
    plain = TEXTS[:2]
    assert ours.encode(plain) == theirs(plain, add_special_tokens=False)["input_ids"]
    if roberta:
        assert ours.encode(plain, boundaries=True) == theirs(plain)["input_ids"]
        assert ours.id_of("mask") in ours.encode(TEXTS[2], special=True)
    assert ours.decode(ours.encode(plain)) == plain


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("vocab.json", "[1]"),
        ("vocab.json", '{"a": "b"}'),
        ("vocab.json", '{"a": 99999999999}'),
        ("merges.txt", "a b c d\nq zz"),
        ("tokenizer_config.json", '{"add_prefix_space": [1]}'),
        ("tokenizer_config.json", "[" * 100_000),
    ],
)
def test_damaged_files_give_errors_of_our_own(tmp_path, name, text):
    folder = byte_pieces(tmp_path, ["<|endoftext|>"])
    (folder / name).write_text(text)
    with pytest.raises(DamagedFile):
        Tokenizer.load(folder)


def test_a_folder_without_any_of_the_files_is_named(tmp_path):
    assert not has_tokenizer(tmp_path)
    with pytest.raises(InvalidData, match="there must be a file at"):
        Tokenizer.load(tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(CastaliaError):
        Tokenizer.load(tmp_path)


# ---- damaged tokenizer.json ----

EDITS = [None, True, -1, 10**12, "x", [], [2], {}, {"a": 1}]


def places(value, path=()):
    """Every place in nested JSON, a few of long lists and tables."""
    yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in [*items][:5]:
            yield from places(inner, (*path, key))


def edited(text, path, value):
    whole = json.loads(text)
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(whole)


@pytest.mark.parametrize("kind", ["word pieces", "byte pieces"])
def test_an_edited_tokenizer_reads_texts_or_gives_an_error_of_our_own(tmp_path, kind):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    build = (lambda: word_pieces(tmp_path)) if kind == "word pieces" else None
    made = Tokenizer.load(build() if build else byte_pieces(tmp_path, special))
    text, refused, read = made.backend_.to_str(), 0, 0
    file = tmp_path / "other.json"
    for path in [*places(json.loads(text))][1:]:
        for value in (..., *EDITS):
            file.write_text(edited(text, path, value))
            try:
                found = Tokenizer.load(file)
                found.decode(found.encode(TEXTS, boundaries=True)[0])
                read += 1
            except CastaliaError:
                refused += 1
    assert refused > 100
    assert read > 10


@pytest.mark.parametrize("text", ["[" * 100_000, '{"model":' * 100_000, "", "[]", '{"a": 1e999}'])
def test_a_tokenizer_file_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(DamagedFile):
        Tokenizer.load(tmp_path)
