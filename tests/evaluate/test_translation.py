"""BLEU against sacreBLEU's published example, against sacreBLEU where it is there, and by hand."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sacrebleu

from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import bleu
from castalia.evaluate.translation import tokenize_13a

SYSTEM = ["The dog bit the man.", "It wasn't surprising.", "The man had just bitten him."]
FIRST = ["The dog bit the man.", "It was not unexpected.", "The man bit him first."]
SECOND = ["The dog had bit the man.", "No one was surprised.", "The man had bitten the dog."]


def test_the_example_of_sacrebleus_documentation():
    found = bleu(list(zip(FIRST, SECOND, strict=True)), SYSTEM)
    assert found.score == pytest.approx(48.53, abs=0.005)
    assert found.precisions == pytest.approx((82.4, 50.0, 45.5, 37.5), abs=0.05)
    assert found.brevity == pytest.approx(0.943, abs=5e-4)
    assert (found.length, found.reference_length) == (17, 18)


@pytest.mark.parametrize(
    "text, words",
    [
        ("Don't stop.", ["Don't", "stop", "."]),
        ("3.14, -2 and 1990-95", ["3.14", ",", "-2", "and", "1990", "-", "95"]),
        ("a&amp;b &lt;c&gt; &quot;d&quot;", ["a", "&", "b", "<", "c", ">", '"', "d", '"']),
        ("one-\ntwo\nthree", ["onetwo", "three"]),
        ("(x)/[y]{z}~`", ["(", "x", ")", "/", "[", "y", "]", "{", "z", "}", "~", "`"]),
        ("größer,.", ["größer", ",", "."]),
        ("", []),
    ],
)
def test_words_are_cut_as_mteval_does(text, words):
    assert tokenize_13a(text) == words


def by_hand(translations, references):
    """Corpus BLEU written out, without smoothing, in fractions."""
    found, whole = [0] * 4, [0] * 4
    c = r = 0
    for text, reference in zip(translations, references, strict=True):
        ours, theirs = text.split(), reference.split()
        c, r = c + len(ours), r + len(theirs)
        for n in range(1, 5):
            a = [tuple(ours[i : i + n]) for i in range(len(ours) - n + 1)]
            b = [tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)]
            found[n - 1] += sum(min(a.count(g), b.count(g)) for g in set(a))
            whole[n - 1] += len(a)
    mean = sum(math.log(Fraction(f, w)) for f, w in zip(found, whole, strict=True)) / 4
    return 100 * min(1.0, math.exp(1 - r / c)) * math.exp(mean)


def corpus(seed=0, n=40):
    rng = np.random.default_rng(seed)
    references = [" ".join(rng.choice(list("abcdef"), rng.integers(6, 14))) for _ in range(n)]
    noisy = [[w if rng.random() < 0.8 else "g" for w in text.split()] for text in references]
    return [" ".join(words[: rng.integers(5, 14)]) for words in noisy], references


def test_it_is_what_the_formula_says():
    for seed in range(3):
        assert bleu(*corpus(seed)[::-1]).score == pytest.approx(by_hand(*corpus(seed)))


def test_it_agrees_with_sacrebleu():
    cases = [corpus(0), (SYSTEM, FIRST), (["a b c", "x"], ["a b d e", "y"]), (["x"], ["y"])]
    for translations, references in cases:
        theirs = sacrebleu.corpus_bleu(translations, [references])
        assert bleu(references, translations).score == pytest.approx(theirs.score)


def test_a_perfect_translation_gets_a_hundred_and_word_order_matters():
    assert bleu(FIRST, FIRST).score == pytest.approx(100)
    jumbled = [" ".join(reversed(text.split())) for text in FIRST]
    assert bleu(FIRST, jumbled).score < 30


def test_zero_precisions_are_halved_again_and_again():
    found = bleu(["a b y c d"], ["a b c d x"])
    assert found.precisions == pytest.approx((80, 50, 100 / (2 * 3), 100 / (4 * 2)))
    assert bleu(["a b y c d"], ["a b c d x"], smoothing="none").score == 0
    assert bleu(["a b c d e"], ["x y z w v"]).score == 0


def test_capitals_matter_unless_told():
    assert bleu(["the dog bit it"], ["THE DOG BIT IT"]).score == 0
    assert bleu(["the dog bit it"], ["THE DOG BIT IT"], lowercase=True).score == pytest.approx(100)


@pytest.mark.parametrize(
    "translations, references, said",
    [
        (["a"], [], "as many references as translations; got 0 and 1"),
        ([], [], "at least one translation"),
        ("a b", ["a b"], "must be lists of texts; got a text"),
        (["a"], [[]], r"must be a text or a list of texts; got \[\] at 0"),
    ],
)
def test_texts_that_do_not_pair_are_refused(translations, references, said):
    with pytest.raises(InvalidData, match=said):
        bleu(references, translations)


def test_an_empty_translation_gets_nothing():
    assert bleu(["a b"], [""]).score == 0


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidParameter, match="`smoothing` must be"):
        bleu(["a"], ["a"], smoothing="add")
    with pytest.raises(InvalidParameter, match="`order` must be"):
        bleu(["a"], ["a"], order=0)
