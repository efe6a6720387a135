"""Language models by counting, and what is measured of them: rows LM of the course."""

import numpy as np
import pytest
import torch

from castalia import NGramLanguageModel
from castalia.data.tokenizers import WhitespaceTokenizer
from castalia.evaluate import perplexity
from castalia.testing import toy

CLOZE = [
    "the students opened their books",
    "the students opened their laptops",
    "the boy closed the door",
    "she opened the door with a key",
    "he read the books in the library",
    "the cat drank the milk",
]


def test_the_cross_entropy_of_a_text_is_torchs_summed_over_its_words():
    made = NGramLanguageModel(order=3).fit(CLOZE)
    words = ["the", "boy", "opened", "their", "door"]
    numbers = {word: i for i, word in enumerate(made.vocabulary_.words)}
    outputs = np.stack([made.next_distribution(words[:t]) for t in range(len(words) + 1)])
    logits = torch.log(torch.from_numpy(outputs))  # (T, V); softmax gives the outputs back
    target = torch.tensor([numbers[word] for word in [*words, "</s>"]])
    total = torch.nn.functional.cross_entropy(logits, target, reduction="sum")
    assert -made.score_samples([" ".join(words)])[0] == pytest.approx(float(total))
    mean = float(total) / len(target)
    assert made.perplexity([" ".join(words)]) == pytest.approx(np.exp(mean))


def test_the_right_ending_of_a_sentence_is_the_most_probable():
    made = NGramLanguageModel(order=3).fit(CLOZE)
    cases = {
        "the students opened their": ["books", "milk", "boy", "key"],
        "the cat drank the": ["milk", "students", "their", "with"],
        "she opened the door with a": ["key", "library", "cat", "opened"],
    }
    for start, endings in cases.items():
        assert made.rank(start, endings).argmax() == 0


def test_perplexity_falls_from_unigrams_to_bigrams_to_trigrams():
    # Words that depend on the two before them: the sum of the last two numbers, or chance.
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(200):
        text = rng.integers(7, size=2).tolist()
        while len(text) < 20:
            usual = rng.random() < 0.7
            text.append((text[-1] + 2 * text[-2]) % 7 if usual else int(rng.integers(7)) // 2)
        texts.append(text)
    one, two, three = (
        NGramLanguageModel(order=n, boundaries=False).fit(texts[:150]).perplexity(texts[150:])
        for n in (1, 2, 3)
    )
    assert one > two > three
    assert three < 0.6 * one


def test_perplexity_is_the_number_of_equally_likely_choices():
    for k in (2, 10, 64):
        texts = [np.random.default_rng(k).permutation(k) for _ in range(3)]
        made = NGramLanguageModel(order=1, boundaries=False, smoothing="likelihood").fit(texts)
        assert made.perplexity(texts) == pytest.approx(k)
        assert perplexity(np.full(5, 1 / k), kind="probability") == pytest.approx(k)


def test_interpolation_reaches_below_the_best_single_order_on_held_out_text():
    texts = toy("chain")[0]
    train, test = texts[:60], texts[200:]
    mixed = NGramLanguageModel(order=3, smoothing="linear").fit(train)
    single = [
        NGramLanguageModel(order=n, smoothing=smoothing).fit(train).perplexity(test)
        for n in (1, 2, 3)
        for smoothing in ("likelihood", "epsilon", "additive")
    ]
    assert mixed.perplexity(test) < min(single)
    assert mixed.weights_.sum() == pytest.approx(1)
    assert mixed.weights_[1] > 0  # the unigram is among them


def test_one_hot_vectors_of_different_words_are_orthogonal():
    made = WhitespaceTokenizer().fit(["a motel is not a hotel"])
    vectors = made.one_hot("a motel is not hotel")
    np.testing.assert_array_equal(vectors @ vectors.T, np.eye(5))
    motel, hotel = made.one_hot("motel hotel")
    assert motel @ hotel == 0
