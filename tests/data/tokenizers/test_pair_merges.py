"""Byte-pair encoding, WordPiece, unigram, SentencePiece: the examples of the notes, by number."""

import itertools
import math

import numpy as np
import pytest

from castalia.data.tokenizers import (
    BPETokenizer,
    ByteBPETokenizer,
    SentencePieceTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
    apply_merges,
    learn_merges,
)
from castalia.data.tokenizers.pair_merges import CRITERIA, Pairs, replay_merges
from castalia.errors import InvalidParameter

WORDS = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}


def hug(merges=3):
    return BPETokenizer(special=("<unk>",), vocabulary_size=9 + merges).fit(WORDS)


def test_pairs_are_counted_in_the_corpus_not_in_the_vocabulary():
    pairs = Pairs(WORDS)
    assert set(pairs.symbols) == set("bghnpsu")
    counts = {"ug": 20, "pu": 17, "un": 16, "hu": 15, "gs": 5, "bu": 4}
    assert {a + b: n for (a, b), n in pairs.pairs.items()} == counts


def test_the_third_merge_of_the_notes_is_hug():
    wanted = [("ug", 20), ("un", 16), ("hug", 15), ("pun", 12)]
    assert [(m.piece, m.count) for m in learn_merges(WORDS, 4)] == wanted
    assert [(m.piece, m.count) for m in hug(4).trace_merges(WORDS)] == wanted
    assert [m.piece for m in hug().trace_merges()] == ["ug", "un", "hug"]
    assert set(hug().vocabulary) - {"<unk>", "▁"} == {*"bghnpsu", "ug", "un", "hug"}


def test_words_are_cut_by_the_merges_in_order():
    made = hug()
    cut = {"hug": ["hug"], "pug": ["p", "ug"], "pun": ["p", "un"], "bun": ["b", "un"]}
    cut |= {"hugs": ["hug", "s"], "bug": ["b", "ug"], "mug": ["<unk>", "ug"]}
    assert {word: made.tokens(word) for word in cut} == cut


def test_python_and_rust_learn_the_same_merges():
    rng = np.random.default_rng(0)
    words = {"".join(rng.choice(list("abcd"), rng.integers(2, 9))): 2**i for i in range(12)}
    rust = BPETokenizer(special=("<unk>",), vocabulary_size=6 + 12).fit(words).trace_merges(words)
    ours = list(learn_merges(words, 12))
    assert [m.count for m in ours] == [m.count for m in rust]  # ties may fall differently


def test_merges_of_the_same_symbol_go_from_left_to_right():
    pairs = Pairs({"aaaaa": 2})
    assert pairs.pairs["a", "a"] == 8
    pairs.merge(("a", "a"))
    assert pairs.words == [["aa", "aa", "a"]]
    assert (pairs.symbols["aa"], pairs.symbols["a"], pairs.total) == (4, 2, 6)


def test_counts_kept_up_to_date_equal_counts_made_again():
    pairs = Pairs({"banana": 3, "bandana": 2, "ana": 5})
    for pair in [("a", "n"), ("an", "a"), ("b", "an"), ("ana", "ana")]:
        pairs.merge(pair)
        fresh = Pairs({})
        fresh.words, fresh.counts = pairs.words, pairs.counts
        for place in range(len(fresh.words)):
            fresh._add(place, +1)
        assert (pairs.pairs, pairs.symbols) == (fresh.pairs, fresh.symbols)
        assert pairs.total == fresh.total


# ---- priority queue ----


def test_the_queue_makes_the_same_pieces_as_the_scan():
    rng = np.random.default_rng(1)
    words = {"".join(rng.choice(list("abc"), 12)): 1 for _ in range(60)}
    merges = [(m.left, m.right) for m in learn_merges(words, 40)]
    for length in (0, 1, 2, 7, 300):
        text = "".join(rng.choice(list("abcd"), length))
        queue, scan = (apply_merges(text, merges, queue=way)[0] for way in (True, False))
        assert queue == scan
        assert "".join(queue) == text


def test_the_work_of_the_queue_grows_linearly_and_that_of_the_scan_quadratically():
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("ab"), 1600))
    merges = [(m.left, m.right) for m in learn_merges({text: 1}, 60)]

    def slope(queue):
        small, large = (apply_merges(text[:n], merges, queue=queue)[1] for n in (200, 1600))
        return math.log(large / small) / math.log(8)

    assert slope(queue=True) < 1.1
    assert slope(queue=False) > 1.9


def test_rust_cuts_a_long_stream_as_the_queue_does():
    rng = np.random.default_rng(0)
    text = "".join(rng.choice(list("ab "), 3000))
    made = SentencePieceTokenizer(algorithm="bpe", split=False, vocabulary_size=330).fit([text])
    model = BPETokenizer(vocabulary_size=330)._adopt(made.backend_)
    merges = [(m.left, m.right) for m in model.trace_merges()]
    assert made.tokens(text) == apply_merges(text.replace(" ", "▁"), merges)[0]


# ---- bytes ----


def test_no_byte_is_unknown_and_the_sizes_are_those_of_gpt():
    made = ByteBPETokenizer(vocabulary_size=257 + 5).fit(["low lower lowest newest widest"] * 3)
    assert len(made) == 256 + 5 + 1
    assert made.find_id("unknown") is None
    bare = ByteBPETokenizer(vocabulary_size=257).fit(["a"])
    assert len(bare.encode("é€🎉")) == 2 + 3 + 4
    assert len(set(bare.encode("".join(map(chr, range(128)))))) == 128
    assert ByteBPETokenizer().vocabulary_size == 256 + 50_000 + 1 == 50_257


def test_a_vocabulary_is_its_alphabet_and_its_merges():
    made = hug(4)
    letters = len("bghnpsu") + len("▁")
    assert len(made) == letters + len(made.trace_merges()) + len(made.special)


def test_the_vocabulary_of_gpt_is_478_symbols_and_40_000_merges():
    random = np.random.default_rng(0)
    letters = [chr(0x4E00 + i) for i in range(476)]  # and "▁" and "<unk>"
    words = {"".join(word): 1 for word in random.choice(letters, (20_000, 6))}
    made = BPETokenizer(special=("<unk>",), vocabulary_size=40_478).fit(words)
    assert len(made) == 40_478
    assert len(made.trace_merges()) == 40_000
    singles = {piece for piece in made.vocabulary if len(piece) == 1 or piece == "<unk>"}
    assert singles == {*letters, "▁", "<unk>"}


def test_byte_merges_are_traced_with_counts():
    made = ByteBPETokenizer(vocabulary_size=259).fit(["ab ab abc"])
    first, second = made.trace_merges(["ab ab abc"])
    assert (first.piece, first.count) == ("ab", 3)
    assert (second.piece, second.count) == ("Ġab", 2)


# ---- WordPiece ----


def test_score_and_likelihood_choose_different_pairs():
    pairs = Pairs(WORDS)
    score = {a + b: CRITERIA["score"](pairs, (a, b)) for a, b in pairs.pairs}
    assert score.pop("gs") == pytest.approx(0.05)
    assert all(value == pytest.approx(1 / 36) for value in score.values())
    gain = {a + b: CRITERIA["likelihood"](pairs, (a, b)) for a, b in pairs.pairs}
    wanted = {"ug": 28.02, "pu": 22.96, "un": 21.36, "hu": 19.80, "gs": 9.23, "bu": 4.73}
    assert gain == pytest.approx(wanted, abs=0.005)  # WE-99


def test_the_gain_is_the_difference_of_log_likelihoods():
    def likelihood(pairs):
        return sum(n * math.log(n / pairs.total) for n in pairs.symbols.values())

    words = {"aab": 4, "aaaa": 1, "bab": 6}
    for pair in [("a", "b"), ("b", "a")]:
        before, after = Pairs(words), Pairs(words)
        after.merge(pair)
        gain = CRITERIA["likelihood"](before, pair)
        assert gain == pytest.approx(likelihood(after) - likelihood(before))


@pytest.mark.parametrize(
    "criterion, first", [("score", "##gs"), ("likelihood", "##ug"), ("frequency", "##ug")]
)
def test_the_first_piece_depends_on_the_criterion(criterion, first):
    letters = ["b", "h", "p", "##g", "##n", "##s", "##u"]
    letters += list("gnsu") * (criterion == "frequency")  # Rust keeps both forms of a letter
    size = 5 + len(letters) + 1
    made = WordPieceTokenizer(criterion=criterion, vocabulary_size=size).fit(WORDS)
    assert set(made.vocabulary) - set(made.special) == {*letters, first}
    if criterion != "frequency":
        assert [m.piece for m in made.trace_merges()] == [first]


def test_the_longest_piece_is_taken_first():
    pieces = ["i", "have", "a", "new", "gp", "##u", "!", "g", "##p"]
    made = WordPieceTokenizer.from_pieces(pieces, normalise=("lowercase",))
    assert made.tokens("I have a new GPU!") == ["i", "have", "a", "new", "gp", "##u", "!"]
    assert made.decode(made.encode("a GPU")) == "a gpu"
    assert made.tokens("gpx") == ["[UNK]"]


def test_an_unknown_criterion_gets_the_nearest_name():
    with pytest.raises(InvalidParameter, match=r"got 'scores'. Did you mean `score`"):
        WordPieceTokenizer(criterion="scores").fit(WORDS)
    with pytest.raises(InvalidParameter, match="`criterion` must be"):
        next(learn_merges(WORDS, 1, criterion="luck"))


def test_replaying_counts_merges_in_other_words():
    found = list(replay_merges({"hug": 3}, [("u", "g"), ("u", "n"), ("h", "ug")]))
    assert [m.count for m in found] == [3, 0, 3]


# ---- unigram ----


def brute_force(text, scores):
    """The best of all ways to cut a text, and its score."""
    ways = []
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        places = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), len(text)]
        pieces = [text[a:b] for a, b in itertools.pairwise(places)]
        if all(piece in scores for piece in pieces):
            ways.append((sum(scores[piece] for piece in pieces), pieces))
    return max(ways)


def test_the_segmentation_is_the_best_of_all():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc"), 12)) for _ in range(60)]
    made = UnigramTokenizer(vocabulary_size=40).fit(texts)
    assert max(map(len, made.vocabulary)) > 1
    for text in texts[:12]:
        best, _ = brute_force(text, made.scores)
        pieces = made.tokens(text)
        assert "".join(pieces) == text
        assert sum(made.scores[piece] for piece in pieces) == pytest.approx(best)


def test_given_pieces_cut_the_sentence_as_xlnet_does():
    words = ["▁Don", "'", "t", "▁you", "▁love", "▁", "Transform", "ers", "?"]
    wanted = [*words, "▁We", "▁sure", "▁do", "."]
    made = UnigramTokenizer.from_scores(dict.fromkeys(wanted, -3.0), prefix=True)
    text = "Don't you love Transformers? We sure do."
    assert made.tokens(text) == wanted
    assert made.decode(made.encode(text)) == text


def test_unigram_with_fallback_writes_what_it_does_not_know_in_bytes():
    made = UnigramTokenizer(vocabulary_size=300, byte_fallback=True).fit(["abc abc"] * 5)
    assert made.tokens("é") == ["<0xC3>", "<0xA9>"]
    assert [made.id_of(f"<0x{b:02X}>") for b in (0, 255)] == [4, 259]
    assert 260 < len(made.vocabulary) <= 300  # special tokens and bytes are counted


def test_a_unigram_vocabulary_is_as_large_as_asked_for():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdefgh"), 12)) for _ in range(200)]
    for size, fallback in ((60, False), (330, True)):
        made = UnigramTokenizer(vocabulary_size=size, byte_fallback=fallback).fit(texts)
        assert size - 4 <= len(made.vocabulary) <= size


# ---- SentencePiece ----


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_a_language_without_spaces_is_cut_and_joined_again(algorithm):
    texts = ["私は猫が好きです", "猫は私が好きです", "私は犬が好きです"] * 5
    made = SentencePieceTokenizer(algorithm=algorithm, vocabulary_size=300, split=False).fit(texts)
    assert made.decode(made.encode(texts[0])) == texts[0]
    assert len(made.tokens(texts[0])) < len(texts[0])
    assert made.decode(made.encode("鳥が 好き")) == "鳥が 好き"


def test_pieces_run_across_spaces_only_when_they_may():
    texts = ["new york new york"] * 9
    crossing, stopping = (
        SentencePieceTokenizer(algorithm="bpe", vocabulary_size=400, split=split).fit(texts)
        for split in (False, True)
    )
    assert any("w▁y" in piece for piece in crossing.vocabulary)
    assert not any("▁" in piece[1:] for piece in stopping.vocabulary)


def test_a_prefix_makes_the_first_word_like_the_others():
    made = SentencePieceTokenizer(algorithm="bpe", vocabulary_size=300, prefix=True)
    made.fit(["dog dog dog"] * 9)
    assert set(made.tokens("dog dog")) == {"▁dog"}
    assert made.decode(made.encode("dog dog")) == "dog dog"


def test_an_unknown_algorithm_is_refused():
    with pytest.raises(InvalidParameter, match="must be `unigram` or `bpe`; got 'lstm'"):
        SentencePieceTokenizer(algorithm="lstm").fit(["a"])
