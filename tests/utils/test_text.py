"""Words for messages."""

import pytest

from castalia.utils.text import did_you_mean, listing, number, plural, shorten


@pytest.mark.parametrize(
    "word, said",
    [
        ("Survivd", " Did you mean `Survived`?"),
        ("survived", " Did you mean `Survived`?"),
        ("SURVIVED", " Did you mean `Survived`?"),
        ("Fare", ""),
        ("", ""),
    ],
)
def test_only_a_near_word_is_suggested(word, said):
    assert did_you_mean(word, ["Survived", "Age"]) == said


def test_nothing_is_suggested_where_nothing_is_known():
    assert did_you_mean("word", []) == ""


def test_known_words_may_be_given_once_only():
    assert did_you_mean("AGE", iter(["Age"])) == " Did you mean `Age`?"


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "nothing"),
        (["a"], "`a`"),
        (["a", "b"], "`a` or `b`"),
        ([1, 2, 3], "`1`, `2` or `3`"),
    ],
)
def test_words_are_joined_for_a_sentence(words, said):
    assert listing(words) == said


def test_a_long_listing_says_how_many_are_left_out():
    assert listing("abcde", "and", most=3) == "`a`, `b`, `c` and 2 more"


@pytest.mark.parametrize(
    "count, said", [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (12345, "12,345 rows")]
)
def test_nouns_follow_their_count(count, said):
    assert plural(count, "row") == said


def test_numbers_keep_four_digits_and_no_trailing_zeros():
    assert [number(x) for x in (0.5, 1 / 3, 0.0, -2.0)] == ["0.5", "0.3333", "0", "-2"]
    assert number(float("nan")) == "nan"
    assert number(1 / 3, digits=2) == "0.33"


def test_long_text_is_cut_in_the_middle_to_the_width():
    assert shorten("short") == "short"
    assert len(shorten("x" * 100, 21)) == 21
    assert shorten(range(10**9), 60) == "range(0, 1000000000)"
    assert shorten("a" * 50 + "b" * 50, 5) == "aa…bb"
