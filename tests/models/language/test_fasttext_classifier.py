"""Bags of n-grams: weights as scikit-learn's, hashing, the convex optimum, bad input."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.testing import assert_close

from castalia.data.text import NGramAdapter
from castalia.data.text.ngram_adapter import BagRows
from castalia.errors import InvalidParameter
from castalia.models.language import FastTextClassifier
from castalia.nets.language import NGramBag
from castalia.testing import toy

TEXTS, LABELS = toy("reviews")


def fitted(texts, **settings):
    adapter = NGramAdapter(**settings)
    return adapter.fit(adapter.check(texts, "fit"))


def test_the_weights_of_words_are_scikit_learn_s():
    texts = np.array(["A good good film!", "a bad film .", "good, or bad?"], dtype=object)
    theirs = TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True)
    wanted = theirs.fit_transform(texts).toarray()
    found = fitted(texts, characters=None).matrix(texts).toarray()
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=1e-12)
    np.testing.assert_allclose(np.sort(found, axis=1), np.sort(wanted, axis=1), atol=1e-12)


def test_words_and_their_pieces_have_length_one_each():
    texts = np.array(["so good", "so bad"], dtype=object)
    lengths = (fitted(texts).matrix(texts).toarray() ** 2).sum(axis=1)
    np.testing.assert_allclose(lengths, 2)


def test_pieces_let_an_inflected_word_be_known():
    whole, pieces = (fitted(["walked home"], characters=c) for c in (None, (3, 6)))
    new = np.array(["walking"], dtype=object)
    assert whole.matrix(new).nnz == 0
    assert pieces.matrix(new).nnz > 0


def test_fewer_buckets_let_n_grams_share_one_and_rare_ones_can_be_left_out():
    assert fitted(TEXTS, buckets=50).vocabulary <= 100
    assert fitted(["a b", "a c"], words=1, characters=None, min_count=2).vocabulary == 1
    assert fitted(["a b", "a c"], words=1, characters=None).vocabulary == 3


def test_rows_are_filled_up_with_weights_of_zero():
    ids, weights = BagRows(csr_matrix([[1.0, 0, 2], [0, 0, 0], [0, 3, 0]])).take(
        torch.tensor([0, 1, 2])
    )
    assert ids.tolist() == [[0, 2], [0, 0], [1, 0]]
    assert weights.tolist() == [[1, 2], [0, 0], [3, 0]]


@pytest.mark.parametrize("dim", [None, 4])
def test_the_network_is_an_embedding_bag_and_a_linear_layer(dim):
    torch.manual_seed(0)
    net = NGramBag(11, 3, dim=dim)
    nn.init.normal_(net.vectors)
    nn.init.normal_(net.bias)
    ids, weights = torch.randint(11, (5, 7)), torch.rand(5, 7)
    found = nn.functional.embedding_bag(ids, net.vectors, per_sample_weights=weights, mode="sum")
    wanted = (found if dim is None else found @ net.head.weight.T) + net.bias
    assert_close(net((ids, weights)), wanted)


def test_training_ends_near_the_optimum_of_logistic_regression():
    """Two vectors of weights with penalty l2 are one with l2/2."""
    texts, y = TEXTS[:120], LABELS[:120]
    model = FastTextClassifier(l2=0.5, epochs=80, random_state=0).fit(texts, y)
    X = model.adapter_.matrix(np.array(texts, dtype=object))
    exact = LogisticRegression(C=4.0, tol=1e-8, max_iter=1000).fit(X, y)
    new = TEXTS[120:160]
    theirs = exact.predict_proba(model.adapter_.matrix(np.array(new, dtype=object)))
    np.testing.assert_allclose(model.predict_proba(new), theirs, atol=0.01)


def test_words_never_seen_get_the_answer_of_an_empty_bag():
    model = FastTextClassifier(random_state=0).fit(TEXTS[:60], LABELS[:60])
    found = model.predict_proba(["zzz qqq", TEXTS[0]])
    prior = torch.softmax(model.module_.bias, dim=0).detach().numpy()
    np.testing.assert_allclose(found[0], prior, atol=1e-6)
    assert abs(found[1] - prior).max() > 0.05


def test_labels_may_be_several_at_once_and_vectors_may_have_a_width():
    both = np.stack([LABELS[:60], 1 - LABELS[:60]], axis=1)
    model = FastTextClassifier(dim=8, random_state=0).fit(TEXTS[:60], both)
    assert model.predict(TEXTS[:5]).shape == (5, 2)
    assert model.module_.vectors.shape[1] == 8


@pytest.mark.parametrize("pair", [(3,), (6, 3), 4, (0, 2)])
def test_pieces_must_be_a_pair_of_sizes(pair):
    with pytest.raises(InvalidParameter, match="`characters` must be a pair of sizes"):
        FastTextClassifier(characters=pair).fit(TEXTS[:20], LABELS[:20])
