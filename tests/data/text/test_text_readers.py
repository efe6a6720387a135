"""Folders of texts, parallel texts, and files of tagged words."""

import gzip

import numpy as np
import pytest

from castalia import Training
from castalia.data.text import read_conll, read_folder, read_parallel
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language import BERTTagger


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_folders_of_texts_are_classes(tmp_path):
    for name in ("pos/2.txt", "pos/1.txt", "neg/9.txt"):
        write(tmp_path / name, f"text of {name}")
    write(tmp_path / "neg" / "readme.md", "no text")
    texts, classes = read_folder(tmp_path)
    assert texts == ["text of neg/9.txt", "text of pos/1.txt", "text of pos/2.txt"]
    assert np.array_equal(classes, ["neg", "pos", "pos"])


def test_a_plain_folder_has_no_classes(tmp_path):
    write(tmp_path / "b.txt", "two")
    with gzip.open(tmp_path / "a.txt.gz", "wb") as file:
        file.write(b"one")
    assert read_folder(tmp_path) == (["one", "two"], None)


def test_folders_that_are_neither_are_refused(tmp_path):
    with pytest.raises(InvalidData, match=r"must hold .txt files; it holds none"):
        read_folder(tmp_path)
    write(tmp_path / "a.txt", "one")
    write(tmp_path / "pos" / "b.txt", "two")
    with pytest.raises(InvalidData, match=r"got both, 1 file such as `a.txt` beside .* `pos`"):
        read_folder(tmp_path)
    with pytest.raises(InvalidData, match=r"nowhere` must be a folder"):
        read_folder(tmp_path / "nowhere")


def test_an_unknown_encoding_is_refused_by_file_and_offset(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"gut\nf\xfcr\n")
    with pytest.raises(InvalidData, match=r"a.txt` must be UTF-8; got byte 0xfc at offset 5"):
        read_folder(tmp_path)
    with pytest.raises(InvalidData, match=r"a.txt` must be UTF-8; got byte 0xfc at offset 5"):
        read_parallel(tmp_path / "a.txt", tmp_path / "a.txt")
    (tmp_path / "b.conll").write_bytes(b"gut ADJ\nf\xfcr ADP\n")
    with pytest.raises(InvalidData, match=r"b.conll` must be UTF-8; got byte 0xfc at offset 9"):
        read_conll(tmp_path / "b.conll")


def test_parallel_texts_belong_together_line_by_line(tmp_path):
    source, target = (
        write(tmp_path / "t.en", "\ufeffone\r\n\ntwo\n"),
        write(tmp_path / "t.de", "1\n\n2"),
    )
    assert read_parallel(source, target) == (["one", "two"], ["1", "2"])


def test_parallel_files_of_different_length_are_refused_with_both_counts(tmp_path):
    source, target = write(tmp_path / "t.en", "a\n" * 1200), write(tmp_path / "t.de", "a\n" * 3)
    with pytest.raises(InvalidData, match=r"same number of lines; got 1,200 and 3"):
        read_parallel(source, target)


def test_a_line_that_lacks_its_translation_is_named(tmp_path):
    source, target = write(tmp_path / "t.en", "a\nb\nc\n"), write(tmp_path / "t.de", "a\n\n \n")
    with pytest.raises(InvalidData, match=r"2 lines of 3 do not, first line 2.*empty in .*t.de"):
        read_parallel(source, target)


def test_a_packed_file_that_was_cut_off_is_named(tmp_path):
    packed = gzip.compress(b"one\ntwo\n" * 99)
    (tmp_path / "t.gz").write_bytes(packed[:-9])
    with pytest.raises(InvalidData, match=r"t.gz` must be a whole gzip file"):
        read_parallel(tmp_path / "t.gz", tmp_path / "t.gz")


CONLL = "-DOCSTART- -X- O\n\nAnn NNP B-PER\nsleeps VBZ O\n\n\n# # O\nBob NNP B-PER\n"
UNIVERSAL = """# text = Im Haus
1-2 Im _ _ _
1 in in ADP _
2 dem der DET _
3 Haus Haus NOUN _
""".replace(" ", "\t")


def test_words_and_tags_are_read_by_columns(tmp_path):
    path = write(tmp_path / "train.txt", CONLL)
    words = [["Ann", "sleeps"], ["#", "Bob"]]
    assert read_conll(path) == (words, [["B-PER", "O"], ["O", "B-PER"]])
    assert read_conll(path, tags=1)[1] == [["NNP", "VBZ"], ["#", "NNP"]]
    path = write(tmp_path / "dev.conllu", UNIVERSAL)
    assert read_conll(path) == ([["in", "dem", "Haus"]], [["ADP", "DET", "NOUN"]])


def test_lines_with_missing_columns_are_named(tmp_path):
    path = write(tmp_path / "train.txt", "Ann B-PER\nsleeps\n")
    with pytest.raises(InvalidData, match=r"must have 2 columns.*got 1 in line 2, 'sleeps'"):
        read_conll(path)
    with pytest.raises(InvalidParameter, match=r"must have a column 4 .*; its lines have 2"):
        read_conll(path, tags=4)
    with pytest.raises(InvalidData, match="at least one word"):
        read_conll(write(tmp_path / "none.txt", "\n\n"))


def test_a_tagger_learns_from_a_file_of_tagged_words(tmp_path):
    path = write(
        tmp_path / "train.txt", "Ann B-PER\nsees O\nBob B-PER\n\nBob B-PER\nsleeps O\n\n" * 16
    )
    words, tags = read_conll(path)
    model = BERTTagger(
        context=16, dim=16, depth=1, heads=2, dropout=0.0, epochs=8, lr=0.02, random_state=0,
        training=Training(watch=False, verbose=False),
    )  # fmt: skip
    assert model.fit(words, tags).score(words, tags) == 1.0
