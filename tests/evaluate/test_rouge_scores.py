"""ROUGE by hand, and by the formula."""

import pytest

from castalia.errors import InvalidData, ShapeMismatch
from castalia.evaluate import rouge
from castalia.evaluate.rouge_scores import common_length

TRUE = "police killed the gunman"


def test_the_example_of_the_paper():
    # Lin 2004, 3.1: both share "police", "the gunman" … S2 has the subsequence "police the gunman".
    better, worse = "police kill the gunman", "the gunman kill police"
    assert rouge([TRUE], [better]).rougeL.f1 == 3 / 4
    assert rouge([TRUE], [worse]).rougeL.f1 == 2 / 4
    assert rouge([TRUE], [better]).rouge2.f1 == rouge([TRUE], [worse]).rouge2.f1 == 1 / 3


def test_precision_recall_and_f_by_hand():
    # 5 of 5 words and 6 there; pairs: the-cat, on-the, the-mat of 4 and of 5; subsequence 5.
    found = rouge(["The cat sat on the mat."], ["the cat on the mat"])
    assert found.rouge1 == pytest.approx((1, 5 / 6, 10 / 11))
    assert found.rouge2 == pytest.approx((3 / 4, 3 / 5, 2 / 3))
    assert found.rougeL == pytest.approx((1, 5 / 6, 10 / 11))


def test_a_word_counts_at_most_as_often_as_in_the_reference():
    assert rouge(["the cat"], ["the the the"]).rouge1 == pytest.approx((1 / 3, 1 / 2, 2 / 5))


def test_the_best_reference_counts_and_scores_are_means():
    found = rouge([["a b", "c d"], "x"], ["c d", "y"])
    assert found.rouge1 == pytest.approx((0.5, 0.5, 0.5))
    assert rouge([""], ["a"]).rougeL == (0, 0, 0)


def test_letters_of_every_script_are_words():
    assert rouge(["Größe 3,5 кг"], ["größe кг"]).rouge1 == pytest.approx((1, 2 / 4, 2 / 3))


def test_the_longest_common_subsequence_is_found_by_brute_force_too():
    from itertools import combinations

    one, other = "abcbdab", "bdcaba"
    tried = (c for n in range(len(one), -1, -1) for c in combinations(one, n))
    best = next(c for c in tried if all(x in it for it in [iter(other)] for x in c))
    assert common_length(one, other) == len(best) == 4


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InvalidData, match="lists of texts; got a text"):
        rouge("a", "b")
    with pytest.raises(ShapeMismatch, match="got 1 and 2"):
        rouge(["a"], ["b", "c"])
    with pytest.raises(InvalidData, match="must be strings; got .* at place 0"):
        rouge([["a"]], [3])
