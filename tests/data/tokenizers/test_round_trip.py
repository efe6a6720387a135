"""What goes in comes out: any Unicode where a tokenizer promises it, seen characters elsewhere."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from castalia.data.tokenizers import (
    BPETokenizer,
    ByteBPETokenizer,
    CharTokenizer,
    RuleTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordPunctTokenizer,
)
from castalia.errors import DamagedFile, InvalidData, InvalidParameter

TEXTS = [
    "the dog bit the man",
    "the man bit the dogs",
    "a cat saw the dog and the man",
    "<0x41> and ▁ were written here",
] * 4
LOSSLESS = {
    "byte BPE": ByteBPETokenizer(vocabulary_size=300),
    "BPE with fallback": BPETokenizer(vocabulary_size=320, byte_fallback=True),
    "BPE of the stream": BPETokenizer(vocabulary_size=320, byte_fallback=True, split=False),
    "unigram with fallback": UnigramTokenizer(vocabulary_size=320, byte_fallback=True),
    "SentencePiece": SentencePieceTokenizer(vocabulary_size=320),
    "SentencePiece by BPE": SentencePieceTokenizer(vocabulary_size=320, algorithm="bpe"),
}
LOSSLESS = {name: made.fit(TEXTS) for name, made in LOSSLESS.items()}
OTHERS = {
    "whitespace": WhitespaceTokenizer(),
    "words and punctuation": WordPunctTokenizer(),
    "rules": RuleTokenizer(exceptions={"dogs": ["dog", "s"]}),
    "characters": CharTokenizer(),
    "BPE": BPETokenizer(vocabulary_size=60),
    "WordPiece": WordPieceTokenizer(vocabulary_size=60),
    "WordPiece by score": WordPieceTokenizer(vocabulary_size=60, criterion="score"),
    "unigram": UnigramTokenizer(vocabulary_size=60),
}
ALL = {**LOSSLESS, **{name: made.fit(TEXTS) for name, made in OTHERS.items()}}
UGLY = [
    "",
    " ",
    "  two  spaces ",
    "\x00\x01\x1b[31m\r\n\t\x7f\x85",
    "e\u0301 \u0301 n\u0303o",
    "🎉👩‍👩‍👧 🇮🇹\ufe0f",
    "▁▁a ▁",
    "<0x41><0x00> <0xG1> <0x4",
    "<pad><unk></s><|endoftext|>",
    "\ufeff\u200b\u202e\uffff\U0010ffff",
    "漢字かな交じり文",
]


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("text", UGLY, ids=range(len(UGLY)))
def test_ugly_texts_come_back(name, text):
    made = LOSSLESS[name]
    assert made.decode(made.encode(text)) == text


@pytest.mark.parametrize("name", LOSSLESS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_unicode_comes_back(name, text):
    made = LOSSLESS[name]
    assert made.decode(made.encode(text)) == text


def test_every_code_point_comes_back():
    points = [p for p in range(0x110000) if not 0xD800 <= p < 0xE000]
    text = "".join(map(chr, points[::37]))
    for made in LOSSLESS.values():
        assert made.decode(made.encode(text)) == text


@pytest.mark.parametrize("name", ["characters", "BPE", "unigram"])
def test_a_text_of_seen_characters_comes_back(name):
    made = ALL[name]
    text = "  dogs  cat mad bite "
    assert made.decode(made.encode(text)) == text


@pytest.mark.parametrize("name", ALL)
def test_a_saved_tokenizer_answers_the_same(name, tmp_path):
    made, text = ALL[name], "the dogs saw <0x41> é"
    made.save(tmp_path / "folder")
    loaded = Tokenizer.load(tmp_path / "folder")
    assert type(loaded) is type(made)
    assert loaded == made or repr(loaded) == repr(made)
    copies = [loaded, Tokenizer.from_state(made.state()), pickle.loads(pickle.dumps(made))]
    made.save(tmp_path / "alone.json")
    if name != "rules":  # its exceptions are no part of a `tokenizer.json`
        copies += [type(made).load(tmp_path / "alone.json")]
    for copy in copies:
        assert copy.fingerprint == made.fingerprint
        assert copy.special == made.special
        if "byte_fallback" not in vars(made) or copy.byte_fallback == made.byte_fallback:
            assert copy.encode(text) == made.encode(text)


def test_the_package_tokenizers_reads_what_is_saved(tmp_path):
    import tokenizers

    made = ALL["SentencePiece"]
    made.save(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert theirs.encode("the dogs é").ids == made.encode("the dogs é")
    assert theirs.decode(made.encode("the dogs é")) == "the dogs é"


def test_a_foreign_file_becomes_a_pretrained_tokenizer(tmp_path):
    ALL["byte BPE"].save(tmp_path / "tokenizer.json")
    made = Tokenizer.load(tmp_path)
    assert type(made).__name__ == "PretrainedTokenizer"
    assert made.encode("the dog") == ALL["byte BPE"].encode("the dog")
    assert made.special == ("<|endoftext|>",)
    with pytest.raises(InvalidParameter, match="cannot be fitted"):
        made.fit(TEXTS)


def test_damaged_and_missing_files_are_named(tmp_path):
    for content in ("{}", "{"):
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(DamagedFile, match=r"tokenizer.json` is damaged or no tokenizer's"):
            Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(b"\xff{}")
    with pytest.raises(DamagedFile, match="must be JSON in UTF-8"):
        Tokenizer.load(tmp_path)
    with pytest.raises(InvalidData, match=r"there must be a file at .*nowhere"):
        Tokenizer.load(tmp_path / "nowhere.json")


@pytest.mark.parametrize("name", ALL)
def test_many_texts_are_encoded_as_one_by_one(name):
    made = ALL[name]
    texts = [*TEXTS[:4], "", "▁ mixed"]
    assert made.encode(texts) == [made.encode(text) for text in texts]


@pytest.mark.parametrize("name", ALL)
def test_half_a_surrogate_pair_and_a_number_are_refused_by_name(name):
    made = ALL[name]
    with pytest.raises(InvalidData, match=r"half a surrogate pair, '\\ud800', at character 2"):
        made.encode("ab\ud800")
    with pytest.raises(InvalidData, match="got int 3 at place 1"):
        made.encode(["a", 3])
    with pytest.raises(InvalidData, match="got NoneType None at place 0"):
        made.encode(None)
    with pytest.raises(InvalidData, match=r"half a surrogate pair, '\\ud800', .* text 1"):
        replace(made).fit(["whole", "ab\ud800"])


@pytest.mark.parametrize("name", ALL)
def test_the_vocabulary_is_a_bijection_that_begins_with_the_special_tokens(name):
    made = ALL[name]
    pieces = list(made.vocabulary)
    assert list(made.vocabulary.values()) == list(range(len(made)))
    assert pieces[: len(made.special)] == list(made.special)


def test_decoding_takes_arrays_and_rows_and_refuses_other_ids():
    made = ALL["characters"]
    batch = made.batch(["the", "a dog"])
    assert made.decode(batch.ids) == ["the", "a dog"]
    assert made.decode(np.array(made.encode("cat"))) == "cat"
    with pytest.raises(InvalidData, match=f"below {len(made)}, the size .* got {len(made)}"):
        made.decode([len(made)])
    for strange in ("cat", 3, None, [1.5], ["c"]):
        with pytest.raises(InvalidData, match="ids must be whole numbers"):
            made.decode(strange)
