"""Known texts by name: found by checksum, unpacked, cut into parts; and words by their contexts."""

import gzip
import hashlib
import lzma
from collections import Counter

import numpy as np
import pytest

from castalia.data.text import text_datasets as texts
from castalia.data.text.film_reviews import load_reviews
from castalia.data.text.text_datasets import available_texts, load_text
from castalia.data.tokenizers import WhitespaceTokenizer
from castalia.data.word_vectors.cooccurrence import count_cooccurrences
from castalia.errors import InvalidData, InvalidParameter


def put(tmp_path, monkeypatch, name, part, file, raw):
    """Make a known text of some bytes."""
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(raw)
    monkeypatch.setenv("CASTALIA_DATA", str(tmp_path))
    monkeypatch.setitem(texts._FILES, (name, part), (file, hashlib.sha256(raw).hexdigest()))


@pytest.mark.parametrize("pack, end", [(gzip.compress, ".gz"), (lzma.compress, ".xz")])
def test_a_text_is_unpacked(tmp_path, monkeypatch, pack, end):
    raw = pack(" ein Satz \n größer \n".encode())
    put(tmp_path, monkeypatch, "ptb", "test", f"ptb/x.txt{end}", raw)
    assert load_text("ptb", "test").split("\n") == [" ein Satz ", " größer "]


def test_shakespeare_is_cut_as_nanogpt_does(tmp_path, monkeypatch):
    for part in ("train", "validation"):
        put(tmp_path, monkeypatch, "tinyshakespeare", part, "t/input.txt", b"0123456789" * 5)
    train, validation = (load_text("tinyshakespeare", part) for part in ("train", "validation"))
    assert (len(train), len(validation)) == (45, 5)
    assert train + validation == "0123456789" * 5


def test_another_file_and_other_names_are_refused(tmp_path, monkeypatch):
    put(tmp_path, monkeypatch, "ptb", "train", "ptb/x.txt.gz", gzip.compress(b"a"))
    (tmp_path / "ptb/x.txt.gz").write_bytes(b"altered")
    with pytest.raises(InvalidData, match="load_text: `ptb` must lie at .* another one or damaged"):
        load_text("ptb")
    with pytest.raises(InvalidParameter, match=r"got 'wikitext2'. Did you mean `wikitext-2`"):
        load_text("wikitext2")
    with pytest.raises(InvalidParameter, match="`part` of text8 must be `train`; got 'test'"):
        load_text("text8", "test")


def test_every_set_has_files_and_an_origin():
    assert {name for name, _ in texts._FILES} == set(available_texts())


# ---- words by their contexts ----


def brute_force(rows, size, window, by_distance):
    found = Counter()
    for row in rows:
        for i, a in enumerate(row):
            for j, b in enumerate(row):
                if 0 < abs(i - j) <= window:
                    found[a, b] += 1 / abs(i - j) if by_distance else 1
    return np.array([[found[a, b] for b in range(size)] for a in range(size)])


@pytest.mark.parametrize("by_distance", [False, True])
def test_cooccurrences_equal_brute_force_and_are_symmetric(by_distance):
    rng = np.random.default_rng(0)
    rows = [rng.integers(6, size=n).tolist() for n in (0, 1, 2, 15, 30)]
    found = count_cooccurrences(rows, 6, window=3, by_distance=by_distance).toarray()
    np.testing.assert_allclose(found, brute_force(rows, 6, 3, by_distance))
    np.testing.assert_array_equal(found, found.T)


def test_words_in_like_contexts_have_like_rows():
    lines = ["the dog runs home", "the cat runs home", "a law is passed", "a bill is passed"] * 3
    made = WhitespaceTokenizer().fit(lines)
    counts = count_cooccurrences(made.encode(lines), len(made), window=2).toarray()

    def likeness(one, other):
        a, b = counts[made.id_of(one)], counts[made.id_of(other)]
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert likeness("dog", "cat") > 0.99
    assert likeness("dog", "law") < 0.01
    hotel, motel = made.fit(["hotel motel"]).one_hot("hotel motel")
    assert hotel @ motel == 0
    assert hotel @ hotel == 1


def test_windows_and_numbers_that_cannot_be_are_refused():
    with pytest.raises(InvalidParameter, match="`window` must be"):
        count_cooccurrences([[0]], 1, window=0)
    with pytest.raises(InvalidData, match="below `size`, 2; got 0 to 2"):
        count_cooccurrences([[0, 2]], 2)
    assert count_cooccurrences([], 3).shape == (3, 3)


def test_reviews_come_with_labels_and_judged_phrases(tmp_path, monkeypatch):
    lines = gzip.compress(b"1 a lovely film\n0 bad\n", mtime=0)
    put(tmp_path, monkeypatch, "sst-2", "test", "s/t.txt.gz", lines)
    assert [*map(list, load_reviews("sst-2", "test"))] == [["a lovely film", "bad"], [1, 0]]
    trees = gzip.compress(b"(4 (2 A) (4 (3 Lovely) (2 film)))\n(1 bad)\n", mtime=0)
    put(tmp_path, monkeypatch, "sst-trees", "train", "s/trees.txt.gz", trees)
    texts, labels = load_reviews("sst-2", parts_too=True)
    judged = {"lovely": 1, "lovely film": 1, "a lovely film": 1, "bad": 0}  # the neutral left out
    assert dict(zip(texts, labels.tolist(), strict=True)) == judged
    texts, labels = load_reviews("sst-5")
    assert (texts, labels.tolist()) == (["a lovely film", "bad"], [4, 1])
    for side, line in (("negative", b"dull . \n"), ("positive", b"fine . \nrare \n")):
        raw = gzip.compress(line, mtime=0)
        put(tmp_path, monkeypatch, f"mr-{side}", "train", f"m/{side}.txt.gz", raw)
    assert [*map(list, load_reviews("mr"))] == [["dull .", "fine .", "rare"], [0, 1, 1]]
    with pytest.raises(InvalidParameter, match="'mr', 'sst-2' or 'sst-5'"):
        load_reviews("imdb")
