"""n-gram models: hand counts, sums of one, an independent Kneser–Ney, drawing, bad input."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError

import castalia
from castalia import NGramLanguageModel
from castalia.data.tokenizers import BPETokenizer, CharTokenizer, WhitespaceTokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language.ngrams.interpolation_weights import shares_of, weights_of
from castalia.models.language.ngrams.ngram_language_model import SMOOTHINGS
from castalia.testing import toy

TEXTS = [
    "the dog bit the man",
    "the man saw the dog",
    "a dog saw a man",
    "the the the the",
    "dog",
    "a b c d e f g",
] * 2
CONTEXTS = ["", "the", "the dog", "zz zz", "the zz", "g", "f g", "man saw the dog bit"]


def model(smoothing, order=3, **settings):
    settings = {"validation": 0.3, **settings}
    return NGramLanguageModel(smoothing=smoothing, order=order, **settings)


def every_text(words, length):
    return [" ".join(text) for text in itertools.product(words, repeat=length)]


# ---- sums ----


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("boundaries", [True, False])
def test_every_context_sums_to_one(smoothing, order, boundaries):
    made = model(smoothing, order, boundaries=boundaries).fit(TEXTS)
    for context in CONTEXTS:
        p = made.next_distribution(context)
        assert (p >= 0).all()
        assert p.sum() == pytest.approx(1, abs=1e-12)
        assert not p[~made.vocabulary_.outcomes].any()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("boundaries", [True, False])
def test_scores_of_words_are_the_distribution_after_their_context(smoothing, boundaries):
    made = model(smoothing, boundaries=boundaries).fit(TEXTS)
    words = made.vocabulary_.words[:-2]
    for context in CONTEXTS:
        texts = [f"{context} {word}".strip() for word in words]
        last = [logs[-1 - boundaries] for logs in made.token_log_probabilities(texts)]
        np.testing.assert_allclose(np.exp(last), made.next_distribution(context)[: len(words)])


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_probabilities_of_all_texts_of_one_length_sum_to_one(smoothing):
    made = model(smoothing, boundaries=False).fit(["a b a", "b b a a", "a", "b"])
    words = [w for w, o in zip(made.vocabulary_.words, made.vocabulary_.outcomes, strict=True) if o]
    total = np.exp(made.score_samples(every_text(words, 4))).sum()
    assert total == pytest.approx(1)


def test_a_text_is_as_probable_as_the_product_of_its_words():
    made = model("kneser-ney").fit(TEXTS)
    words, product = ["the", "man", "bit", "a", "dog"], 1.0
    index = {word: i for i, word in enumerate(made.vocabulary_.words)}
    for t, word in enumerate([*words, "</s>"]):
        product *= made.next_distribution(words[:t])[index[word]]
    assert np.exp(made.score_samples([" ".join(words)])[0]) == pytest.approx(product)


# ---- each smoothing by hand ----


def p_of(made, context, word):
    return made.next_distribution(context)[made.vocabulary_.words.index(word)]


def test_maximum_likelihood_is_a_ratio_of_counts():
    made = model("likelihood", 2).fit(["a b a c", "a b"])
    assert p_of(made, "a", "b") == pytest.approx(2 / 3)
    assert p_of(made, "a", "c") == pytest.approx(1 / 3)
    assert p_of(made, "a b", "</s>") == pytest.approx(1 / 2)
    assert p_of(made, "", "a") == 1
    assert p_of(made, "a", "a") == 0
    assert made.perplexity(["a a"]) == np.inf
    assert made.n_ngrams_.tolist() == [5, 6]


def test_counts_equal_a_dictionary_of_tuples():
    rng = np.random.default_rng(0)
    texts = [rng.integers(5, size=rng.integers(0, 9)) for _ in range(60)]
    made = NGramLanguageModel(order=4, smoothing="likelihood").fit(texts)
    for n in range(1, 5):
        counts = Counter()
        for text in texts:
            full = ["<s>", *text.tolist(), "</s>"]
            counts.update(tuple(full[i : i + n]) for i in range(len(full) - n + 1))
        assert made.n_ngrams_[n - 1] == len(counts)
        for gram, count in counts.items():
            if "<s>" in gram[1:] or n == 1:
                continue
            whole = sum(c for other, c in counts.items() if other[:-1] == gram[:-1])
            context = [w for w in gram[:-1] if w != "<s>"]
            word = made.vocabulary_.end if gram[-1] == "</s>" else gram[-1]
            if gram[0] == "<s>" or n == 4:
                assert made.next_distribution(context)[word] == pytest.approx(count / whole)


def test_epsilon_is_a_floor_that_is_divided_out():
    made = model("epsilon", 2, epsilon=0.01).fit(["a b a c", "a b"])
    outcomes = 5  # <unk> a b c </s>
    whole = 1 + 0.01 * (outcomes - 2)
    assert p_of(made, "a", "b") == pytest.approx(2 / 3 / whole)
    assert p_of(made, "a", "a") == pytest.approx(0.01 / whole)
    assert np.isfinite(made.perplexity(["zz a zz"]))


def test_adding_k_is_the_formula_and_none_of_it_is_maximum_likelihood():
    made = model("additive", 2, alpha=0.5).fit(["a b a c", "a b"])
    assert p_of(made, "a", "b") == pytest.approx((2 + 0.5) / (3 + 0.5 * 5))
    assert p_of(made, "a", "a") == pytest.approx(0.5 / (3 + 0.5 * 5))
    assert p_of(made, "zz", "a") == pytest.approx(1 / 5)
    tiny, plain = (model(s, 2, alpha=1e-12).fit(TEXTS) for s in ("additive", "likelihood"))
    seen = "the dog"
    np.testing.assert_allclose(
        tiny.next_distribution(seen), plain.next_distribution(seen), atol=1e-9
    )


def test_backoff_uses_the_longest_context_that_was_seen():
    made = model("stupid", 3).fit(["please open your book", "shut your mind", "your mind"])
    after = made.next_distribution("please open your")
    shorter = made.next_distribution("shut your mind now your")  # "now your" was not seen
    word = made.vocabulary_.words.index
    # "open your mind" was not seen, so p(mind | open your) backs off to p(mind | your)
    ratio = after[word("mind")] / shorter[word("mind")]
    assert ratio == pytest.approx(after[word("shut")] / shorter[word("shut")])
    assert after[word("book")] > after[word("mind")] > after[word("shut")] > 0
    norm = 1 + 0.4 * (1 - shorter[word("book")])
    assert after[word("book")] == pytest.approx(1 / norm, rel=0.2)


def test_katz_discounts_what_was_seen_and_shares_the_rest_as_the_shorter_context_does():
    made = model("katz", 2).fit(TEXTS)
    one = model("katz", 1).fit(TEXTS)
    p, below = made.next_distribution("the"), one.next_distribution()
    counts = dict.fromkeys(made.vocabulary_.words, 0)
    for text in TEXTS:
        for a, b in itertools.pairwise([*text.split(), "</s>"]):
            counts[b] += a == "the"
    counts = np.array(list(counts.values()))
    seen = counts > 0
    assert (p[seen] < counts[seen] / counts.sum()).all()
    unseen = ~seen & (below > 0)
    np.testing.assert_allclose(p[unseen] / below[unseen], (p[unseen] / below[unseen])[0])


def test_katz_gives_every_word_a_chance_where_all_counts_are_large():
    rng = np.random.default_rng(0)
    texts = ["a b"] * 50 + [" ".join(rng.choice(list("cdefgh"), 5)) for _ in range(60)]
    made = model("katz", 2).fit(texts)
    assert (made.next_distribution("a")[made.vocabulary_.outcomes] > 0).all()


def reference_kneser_ney(texts, order):
    """Interpolated Kneser–Ney with one discount an order, by dictionaries of tuples."""
    full = [("<s>", *text.split(), "</s>") for text in texts]
    raw = [Counter(g for t in full for g in zip(*(t[i:] for i in range(n)), strict=False))
           for n in range(1, order + 1)]  # fmt: skip
    adjusted = []
    for n in range(1, order):
        seen = Counter(gram[1:] for gram in raw[n])
        adjusted.append({g: c if g[0] == "<s>" else seen[g] for g, c in raw[n - 1].items()})
    adjusted.append(dict(raw[-1]))
    adjusted[0].pop(("<s>",), None)
    words = sorted({w for t in full for w in t} - {"<s>"}) + ["<unk>"]

    def discount(counts):
        n1, n2 = (sum(c == i for c in counts.values()) for i in (1, 2))
        return n1 / (n1 + 2 * n2) if n1 and n2 else 0.5

    def p(word, context):
        n = len(context) + 1
        counts = adjusted[n - 1]
        after = {g: c for g, c in counts.items() if g[:-1] == context}
        lower = 1 / len(words) if n == 1 else p(word, context[1:])
        if not after:
            return lower
        d, whole = discount(counts), sum(after.values())
        own = max(after.get((*context, word), 0) - d, 0) / whole
        return own + d * len(after) / whole * lower

    return p, words


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_kneser_ney_equals_an_independent_one(order):
    p, words = reference_kneser_ney(TEXTS, order)
    made = model("kneser-ney", order, modified=False).fit(TEXTS)
    for context in ("", "the", "the man saw", "saw zz", "c d e"):
        full = ("<s>", *context.split())[-(order - 1) :] if order > 1 else ()
        for word in words:
            assert p_of(made, context, word) == pytest.approx(p(word, full))


def test_modified_discounts_are_those_of_chen_and_goodman():
    from castalia.models.language.ngrams.smoothing_methods import _discounts

    counts = np.repeat([1, 2, 3, 4, 9], [50, 20, 10, 5, 3])
    y = 50 / (50 + 2 * 20)
    wanted = [0, 1 - 2 * y * 20 / 50, 2 - 3 * y * 10 / 20, 3 - 4 * y * 5 / 10]
    np.testing.assert_allclose(_discounts(counts, modified=True), wanted)
    np.testing.assert_allclose(_discounts(counts, modified=False), [0, y, y, y])


# ---- interpolation ----


def test_weights_and_shares_are_two_ways_to_say_the_same():
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(weights_of(shares_of(weights)), weights)
    np.testing.assert_allclose(shares_of(weights), [2 / 3, 0.5, 0.4])


def test_given_weights_mix_the_orders_down_to_the_unigram():
    texts = ["a b a c", "a b"]
    made = model("linear", 2, weights=(0.1, 0.3, 0.6)).fit(texts)
    wanted = 0.1 / 5 + 0.3 * 2 / 8 + 0.6 * 2 / 3  # uniform, unigram, bigram
    assert p_of(made, "a", "b") == pytest.approx(wanted)


def chain_parts():
    texts = toy("chain")[0]
    return texts[:200], texts[200:]


def test_fitted_weights_beat_every_single_order_on_unseen_text():
    train, test = chain_parts()
    train = train[:40]
    made = model("linear", 3).fit(train)
    assert made.weights_.sum() == pytest.approx(1)
    assert (made.weights_ >= 0).all()
    single = [model("likelihood", n).fit(train).perplexity(test) for n in (1, 2, 3)]
    floored = [model("epsilon", n).fit(train).perplexity(test) for n in (1, 2, 3)]
    assert made.perplexity(test) < min(*single, *floored)


def test_fitted_weights_are_the_best_for_the_held_out_texts():
    texts = toy("chain")[0][:60]
    made = model("linear", 2, validation=0.5).fit(texts)
    held_out, rest = texts[1::2], texts[::2]

    def held(weights):
        return model("linear", 2, weights=weights).fit(rest).score(held_out)

    best = held(made.weights_)
    for move in itertools.permutations([0.02, -0.02, 0.0]):
        moved = np.clip(made.weights_ + move, 0, None)
        assert held(moved / moved.sum()) <= best + 1e-6


# ---- perplexity ----


def test_perplexity_counts_the_end_and_not_the_beginning():
    made = model("kneser-ney", 2).fit(TEXTS)
    logs = made.token_log_probabilities(["the dog", "a"])
    assert [len(row) for row in logs] == [3, 2]
    assert made.perplexity(["the dog", "a"]) == pytest.approx(np.exp(-np.concatenate(logs).mean()))
    assert castalia.evaluate.perplexity(logs) == pytest.approx(made.perplexity(["the dog", "a"]))
    assert made.score(["the dog", "a"]) == pytest.approx(-np.log(made.perplexity(["the dog", "a"])))
    bare = model("kneser-ney", 2, boundaries=False).fit(TEXTS)
    assert [len(row) for row in bare.token_log_probabilities(["the dog", "a", ""])] == [2, 1, 0]


def test_longer_contexts_help_as_the_notes_report():
    train, test = chain_parts()
    one, two, three = (model("kneser-ney", n).fit(train).perplexity(test) for n in (1, 2, 3))
    assert one > 1.8 * two
    assert three < 1.1 * two


def test_random_digits_have_perplexity_ten():
    digits = np.random.default_rng(0).integers(10, size=(50, 200))
    made = NGramLanguageModel(order=1, smoothing="additive", boundaries=False).fit(list(digits))
    assert made.perplexity(list(digits[:5])) == pytest.approx(10, rel=0.01)


def test_ten_thousand_words_have_a_hundred_million_bigrams():
    made = NGramLanguageModel(order=3, boundaries=False).fit([np.arange(10_000)])
    assert made.n_possible_ == [10**4, 10**8, 10**12]
    assert made.n_ngrams_.tolist() == [10_000, 9_999, 9_998]  # of which a text shows hardly any


def test_of_the_possible_n_grams_the_ends_of_texts_count_too():
    made = NGramLanguageModel(order=3).fit(["a b", "b a b"])  # and <unk> and </s>
    assert made.n_possible_ == [4, 16, 64]
    assert made.n_ngrams_.tolist() == [4, 5, 4]  # with <s>


# ---- what texts may be ----


def test_strings_words_and_numbers_give_the_same_model():
    words = [text.split() for text in TEXTS]
    made = model("kneser-ney").fit(TEXTS)
    index = {word: i for i, word in enumerate(made.vocabulary_.words)}
    numbers = [np.array([index[word] for word in text]) for text in words]
    others = [
        model("kneser-ney").fit(words).score_samples(words),
        model("kneser-ney", tokenizer=WhitespaceTokenizer()).fit(TEXTS).score_samples(TEXTS),
        model("kneser-ney").fit(numbers).score_samples([torch.tensor(n) for n in numbers]),
    ]
    for scores in others:
        np.testing.assert_allclose(scores, made.score_samples(TEXTS))


def test_characters_and_pieces_are_modelled_through_a_tokenizer():
    made = model("kneser-ney", 4, tokenizer=CharTokenizer()).fit(TEXTS)
    assert not hasattr(made.tokenizer, "backend_")
    assert isinstance(made.generate("the d", 8, random_state=0), str)
    assert made.predict_next("the do") == ["g"]
    pieces = BPETokenizer(vocabulary_size=40).fit(TEXTS)
    made = model("kneser-ney", 3, tokenizer=pieces).fit(TEXTS)
    assert made.tokenizer_ is pieces
    assert np.isfinite(made.perplexity(["the zebra"]))


def test_rare_and_unseen_words_are_unknown():
    made = model("kneser-ney", 2, min_count=3).fit(["a a a b b", "a b c"])
    assert made.vocabulary_.words == ["<unk>", "a", "b", "<s>", "</s>"]
    np.testing.assert_array_equal(made.score_samples(["a c"]), made.score_samples(["a never"]))
    assert made.generate("what is", 4, temperature=0).startswith("what is")
    assert made.generate(["what", "is"], 4, temperature=0)[:2] == ["what", "is"]


# ---- continuing ----


def test_generated_ngrams_were_all_seen():
    text = "to be or not to be that is the question whether it is nobler"
    made = model("likelihood", 4, tokenizer=CharTokenizer(), boundaries=False).fit([text])
    drawn = made.generate("to be", 200, random_state=0)
    grams = {text[i : i + 4] for i in range(len(text) - 3)}
    reached = drawn[: drawn.find("nobler") + 6] if "nobler" in drawn else drawn  # the text's end
    assert {reached[i : i + 4] for i in range(len(reached) - 3)} <= grams
    assert len(drawn) == 205


def test_drawing_follows_the_seed_the_temperature_and_the_limit():
    made = model("kneser-ney", 2, random_state=0).fit(toy("chain")[0])
    one, same, other = (made.generate("a", 30, random_state=s) for s in (1, 1, 2))
    assert one == same != other
    assert made.generate("a", 5, temperature=0) == "a b c d e f"
    assert made.generate("a", 5, top_k=1, random_state=3) == "a b c d e f"
    assert made.sample(3, random_state=0) == made.sample(3, random_state=0)
    assert len(set(made.sample(20))) > 10


def test_drawn_words_have_the_models_frequencies():
    made = model("kneser-ney", 2, boundaries=False).fit(["a b a c a b a b"])
    drawn = made.generate("a", 1500, random_state=0).split()
    after = Counter(b for a, b in itertools.pairwise(drawn) if a == "a")
    p = made.next_distribution("a")
    known = p.sum() - p[0]  # without <unk>
    share = after["b"] / after.total()
    assert share == pytest.approx(p_of(made, "a", "b") / known, abs=0.05)


def test_endings_are_ranked_by_probability():
    made = model("kneser-ney", 3).fit(TEXTS)
    ranked = made.rank("the dog bit the", ["man", "g", "dog bit"])
    assert ranked.argmax() == 0
    whole = made.token_log_probabilities(["the dog bit the man"])[0]
    assert ranked[0] == pytest.approx(whole[4])
    assert made.rank(["the", "dog"], [["bit"], ["f"]]).argmax() == 0


# ---- bad input ----


@pytest.mark.parametrize(
    "X, said",
    [
        ("one text", "must be a list of texts; got one text. Put it in a list"),
        ([], "at least one text; got none"),
        (3, "must be a list of texts; got 3"),
        ([""], "at least one word; got none"),
        (["a", float("nan")], "got nan at place 1"),
        (["a", None], "got None at place 1"),
        (["a b", ["a"]], "all texts must be of one kind"),
        ([[1.5, 2.0]], r"got \[1.5, 2.0\] at place 0"),
        (np.arange(3), "got one array of numbers. Put it in a list"),
        ([np.array([-1, 2])], "at least 0 and below 3, as in fit; got -1"),
    ],
)
def test_texts_that_cannot_be_read_are_refused(X, said):
    with pytest.raises(InvalidData, match=said):
        NGramLanguageModel(boundaries=False).fit(X)


def test_one_word_is_enough():
    for smoothing in SMOOTHINGS:
        made = model(smoothing, 5, validation=0.5).fit(["hello", "hello"])
        assert made.predict_next() == ["hello"]
        assert made.generate("", 5, temperature=0) == "hello"


def test_numbers_that_were_not_there_and_prompts_of_another_kind_are_refused():
    made = NGramLanguageModel(order=2).fit([np.array([0, 1, 2])])
    with pytest.raises(InvalidData, match="below 3, as in fit; got 3"):
        made.score([np.array([3])])
    with pytest.raises(InvalidData, match="it was fitted on numbers"):
        made.score(["a"])
    with pytest.raises(InvalidData, match="the prompt must be a list of them, got 'abc'"):
        made.generate("abc")
    assert made.generate([0, 1], 1, temperature=0) == [0, 1, 2]


@pytest.mark.parametrize(
    "setting, said",
    [
        ({"order": 0}, "`order` must be a whole number at least 1; got 0"),
        ({"order": 2.5}, "got 2.5"),
        ({"smoothing": "knesser-ney"}, "Did you mean `kneser-ney`"),
        ({"alpha": 0}, "`alpha` must be a number above 0; got 0"),
        ({"alpha": float("nan")}, "got nan"),
        ({"tokenizer": "bp"}, "must be a tokenizer of castalia.data.tokenizers, None, or"),
        ({"weights": (0.5, 0.4)}, "sum to one, or None; got"),
    ],
)
def test_settings_that_cannot_be_are_refused(setting, said):
    with pytest.raises(InvalidParameter, match=said):
        NGramLanguageModel(**setting).fit(TEXTS)


def test_other_bad_settings_are_named():
    with pytest.raises(InvalidParameter, match="`weights` must be 4 numbers"):
        model("linear", 3, weights=(0.5, 0.5)).fit(TEXTS)
    with pytest.raises(InvalidData, match="at least 10 texts with validation=0.1; got 1"):
        model("linear", 2, validation=0.1).fit(["a b"])
    with pytest.raises(InvalidParameter, match="`sample_weight` must be None"):
        model("katz").fit(TEXTS, sample_weight=np.ones(len(TEXTS)))
    with pytest.raises(NotFittedError):
        model("katz").score(TEXTS)
    with pytest.raises(InvalidData, match="at least one word to be scored"):
        model("katz", boundaries=False).fit(TEXTS).score([""])


@pytest.mark.parametrize(
    "name, value",
    [("temperature", float("nan")), ("temperature", -1), ("tokens", -1), ("top_k", 0)]
    + [("temperature", float("inf")), ("top_p", 0), ("repetition_penalty", 0), ("stop", 5)],
)
def test_drawing_refuses_settings_that_cannot_be(name, value):
    made = model("katz").fit(TEXTS)
    with pytest.raises(InvalidParameter, match=f"`{name}` must be .*; got {value}"):
        made.generate("the", **{name: value})


def test_a_nucleus_a_penalty_and_stop_words_shape_the_text():
    made = model("likelihood", 1, boundaries=False).fit(["a a a a a a b b b c"])
    wide = set(made.generate("", 200, random_state=0).split())
    narrow = set(made.generate("", 200, top_p=0.7, random_state=0).split())
    assert (wide, narrow) == ({"a", "b", "c"}, {"a", "b"})
    assert made.generate("", 3, temperature=0, repetition_penalty=9).split() == ["a", "b", "c"]
    assert made.generate("c", 200, stop=["b", "c"], random_state=0)[1:].strip("a ") in ("b", "c")


def test_a_tokenizer_may_be_named_and_the_prompt_is_kept():
    made = model("kneser-ney", 4, tokenizer="characters").fit(TEXTS)
    assert made.tokenizer_.tokens("the") == ["t", "h", "e"]
    assert made.generate("the ΩΩ ", 5, random_state=0).startswith("the ΩΩ ")
    with pytest.raises(InvalidParameter, match="Did you mean `characters`"):
        model("katz", tokenizer="character").fit(TEXTS)


@pytest.mark.parametrize("X", [{"a b": 1}, {"a b"}, pd.DataFrame({"text": ["a b"]})])
def test_texts_in_no_order_and_whole_tables_are_refused(X):
    with pytest.raises(InvalidData, match="must be a list of texts; got a (dict|set|DataFrame)"):
        model("katz").fit(X)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_saved_model_answers_the_same(smoothing, tmp_path):
    made = model(smoothing, tokenizer=CharTokenizer()).fit(TEXTS)
    castalia.save(made, tmp_path / "model")
    loaded = castalia.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_samples(TEXTS), made.score_samples(TEXTS))
    assert loaded.generate("the", 9, random_state=0) == made.generate("the", 9, random_state=0)


def test_a_file_stands_for_the_text_that_it_holds(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text("a b a b a c")
    made = NGramLanguageModel(order=2).fit(file)
    assert made.perplexity([file]) == made.perplexity(["a b a b a c"])
