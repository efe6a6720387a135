"""Word2Vec: windows, gradients against autograd, optima, planted structure, bad input."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from torch.testing import assert_close

from castalia import Word2Vec
from castalia.data.tokenizers import WhitespaceTokenizer
from castalia.data.word_vectors import read_word_vectors, write_word_vectors
from castalia.errors import InvalidData, InvalidParameter
from castalia.lab.word_analogies_experiment import questions, write_sentences
from castalia.models.language.embeddings.context_windows import keep_probability, make_windows
from castalia.models.language.embeddings.word_heads import Full, Negative, Tree
from castalia.nn import FullSoftmax, HierarchicalSoftmax, NegativeSampling
from castalia.testing import toy

QUICK = {"dim": 8, "min_count": 1, "subsample": 0, "epochs": 3, "lr": 0.1, "random_state": 0}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def windows_of(sizes, *, window=3, dynamic=True, width=4, keep=None, seed=0):
    ids = torch.arange(sum(sizes))
    text = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    keep = torch.ones(len(ids), dtype=torch.float64) if keep is None else keep
    return make_windows(
        ids, text, keep, window=window, dynamic=dynamic, width=width, generator=seeded(seed)
    )


def listed(windows):
    """Every (centre, neighbour) of all blocks; here words are their own places."""
    blocks = torch.arange(len(windows))
    around, pairs = windows.around(blocks), windows.pairs(blocks)
    b, i, j = pairs.nonzero(as_tuple=True)
    return list(zip(around[b, i + windows.window].tolist(), around[b, j].tolist(), strict=True))


# ---- windows ----


@pytest.mark.parametrize("width", [1, 4, 5, 32])
def test_fixed_windows_hold_all_neighbours_inside_texts(width):
    sizes, starts = [6, 1, 9, 2], [0, 6, 7, 16]
    brute = [
        (start + i, start + j)
        for size, start in zip(sizes, starts, strict=True)
        for i in range(size)
        for j in range(size)
        if 0 < abs(i - j) <= 3
    ]
    assert sorted(listed(windows_of(sizes, dynamic=False, width=width))) == brute


def test_words_at_distance_d_are_in_a_random_window_of_c_with_probability_c_less_d_plus_1_over_c():
    n, reach = 40_000, 5
    pairs = listed(windows_of([n], window=reach, width=32))
    found = Counter(b - a for a, b in pairs)
    for d in range(1, reach + 1):
        wanted = (reach - d + 1) / reach
        assert found[d] / n == pytest.approx(wanted, abs=0.01)
        assert found[-d] / n == pytest.approx(wanted, abs=0.01)


def test_a_random_window_reaches_as_far_to_either_side():
    pairs = listed(windows_of([500], window=4))
    reach = {sign: Counter(a for a, b in pairs if sign * (b - a) > 0) for sign in (-1, 1)}
    inner = range(4, 496)
    assert [reach[-1][i] for i in inner] == [reach[1][i] for i in inner]
    assert {reach[1][i] for i in inner} == {1, 2, 3, 4}


@pytest.mark.parametrize("dynamic, sizes", [(True, {2, 4, 6, 8}), (False, {8})])
def test_the_model_trains_on_windows_of_the_kind_asked_for(monkeypatch, dynamic, sizes):
    seen = []

    def spied(*args, **settings):
        seen.append(make_windows(*args, **settings))
        return seen[-1]

    monkeypatch.setattr(
        f"{make_windows.__module__.rpartition('.')[0]}.word_descent.make_windows", spied
    )
    text = " ".join(f"w{i}" for i in range(300))  # every word once: a centre is a place
    Word2Vec(window=4, dynamic=dynamic, **QUICK | {"epochs": 1}).fit([text])
    neighbours = Counter(Counter(centre for centre, _ in listed(seen[0])).values())
    assert {size for size, count in neighbours.items() if count > 20} == sizes


def test_frequent_words_are_dropped_by_the_rule_before_windows_are_formed():
    counts = torch.tensor([900_000, 99_000, 1_000])
    keep = keep_probability(counts, 1e-3)
    ratio = 1e-3 / (counts / counts.sum())
    assert_close(keep, (ratio.sqrt() + ratio).clamp(max=1).double(), rtol=1e-5, atol=0)
    assert keep[2] == 1
    assert (keep_probability(counts, 0) == 1).all()
    none = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    assert (0, 2) in listed(windows_of([4], window=1, dynamic=False, keep=none))


# ---- gradients ----


def by_autograd(head, h, words, pairs, drawn):
    """The sum over pairs of the module's own loss, one pair at a time."""
    total = 0
    for b, i, j in pairs.nonzero().tolist():
        hidden, target = h[b, i][None], words[b, j][None]
        if drawn is None:
            total = total + head.loss(hidden, target).sum() * pairs[b, i, j]
        else:
            s, n = (head.loss.weight[k] @ h[b, i] for k in (words[b, j], drawn[b]))
            noise = torch.nn.functional.softplus(n).mean() * head.loss.negative
            total = total + torch.nn.functional.softplus(-s) + noise
    return total


def heads():
    counts = [5, 9, 2, 2, 7, 1, 3]
    return {
        "negative": Negative(NegativeSampling(counts, 4, negative=5), shared=6),
        "hierarchical": Tree(HierarchicalSoftmax(counts, 4)),
        "softmax": Full(FullSoftmax(7, 4)),
    }


@pytest.mark.parametrize("name", ["negative", "hierarchical", "softmax"])
def test_steps_are_the_gradients_of_the_modules_losses(name):
    head = heads()[name]
    torch.manual_seed(0)
    torch.nn.init.normal_(head.loss.weight)
    head.loss.double()
    h = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    words, pairs = torch.randint(7, (2, 5)), torch.randint(2, (2, 3, 5)).double()
    drawn = head.draw(2, seeded())
    loss = by_autograd(head, h, words, pairs, drawn)
    wanted_h, wanted = torch.autograd.grad(loss, (h, head.loss.weight))
    step = head.step(h.detach(), words, pairs, drawn, True)
    assert_close(step.loss, loss.detach())
    assert_close(step.hidden, -wanted_h)
    assert_close(torch.zeros_like(wanted).index_add_(0, step.places, step.rows), -wanted)


def test_the_optimum_of_negative_sampling_is_pmi_less_log_k():
    # With one-hot inputs the rows of the head are free: logistic regression, and convex.
    seen = torch.tensor([[4.0, 1, 2], [1, 8, 3], [2, 3, 1]]).double()  # how often pairs occur
    counts, k = seen.sum(dim=0), 3
    head = Negative(NegativeSampling(counts.numpy(), 3, negative=k, power=1.0))
    head.loss.double()
    noise = torch.repeat_interleave(torch.arange(3), counts.long())[None]  # exactly its share
    h, words = torch.eye(3).double()[None], torch.arange(3)[None]
    for _ in range(3000):
        step = head.step(h, words, seen[None], noise, False)
        head.table.index_add_(0, step.places, step.rows, alpha=0.05)
    joint = seen / seen.sum()
    pmi = torch.log(joint / (joint.sum(1, keepdim=True) * joint.sum(0)))
    assert_close(h[0] @ head.table.T, pmi - math.log(k), atol=1e-6, rtol=0)


def test_how_often_rows_move_is_what_a_pair_moves_altogether():
    p = torch.full((7,), 1 / 7, dtype=torch.float64)
    for name, head in heads().items():
        wanted = head.trials
        if name == "hierarchical":
            wanted = float(head.loss.turns.abs().sum(dim=1).mean())
        assert float(head.expected(p).sum()) == pytest.approx(wanted)


# ---- what is learnt ----


def synonyms(n=600, seed=0):
    """Sentences in which a word of each pair stands for the same thing as the other."""
    random = np.random.default_rng(seed)
    names = {"a": ("big", "large"), "b": ("small", "little"), "c": ("fast", "quick")}
    texts = []
    for _ in range(n):
        kind = "abc"[random.integers(3)]
        around = [f"{kind}{i}" for i in random.integers(6, size=6)]
        around[3] = names[kind][random.integers(2)]
        texts.append(around)
    return texts, names.values()


@pytest.mark.parametrize("model", ["cbow", "skip-gram"])
@pytest.mark.parametrize("output", ["negative", "hierarchical", "softmax"])
def test_synonyms_are_nearest_neighbours_among_their_like(model, output):
    texts, pairs = synonyms()
    made = Word2Vec(**QUICK, model=model, output=output, window=4).fit(texts)
    likes = [word for pair in pairs for word in pair]
    for one, other in pairs:
        near = [word for word, _ in made.most_similar(one, n=23) if word in likes]
        assert near[0] == other


@pytest.mark.parametrize("output", ["hierarchical", "softmax"])
def test_cbow_predicts_better_than_the_frequencies_of_words(output):
    texts, _ = synonyms()
    made = Word2Vec(**QUICK, model="cbow", output=output, window=4, dynamic=False).fit(texts)
    p = made.counts_ / made.counts_.sum()
    assert made.losses_[-1] < -(p * np.log(p)).sum() - 0.5


def test_skip_gram_answers_the_analogies_of_a_relational_corpus():
    made = Word2Vec(
        dim=20, window=4, dynamic=False, subsample=0, lr=0.05, epochs=3, random_state=0
    ).fit(write_sentences(3_000))
    assert made.evaluate_analogies(questions())["total"] > 0.9


def test_vectors_learnt_without_labels_help_where_labels_are_few():
    texts, _ = toy("topics")
    label = np.array([Counter(word[0] for word in t.split()).most_common(1)[0][0] for t in texts])
    few = np.concatenate([np.flatnonzero(label == topic)[:1] for topic in "abcd"])
    rest = np.setdiff1d(np.arange(len(texts)), few)
    made = Word2Vec(**{**QUICK, "epochs": 5}).fit(texts)

    def accuracy(rows):
        found = LogisticRegression(C=100, max_iter=2000).fit(rows[few], label[few])
        return found.score(rows[rest], label[rest])

    counted = CountVectorizer(token_pattern=r"\S+").fit_transform(texts).toarray()
    assert accuracy(made.transform(texts)) > accuracy(counted) + 0.1


# ---- manners ----


def test_the_number_of_threads_does_not_change_the_vectors():
    texts, _ = toy("topics")
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(Word2Vec(**QUICK, batch_size=512).fit(texts).vectors_)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("lr", [0.1, 5.0])
def test_a_tiny_vocabulary_in_large_batches_does_not_diverge(lr):
    texts = ["a b c d " * 3000]
    made = Word2Vec(**{**QUICK, "lr": lr, "epochs": 2}).fit(texts)
    assert np.abs(made.vectors_).max() < 20


def test_a_text_is_the_mean_of_its_known_words():
    made = Word2Vec(**QUICK).fit(["a b c a b", "c c b a"])
    found = made.transform(["a unheard c c", "unheard", ""])
    a, c = made.embed("a"), made.embed("c")
    np.testing.assert_allclose(found[0], (a + 2 * c) / 3, rtol=1e-5)
    assert not found[1:].any()


def test_rare_words_are_left_out_and_frequent_ones_come_first():
    made = Word2Vec(**{**QUICK, "min_count": 2}).fit(["b b b a a rare c c"])
    assert made.words_ == ["b", "a", "c"]
    assert made.counts_.tolist() == [3, 2, 2]


def test_texts_words_and_a_tokenizer_give_the_same_vectors():
    texts = ["the dog bit the man", "the man saw the dog"] * 5
    one = Word2Vec(**QUICK).fit(texts)
    two = Word2Vec(**QUICK).fit([text.split() for text in texts])
    three = Word2Vec(**QUICK, tokenizer=WhitespaceTokenizer()).fit(texts)
    np.testing.assert_array_equal(one.vectors_, two.vectors_)
    assert sorted(three.words_) == sorted(one.words_)


def test_a_fitted_model_writes_files_of_word2vec(tmp_path):
    made = Word2Vec(**QUICK).fit(["a b c a b", "c c b a"])
    write_word_vectors(tmp_path / "v.bin", made)
    found = read_word_vectors(tmp_path / "v.bin")
    assert found.words_ == made.words_
    np.testing.assert_array_equal(found.vectors_, made.vectors_)


def test_bad_input_is_named():
    with pytest.raises(NotFittedError):
        Word2Vec().most_similar("a")
    with pytest.raises(InvalidData, match="at least two words must occur `min_count` times, 5"):
        Word2Vec().fit(["a a a a a a b"])
    with pytest.raises(InvalidData, match="Word2Vec: X must be a list of texts; got one text"):
        Word2Vec().fit("a b c")
    with pytest.raises(InvalidData, match="a string or a list of words; got whole numbers"):
        Word2Vec().fit([[1, 2, 3]])
    with pytest.raises(InvalidParameter, match="`sample_weight` must be None"):
        Word2Vec(min_count=1).fit(["a b"], sample_weight=[1.0])
    made = Word2Vec(**QUICK).fit(["a b c"])
    with pytest.raises(InvalidData, match="known words side by side"):
        made.score(["a", "x y"])


def test_a_file_stands_for_the_text_that_it_holds(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text("a b a b a c " * 20)
    settings = {"dim": 4, "epochs": 1, "min_count": 1, "random_state": 0}
    made = [Word2Vec(**settings).fit(texts).vectors_ for texts in (file, [file.read_text()])]
    assert (made[0] == made[1]).all()
