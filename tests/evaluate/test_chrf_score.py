"""chrF by hand, by sacreBLEU's published example, and by sacreBLEU where it is there."""

import pytest
import sacrebleu

from castalia.errors import InvalidParameter
from castalia.evaluate import chrf

SYSTEM = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
FIRST = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
SECOND = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]


def test_the_example_of_sacrebleus_documentation():
    assert chrf(list(zip(FIRST, SECOND, strict=True)), SYSTEM) == pytest.approx(59.73, abs=0.005)


def test_two_orders_by_hand():
    # "abc" against "ab d", without the space "abd": 2 of 3 letters, 1 of 2 pairs, both ways.
    assert chrf(["ab d"], ["abc"], order=2) == pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    # "ab" against "abd": P = (1 + 1) / 2, R = (2/3 + 1/2) / 2; beta 2 and 1.
    recall = (2 / 3 + 1 / 2) / 2
    assert chrf(["abd"], ["ab"], order=2) == pytest.approx(100 * 5 * recall / (4 + recall))
    one = 100 * 2 * recall / (1 + recall)
    assert chrf(["abd"], ["ab"], order=2, beta=1.0) == pytest.approx(one)


def test_words_have_a_punctuation_mark_apart():
    # Letters "a", "b.": 3 of 3; words a, b, . against a, b: 2 of 3 and 2 of 2.
    found = chrf(["a b"], ["a b."], order=1, word_order=1)
    precision, recall = (2 / 3 + 2 / 3) / 2, 1
    assert found == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))


def test_orders_that_do_not_occur_do_not_count_and_nothing_in_common_is_zero():
    assert chrf(["ab"], ["ab"]) == pytest.approx(100)
    assert chrf(["xy"], ["ab"]) == 0
    assert chrf([""], ["ab"]) == 0
    assert chrf(["AB"], ["ab"], lowercase=True) == pytest.approx(100)


def test_it_agrees_with_sacrebleu():
    for words in (0, 2):
        theirs = sacrebleu.corpus_chrf(SYSTEM, [FIRST, SECOND], word_order=words).score
        both = list(zip(FIRST, SECOND, strict=True))
        assert chrf(both, SYSTEM, word_order=words) == pytest.approx(theirs)


def test_settings_are_checked():
    with pytest.raises(InvalidParameter, match="`order` must be a whole number of at least 1"):
        chrf(["a"], ["a"], order=0)
    with pytest.raises(InvalidParameter, match="`beta` must be above 0"):
        chrf(["a"], ["a"], beta=0)
