"""Cutting, normalising, special tokens, batches, pairing, sources: what each tokenizer owes."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from castalia.data.tokenizers import (
    NORMALISATIONS,
    BPETokenizer,
    ByteBPETokenizer,
    CharTokenizer,
    RuleTokenizer,
    SentencePieceTokenizer,
    UnigramTokenizer,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordPunctTokenizer,
    character_ngrams,
    normalise,
    sentinels,
    split_words,
)
from castalia.data.tokenizers.text_normalisation import normaliser
from castalia.errors import CheckpointMismatch, InvalidData, InvalidParameter

SENTENCE = "Don't you love Transformers? We sure do."
KINDS = [
    WhitespaceTokenizer,
    WordPunctTokenizer,
    RuleTokenizer,
    CharTokenizer,
    BPETokenizer,
    ByteBPETokenizer,
    WordPieceTokenizer,
    UnigramTokenizer,
    SentencePieceTokenizer,
]


# ---- words ----


def test_white_space_cuts_the_sentence_of_the_notes_in_seven():
    made = WhitespaceTokenizer().fit([SENTENCE])
    wanted = ["Don't", "you", "love", "Transformers?", "We", "sure", "do."]
    assert made.tokens(SENTENCE) == wanted


def test_punctuation_marks_are_tokens_of_their_own():
    made = WordPunctTokenizer().fit([SENTENCE])
    wanted = ["Don", "'", "t", "you", "love", "Transformers", "?", "We", "sure", "do", "."]
    assert made.tokens(SENTENCE) == split_words(SENTENCE) == wanted


def test_rules_cut_the_sentence_of_the_notes_as_spacy_does():
    made = RuleTokenizer().fit([SENTENCE])
    wanted = ["Do", "n't", "you", "love", "Transformers", "?", "We", "sure", "do", "."]
    assert made.tokens(SENTENCE) == made.split(SENTENCE) == wanted


@pytest.mark.parametrize(
    "text, words",
    [
        ("(We'll see...)", ["(", "We", "'ll", "see", "...", ")"]),
        ("Mr. O'Neill's dog", ["Mr.", "O'Neill", "'s", "dog"]),
        ("at 3.5%, or $10.", ["at", "3.5", "%", ",", "or", "$", "10", "."]),
        ("well-known e.g. U.S.", ["well", "-", "known", "e.g.", "U.S."]),
        ('"I can’t," he said', ['"', "I", "ca", "n’t", ",", '"', "he", "said"]),
        ("? --", ["?", "--"]),
    ],
)
def test_exceptions_prefixes_suffixes_and_infixes_are_cut(text, words):
    assert RuleTokenizer().split(text) == words


def test_no_rule_loses_a_character():
    text = "\"((don't...)) 'tis—well-known's!?\" $$ .. a.b ...x"
    assert "".join(RuleTokenizer().split(text)) == text.replace(" ", "")


def test_an_exception_must_join_to_its_chunk():
    made = RuleTokenizer(exceptions={"gimme": ["gim", "me"]})
    assert made.split("gimme!") == ["gim", "me", "!"]
    with pytest.raises(InvalidParameter, match="must join to it"):
        RuleTokenizer(exceptions={"gimme": ["give", "me"]}).split("gimme")


def test_rare_words_and_those_beyond_the_size_are_unknown():
    texts = ["a a a b b c"]
    assert WhitespaceTokenizer(min_count=2).fit(texts).tokens("a b c") == ["a", "b", "<unk>"]
    assert WhitespaceTokenizer(vocabulary_size=5).fit(texts).tokens("a b") == ["a", "<unk>"]


# ---- normalisation ----


@pytest.mark.parametrize("steps", [("lowercase", "accents"), ("nfkc", "lowercase"), NORMALISATIONS])
def test_normalising_twice_is_normalising_once_for_every_character_with_forms(steps):
    clean = normaliser(tuple(steps)).normalize_str
    ranges = (range(0x3100), range(0xA640, 0xABC0), range(0xF900, 0x10000), range(0x1D400, 0x1F200))
    once = [clean(chr(point)) for points in ranges for point in points]
    assert [text for text in once if clean(text) != text] == []


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_normalising_twice_is_normalising_once(text):
    once = normalise(text, tuple(NORMALISATIONS))
    assert normalise(once, tuple(NORMALISATIONS)) == once


def test_each_step_does_what_it_says():
    text = " É\u0301ﬁ\x07  ﬀ\n"
    assert normalise(text, ["controls"]) == " É\u0301ﬁ  ﬀ\n"
    assert normalise(text, ["accents"]) == " Eﬁ\x07  ﬀ\n"
    assert normalise(text, ["nfkc", "spaces"]) == "É\u0301fi\x07 ff"
    assert normalise("e\u0301É", ["nfc", "lowercase"]) == "éé"
    assert normalise(text, []) == text


def test_a_tokenizer_normalises_what_it_reads():
    made = WhitespaceTokenizer(normalise=("lowercase",)).fit(["The THE the"])
    assert made.tokens("tHe") == ["the"]
    with pytest.raises(InvalidParameter, match=r"got 'lowercas'. Did you mean `lowercase`"):
        WhitespaceTokenizer(normalise=("lowercas",)).fit(["a"])


@pytest.mark.parametrize("kind", [CharTokenizer, RuleTokenizer, WordPieceTokenizer])
def test_normalisation_reaches_the_tokenizers_that_cut_in_python(kind):
    made = kind(normalise=("lowercase",), **({"criterion": "score"} if kind is KINDS[6] else {}))
    made.fit(["ABC abc"])
    assert made.encode("ABC") == made.encode("abc")
    assert made.find_id("unknown") not in made.encode("ABC")


# ---- special tokens ----


def test_special_tokens_have_fixed_ids_and_are_never_merged():
    special = ("<pad>", "<unk>", "<s>", "</s>", "<mask>", *sentinels(3))
    made = BPETokenizer(special=special, vocabulary_size=60).fit(["<s>ab</s> <s>ab</s>"] * 9)
    assert [made.id_of(token) for token in special] == list(range(8))
    assert not set(made.encode("<s>ab</s>")) & set(range(8)) - {made.id_of("<unk>")}
    assert made.tokens("ab") == ["ab"]
    ids = made.encode("<s>ab<extra_id_1></s>", special=True)
    assert ids == [2, made.id_of("ab"), 6, 3]
    assert made.decode(ids) == "ab"
    assert made.decode(ids, special=True) == "<s>ab<extra_id_1></s>"


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_cannot_spell_a_special_token(kind):
    made = kind(vocabulary_size=400) if kind is not CharTokenizer else kind()
    made.fit(["the words </s> and [SEP] here"] * 5)
    reserved = {made.find_id(token) for token in made.special} - {made.find_id("unknown")}
    for token in made.special:
        assert not set(made.encode(f"the {token} words{token}")) & reserved


def test_a_special_token_that_is_a_piece_of_a_word_is_refused():
    made = BPETokenizer(special=("<unk>", "foo"), vocabulary_size=50, normalise=("lowercase",))
    with pytest.raises(InvalidParameter, match="tokens that no word contains; got 'foo'"):
        made.fit(["Fool Food"] * 9)


def test_boundaries_and_pairs_are_those_of_bert():
    made = WordPieceTokenizer().fit(["one two"])
    one, two = made.id_of("one"), made.id_of("two")
    assert made.encode("one", boundaries=True) == [2, one, 3]
    assert made.encode_pair("one two", "two") == ([2, one, two, 3, two, 3], [0, 0, 0, 0, 1, 1])


def test_a_role_that_nobody_plays_is_named():
    with pytest.raises(InvalidParameter, match="must hold `mask`; it does not"):
        CharTokenizer().fit(["ab"]).id_of("mask")
    with pytest.raises(InvalidParameter, match="`special` must hold `<unk>`"):
        BPETokenizer(special=("<pad>",)).fit(["a"])
    with pytest.raises(InvalidParameter, match="got '<s>' twice"):
        CharTokenizer(special=("<unk>", "<s>", "<s>")).fit(["a"])


# ---- batches ----


def test_a_batch_is_padded_and_masked():
    made = CharTokenizer().fit(["abc"])
    batch = made.batch(["abc", "", "a"])
    assert batch.ids.tolist() == [[4, 5, 6], [0, 0, 0], [4, 0, 0]]
    assert batch.mask.tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    left = made.batch(["abc", "a"], side="left", length=4)
    assert left.ids.tolist() == [[0, 4, 5, 6], [0, 0, 0, 4]]
    assert (left.mask == (left.ids > 0)).all()
    cut = made.batch(["abc", "a"], length=2, longer="cut")
    assert cut.ids.tolist() == [[4, 5], [4, 0]]
    assert made.batch([]).ids.shape == (0, 0)
    assert batch.ids.dtype == np.int64


def test_a_text_longer_than_the_batch_is_named():
    made = CharTokenizer().fit(["abc"])
    with pytest.raises(InvalidData, match="at most 2 tokens; got 3 in text 1"):
        made.batch(["ab", "abc"], length=2)
    with pytest.raises(InvalidParameter, match="`side` must be"):
        made.batch(["a"], side="top")
    with pytest.raises(InvalidParameter, match="`longer` must be"):
        made.batch(["a"], longer="no")


def test_gpt_pads_with_its_end_token():
    made = ByteBPETokenizer(vocabulary_size=257).fit(["ab"])
    assert made.batch(["ab", "a"]).ids.tolist()[1][1] == made.id_of("<|endoftext|>") == 0


# ---- pairing ----


def test_a_model_of_another_tokenizer_is_refused():
    one, same = (CharTokenizer().fit(["abc"]) for _ in range(2))
    other = CharTokenizer().fit(["abd"])
    one.check_pairing(same.fingerprint)
    with pytest.raises(CheckpointMismatch, match=f"GPT: .*{one.fingerprint}; got a CharTokenizer"):
        other.check_pairing(one.fingerprint, owner="GPT")


def test_the_fingerprint_changes_with_a_refit():
    made = CharTokenizer().fit(["abc"])
    before = made.fingerprint
    assert made.fit(["abcd"]).fingerprint != before
    assert len(made) == 8


# ---- sources and bad input ----


def test_files_streams_and_texts_teach_the_same(tmp_path):
    lines = ["der Hund", "die Katze", "größer"]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\r\n".join(lines))
    made = [
        BPETokenizer(vocabulary_size=30).fit(source).fingerprint
        for source in (
            lines,
            (line for line in lines),
            tmp_path / "a.txt",
            [tmp_path / "b.txt.gz"],
        )
    ]
    assert len(set(made)) == 1


def test_a_stream_is_read_one_text_at_a_time():
    alive = 0

    class Text(str):
        def __new__(cls, text):
            nonlocal alive
            alive += 1
            most.append(alive)
            return super().__new__(cls, text)

        def __del__(self):
            nonlocal alive
            alive -= 1

    most = []
    BPETokenizer(vocabulary_size=40).fit(Text(f"word {i}") for i in range(3000))
    assert len(most) == 3000
    assert max(most) < 1500  # a buffer, not the corpus


def test_a_file_in_another_encoding_is_named_with_the_offset(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("schön\nund gr\xf6\xdfer".encode()[:7] + b"gr\xf6\xdfer")
    with pytest.raises(InvalidData, match=r"latin.txt` must be UTF-8; got byte 0xf6 at offset 9"):
        CharTokenizer().fit(path)
    with pytest.raises(InvalidData, match="must be a file that can be read; got No such file"):
        CharTokenizer().fit(tmp_path / "none.txt")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("texts", [[], [""], ["  ", "\n"], ""], ids=["none", "empty", "blank", "s"])
def test_texts_without_a_character_are_refused(kind, texts):
    with pytest.raises(InvalidData, match=f"{kind.__name__}.fit: .*at least one character"):
        kind().fit(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_another_type_and_early_use_are_refused(kind):
    with pytest.raises(InvalidData, match="every text must be a string; got float nan at place 1"):
        kind().fit(["a b c", float("nan")])
    with pytest.raises(InvalidData, match="must be strings, paths or a mapping"):
        kind().fit(3)
    with pytest.raises(NotFittedError, match="must be fitted"):
        kind().encode("a")


@pytest.mark.parametrize("kind", KINDS)
def test_one_character_is_enough(kind):
    made = kind().fit(["a"])
    assert made.tokens("a") == ["a"]
    assert made.encode("") == []
    assert made.decode([]) == ""


@pytest.mark.parametrize("size", [0, 3, 2.5, "many", True])
def test_a_size_without_room_is_refused(size):
    with pytest.raises(InvalidParameter, match="`vocabulary_size` must be a whole number of at le"):
        BPETokenizer(vocabulary_size=size).fit(["ab"])


def test_a_smallest_count_below_one_is_refused():
    with pytest.raises(InvalidParameter, match="`min_count` must be .* got 0"):
        BPETokenizer(min_count=0).fit(["ab"])


def test_counts_of_words_must_be_whole():
    with pytest.raises(InvalidData, match="the count of 'a' must be a whole number"):
        BPETokenizer().fit({"a": 1.5})


# ---- character n-grams ----


def test_the_trigrams_of_where_are_those_of_the_notes():
    assert character_ngrams("where") == ["<wh", "whe", "her", "ere", "re>"]
    assert character_ngrams("where", whole=True)[-1] == "<where>"
    assert character_ngrams("ab", (1, 2), ends="") == ["a", "b", "ab"]
    assert character_ngrams("a", 5) == []
    with pytest.raises(InvalidParameter, match="`n` must be at least 1"):
        character_ngrams("a", 0)


def test_word_pieces_learnt_twice_are_the_same_to_the_id():
    texts = [" ".join(f"{kind}{k}" for kind in ("plain", "good", "bad") for k in range(10))] * 3
    first, *others = (WordPieceTokenizer(vocabulary_size=60).fit(texts) for _ in range(4))
    assert all(list(other.vocabulary) == list(first.vocabulary) for other in others)
