"""Word vectors: nearest words, analogies, projection, layers, and files byte by byte."""

import gzip
import importlib.util
import struct

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import nn

from castalia.data.word_vectors import (
    WordVectors,
    read_analogies,
    read_similarities,
    read_word_vectors,
    write_word_vectors,
)
from castalia.errors import DamagedFile, InvalidData, InvalidParameter, ShapeMismatch

PLANTED = {  # kind, country
    "france": (1, 0, 3, 0, 0),
    "paris": (0, 1, 3, 0, 0),
    "italy": (1, 0, 0, 3, 0),
    "rome": (0, 1, 0, 3, 0),
    "japan": (1, 0, 0, 0, 3),
    "tokyo": (0, 1, 0, 0, 3),
}


@pytest.fixture
def planted():
    return WordVectors(list(PLANTED), list(PLANTED.values()))


@pytest.fixture
def drawn():
    values = np.random.default_rng(0).normal(size=(30, 7)).astype(np.float32)
    return WordVectors([f"w{i}" for i in range(29)] + ["naïve"], values)


# ---- questions ----


def test_paris_less_france_plus_italy_is_rome(planted):
    assert planted.analogy("france", "paris", "italy")[0][0] == "rome"
    assert planted.analogy("tokyo", "japan", "rome")[0][0] == "italy"


def test_the_words_of_the_question_are_no_answers(planted):
    answers = [word for word, _ in planted.analogy("france", "paris", "italy", n=9)]
    assert sorted(answers) == ["japan", "rome", "tokyo"]


def test_the_nearest_words_are_those_of_the_planted_cluster():
    random = np.random.default_rng(1)
    centres = random.normal(size=(4, 10))
    words = [f"{cluster}{i}" for cluster in "abcd" for i in range(6)]
    made = WordVectors(words, np.repeat(centres, 6, axis=0) + 0.1 * random.normal(size=(24, 10)))
    for word in words:
        found = made.most_similar(word, n=5)
        assert {near[0] for near, _ in found} == {word[0]}
        cosines = [cosine for _, cosine in found]
        assert cosines == sorted(cosines, reverse=True)


def test_cosines_are_those_of_the_definition_and_length_does_not_matter(drawn):
    a, b = drawn.embed("w3"), drawn.embed("w5")
    cosine = a @ b / np.sqrt((a @ a) * (b @ b))
    assert drawn.similarity("w3", "w5") == pytest.approx(cosine, abs=1e-6)
    assert dict(drawn.most_similar(9 * a, n=30))["w5"] == pytest.approx(cosine, abs=1e-6)


def test_the_projection_is_that_of_principal_components(drawn):
    found = drawn.project()
    wanted = PCA(2).fit(drawn.vectors_.astype(float))
    points = wanted.transform(drawn.vectors_.astype(float))
    signs = np.sign((found.points * points).sum(axis=0))  # a component may point either way
    np.testing.assert_allclose(found.points * signs, points, atol=1e-9)
    np.testing.assert_allclose(found.explained, wanted.explained_variance_ratio_)


def test_agreement_with_people_is_spearmans_and_unknown_words_are_counted(planted):
    pairs = [("france", "italy", 5.0), ("france", "paris", 8.0), ("rome", "japan", 0.0)]
    found = planted.evaluate_similarity([*pairs, ("rome", "carthage", 1.0)])
    assert found == {"correlation": pytest.approx(1), "pairs": 3, "unknown": 1}
    turned = [(a, b, -score) for a, b, score in pairs]
    assert planted.evaluate_similarity(turned)["correlation"] == pytest.approx(-1)


def test_analogies_are_counted_by_section(planted):
    right = ("france", "paris", "italy", "rome")
    wrong = ("france", "paris", "italy", "tokyo")
    asked = {"good": [right, right], "bad": [wrong], "none": [("a", "b", "c", "d")]}
    found = planted.evaluate_analogies(asked)
    assert found == {"total": pytest.approx(2 / 3), "questions": 3, "good": 1, "bad": 0}


def test_an_unknown_word_is_named_with_the_nearest(planted):
    with pytest.raises(InvalidData, match="got 'pariss'. Did you mean `paris`"):
        planted.embed(["rome", "pariss"])
    with pytest.raises(InvalidParameter, match="`n` must be a whole number of at least 1; got 0"):
        planted.most_similar("rome", n=0)
    with pytest.raises(ShapeMismatch, match=r"shape \(5,\); got \(3,\)"):
        planted.most_similar(np.zeros(3))


def test_words_and_vectors_must_match():
    with pytest.raises(ShapeMismatch, match=r"shape \(2, D\), a row a word; got \(3, 4\)"):
        WordVectors(["a", "b"], np.zeros((3, 4)))
    with pytest.raises(InvalidData, match="got 'a' twice"):
        WordVectors(["a", "b", "a"], np.zeros((3, 4)))


# ---- layers ----


def train(layer, numbers, y):
    net = nn.Linear(7, 2)
    weights = [p for p in (*layer.parameters(), *net.parameters()) if p.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=0.5)
    for _ in range(20):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(layer(numbers)), y).backward()
        optimizer.step()


def test_a_learned_embedding_is_a_one_hot_row_times_the_table_and_learns_with_the_task(drawn):
    layer = drawn.embedding(frozen=False)
    numbers, y = torch.tensor([3, 8, 3, 20]), torch.tensor([0, 1, 0, 1])
    one_hot = nn.functional.one_hot(numbers, 30).float()
    torch.testing.assert_close(layer(numbers), one_hot @ layer.weight)
    train(layer, numbers, y)
    moved = (layer.weight.detach().numpy() != drawn.vectors_).any(axis=1)
    assert np.flatnonzero(moved).tolist() == [3, 8, 20]  # only words that were seen


def test_frozen_rows_stay_as_they_are(drawn):
    before = drawn.vectors_.copy()
    layer = drawn.embedding(frozen=True)
    train(layer, torch.tensor([3, 8, 3, 20]), torch.tensor([0, 1, 0, 1]))
    np.testing.assert_array_equal(layer.weight, before)


# ---- files ----


@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.txt.gz", "v.bin.gz"])
def test_what_is_written_is_read_to_the_bit(drawn, tmp_path, name):
    write_word_vectors(tmp_path / name, drawn)
    found = read_word_vectors(tmp_path / name)
    assert found.words_ == drawn.words_
    np.testing.assert_array_equal(found.vectors_, drawn.vectors_)


def test_text_files_are_those_of_the_definition(tmp_path):
    made = WordVectors(["ä", "b"], [[0.5, -1.25], [3.0, 0.001]])
    write_word_vectors(tmp_path / "v.txt", made)
    assert (tmp_path / "v.txt").read_bytes() == "2 2\nä 0.5 -1.25\nb 3 0.00100000005\n".encode()


def test_binary_files_are_those_of_the_definition(tmp_path):
    made = WordVectors(["ä", "b"], [[0.5, -1.25], [3.0, 0.25]])
    write_word_vectors(tmp_path / "v.bin", made)
    rows = struct.pack("<2f", 0.5, -1.25), struct.pack("<2f", 3.0, 0.25)
    raw = b"2 2\n\xc3\xa4 " + rows[0] + b"\nb " + rows[1] + b"\n"
    assert (tmp_path / "v.bin").read_bytes() == raw


def test_binary_files_without_line_feeds_are_read_too(tmp_path):
    raw = b"2 1\n" + b"".join(w + b" " + struct.pack("<f", x) for w, x in ((b"a", 1), (b"b", 2)))
    (tmp_path / "v").write_bytes(raw)
    found = read_word_vectors(tmp_path / "v", kind="binary")
    assert (found.words_, found.vectors_.tolist()) == (["a", "b"], [[1.0], [2.0]])


@pytest.mark.skipif(importlib.util.find_spec("gensim") is None, reason="gensim is not installed")
@pytest.mark.parametrize("binary", [True, False])
def test_gensim_reads_ours_and_we_read_gensims(drawn, tmp_path, binary):
    from gensim.models import KeyedVectors

    kind = "binary" if binary else "text"
    write_word_vectors(tmp_path / "ours", drawn, kind=kind)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert theirs.index_to_key == drawn.words_
    np.testing.assert_array_equal(theirs.vectors, drawn.vectors_)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    found = read_word_vectors(tmp_path / "theirs", kind=kind)
    assert found.words_ == drawn.words_
    np.testing.assert_array_equal(found.vectors_, drawn.vectors_)


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("v.txt", b"2 3\na 1 2 3\n", "line 3 .*a word and 3 numbers; got the end of the file"),
        ("v.txt", b"1 3\na 1 2\n", "line 2 .*3 numbers; got 2 fields, beginning b'a 1 2"),
        ("v.txt", b"1 2\na 1 x\n", "line 2 .*must be a word and 2 numbers"),
        ("v.txt", b"2 1\na 1\na 2\n", "must hold each word once"),
        ("v.bin", b"2 1\na \0\0\0\0", "must hold 2 words with 1 numbers each; it ends in number 2"),
        ("v.bin", b"1 1\n\xff \0\0\0\0", "word 1 .*must be UTF-8"),
        ("v.txt.gz", gzip.compress(b"1 1\na 1\n", mtime=0)[:-9], "whole gzip file; it is damaged"),
    ],
)
def test_damaged_files_are_described_in_a_sentence(tmp_path, name, raw, said):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DamagedFile, match=said):
        read_word_vectors(tmp_path / name)


@pytest.mark.parametrize("raw", [b"", b"the 0.1 0.2\n", b"1 2 3\n"])
def test_a_file_without_its_first_line_is_refused(tmp_path, raw):
    (tmp_path / "v.txt").write_bytes(raw)
    with pytest.raises(InvalidData, match="must begin with the number of words and their dim"):
        read_word_vectors(tmp_path / "v.txt")


def test_a_missing_file_and_words_with_spaces_are_refused(tmp_path):
    with pytest.raises(InvalidData, match="must be a file that can be read; got No such file"):
        read_word_vectors(tmp_path / "none.txt")
    with pytest.raises(InvalidData, match="free of spaces and line feeds.*got 'new york'"):
        write_word_vectors(tmp_path / "v.txt", WordVectors(["new york"], [[1.0]]))
    assert not (tmp_path / "v.txt").exists()


def test_judgements_are_read(tmp_path):
    (tmp_path / "pairs.txt").write_text("Love\tsex\t6.77\ntiger cat 7.35\n\n")
    wanted = [("love", "sex", 6.77), ("tiger", "cat", 7.35)]
    assert read_similarities(tmp_path / "pairs.txt") == wanted
    text = ": capitals\nAthens Greece Oslo Norway\n: family\nboy girl he she\n"
    (tmp_path / "asked.gz").write_bytes(gzip.compress(text.encode()))
    found = read_analogies(tmp_path / "asked.gz")
    assert found["capitals"] == [("athens", "greece", "oslo", "norway")]
    assert list(found) == ["capitals", "family"]


def test_a_bad_line_of_judgements_is_named(tmp_path):
    (tmp_path / "f").write_text("a b 1\na b\n")
    with pytest.raises(InvalidData, match="line 2 of .* must be two words and a number; got 'a b'"):
        read_similarities(tmp_path / "f")
    with pytest.raises(InvalidData, match="line 1 of .* must be four words; got 'a b 1'"):
        read_analogies(tmp_path / "f")
