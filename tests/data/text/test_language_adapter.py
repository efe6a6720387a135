"""Packed blocks: what is a row, what is its target, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from castalia.data.text import LanguageAdapter, cut_blocks, named_tokenizers, read_text
from castalia.data.tokenizers import ByteBPETokenizer, CharTokenizer, WhitespaceTokenizer
from castalia.errors import InvalidData, InvalidParameter


@pytest.mark.parametrize("length, stride", [(3, None), (4, 2), (5, 1), (7, None), (99, None)])
def test_every_token_but_the_first_is_a_target_and_targets_are_the_next_tokens(length, stride):
    blocks = cut_blocks(np.arange(23), length, stride)
    assert set(blocks[:, 1:].ravel()) == set(range(1, 23))
    assert (np.diff(blocks, axis=1) == 1).all()


def test_without_the_rest_blocks_follow_each_other():
    blocks = cut_blocks(np.arange(24), 5, rest=False)
    assert len(blocks) == 4
    assert (blocks[1:, 0] == blocks[:-1, -1]).all()


def test_texts_stand_between_end_tokens_and_decode_back():
    adapter = LanguageAdapter("characters", context=100)
    (block,) = adapter.check(["ab", "cab"], "fit")
    assert block[[0, 3, 7]].tolist() == [adapter.end] * 3
    assert adapter.tokenizer.decode(block) == "abcab"


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, lambda texts: np.array(texts, object)])
def test_texts_may_come_in_any_list(kind):
    found = LanguageAdapter(context=4).check(kind(["abc", "cba"]), "fit")
    assert (found == LanguageAdapter(context=4).check(["abc", "cba"], "fit")).all()


def test_a_path_is_read_as_one_text(tmp_path):
    file = tmp_path / "book.txt"
    file.write_bytes("\ufeffone\r\ntwo\n".encode())
    adapter = LanguageAdapter("characters", context=50)
    (block,) = adapter.check(file, "fit")
    assert adapter.tokenizer.decode(block) == "one\r\ntwo\n"


def test_small_texts_are_read_by_characters_and_long_ones_by_pieces(monkeypatch):
    monkeypatch.setattr(named_tokenizers, "SMALL", 100_000)  # characters
    small, long = LanguageAdapter(), LanguageAdapter()
    small.check(["some text"], "fit")
    long.check(["some words and others, again and again. " * 3_000], "fit")
    assert isinstance(small.tokenizer, CharTokenizer)
    assert isinstance(long.tokenizer, ByteBPETokenizer)


def test_a_fitted_tokenizer_is_kept_and_one_that_is_not_is_left_alone():
    fitted, fresh = WhitespaceTokenizer().fit(["a b c"]), WhitespaceTokenizer()
    first, second = LanguageAdapter(fitted), LanguageAdapter(fresh)
    first.check(["a d"], "fit"), second.check(["a d"], "fit")
    assert first.tokenizer is fitted
    assert not hasattr(fresh, "backend_")
    assert "d" in second.tokenizer.vocabulary


def test_token_ids_are_taken_as_they_are():
    adapter = LanguageAdapter(context=3)
    assert adapter.check([np.array([4, 1, 3])], "fit").tolist() == [[4, 1, 3]]
    assert adapter.vocabulary == 5
    with pytest.raises(InvalidData, match=r"at least 0 and below 5.*got 5"):
        adapter.check([[1, 5]], "fit")
    with pytest.raises(InvalidData, match="no tokenizer; texts must be token ids, got 'word'"):
        adapter.check(["word"], "fit")


@pytest.mark.parametrize(
    "X, said",
    [
        ("one string", r"must be a list of texts; got one string, 'one string'.*pathlib.Path"),
        ([], "at least one text; got none"),
        (["a", ""], "text 1 is empty"),
        (["  ", ""], "at least one character; got none"),
        (["a", np.nan], "a text must be .*got nan at place 1"),
        (["a", None], "got None at place 1"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "a table of 2 columns"),
        ([[3]], "two tokens or more.*got 1"),
        (Path("/nowhere/book.txt"), "must be a file that can be read; got No such file"),
    ],
)
def test_what_is_no_text_is_refused(X, said):
    with pytest.raises(InvalidData, match=rf"^Model: .*{said}"):
        LanguageAdapter().check(X, "Model")


def test_another_encoding_is_named_by_file_and_offset(tmp_path):
    file = tmp_path / "latin.txt"
    file.write_bytes(b"good\ncaf\xe9")
    with pytest.raises(InvalidData, match=r"latin.txt` must be UTF-8; got byte 0xe9 at offset 8 "):
        read_text(file)
    file.write_bytes(b" \n")
    with pytest.raises(InvalidData, match="the file is empty"):
        read_text(file)


def test_an_unknown_name_of_a_tokenizer_is_refused_with_a_near_one():
    with pytest.raises(InvalidParameter, match="Did you mean `byte-bpe`"):
        LanguageAdapter("bytebpe").check(["a"], "Model")


def test_end_tokens_inside_given_ids_stay():
    made = CharTokenizer().fit(["ab"])
    adapter, end = LanguageAdapter(made, context=50), made.id_of("end")
    stream = adapter.stream([[4, end, end, 5], [4]], "fit")
    assert stream.tolist() == [end, 4, end, end, 5, end, 4, end]
