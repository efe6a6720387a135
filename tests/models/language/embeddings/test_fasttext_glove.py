"""FastText: n-grams and words never seen. GloVe: counts, reconstruction, planted neighbours."""

from zlib import crc32

import numpy as np
import pytest
import torch

from castalia import FastText, GloVe
from castalia.data.tokenizers import character_ngrams
from castalia.data.word_vectors.cooccurrence import count_cooccurrences
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language.embeddings.subwords import SubwordRows, make_bags
from castalia.testing import toy

STEMS = {"walk": "legs road path", "sing": "voice song choir", "cook": "pan stove meal"}
ENDINGS = ("", "s", "ed", "ing")
FAST = {"dim": 16, "min_count": 1, "buckets": 1000, "subsample": 0, "random_state": 0}


def inflected(n=400, seed=0):
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        stem = list(STEMS)[random.integers(3)]
        around = STEMS[stem].split()
        random.shuffle(around)
        texts.append([around[0], stem + ENDINGS[random.integers(4)], *around[1:]])
    return texts


@pytest.fixture(scope="module")
def fast():
    return FastText(**FAST, lr=0.1, epochs=5).fit(inflected())


# ---- FastText ----


def rows_of(word, shortest, longest):
    bags = make_bags([word], shortest, longest, 10**6, own=1, known=True)
    return sorted(bags.of(torch.tensor([0]))[0].tolist())


def test_where_is_made_of_the_trigrams_of_the_notes_and_a_row_of_its_own():
    grams = ["<wh", "whe", "her", "ere", "re>"]
    assert rows_of("where", 3, 3) == sorted([0, *(1 + crc32(g.encode()) % 10**6 for g in grams)])


def test_ngrams_run_from_three_to_six_characters():
    assert (FastText().shortest, FastText().longest) == (3, 6)
    assert len(rows_of("where", 3, 6)) == 1 + 5 + 4 + 3 + 2


def test_the_vector_of_a_word_is_the_mean_of_its_own_and_its_ngrams(fast):
    bags = make_bags(["walks"], 3, 6, 1000, own=len(fast.words_), known=False)
    parts = [fast.words_.index("walks"), *bags.rows.tolist()]
    assert len(parts) == 1 + len(character_ngrams("walks", (3, 6)))
    np.testing.assert_allclose(fast.embed("walks"), fast.parts_[parts].mean(axis=0), atol=1e-6)


def test_a_word_never_seen_is_near_its_inflections(fast):
    for stem in STEMS:
        assert f"{stem}er" not in fast.words_
        near = [word for word, _ in fast.most_similar(f"{stem}er", n=4)]
        assert sum(word.startswith(stem) for word in near) >= 3
    assert fast.similarity("walker", "walking") > fast.similarity("walker", "singing")


def test_unseen_words_count_in_the_mean_of_a_text(fast):
    both = fast.transform(["walker walks"])[0]
    np.testing.assert_allclose(both, fast.embed(["walker", "walks"]).mean(axis=0), atol=1e-6)


def test_a_word_without_ngrams_is_refused_unless_it_was_seen():
    made = FastText(**FAST, shortest=5, epochs=1).fit([["to", "walk", "walking"]])
    with pytest.raises(InvalidData, match="n-gram of at least 5 characters.*got 'of'"):
        made.embed("of")
    assert not made.transform(["of"]).any()
    assert made.transform(["to"]).any()
    with pytest.raises(InvalidParameter, match="`longest` must be at least `shortest`, 4; got 3"):
        FastText(**FAST, shortest=4, longest=3).fit(inflected(20))


def test_every_part_of_a_word_moves_as_the_word_does():
    bags = make_bags(["walk", "walks"], 3, 3, 50, own=2, known=True)
    rows = SubwordRows(torch.zeros(52, 3), bags)
    moves = torch.tensor([[1.0, 2, 3], [1, 2, 3], [0, 0, 0]])
    rows.add(torch.tensor([0, 0, 1]), moves, 0.5, torch.ones(52))
    np.testing.assert_allclose(rows.gather(torch.tensor([0])), [[1.0, 2, 3]])
    touched = rows.table.any(dim=1)
    assert touched.sum() == len(set(bags.of(torch.tensor([0]))[0].tolist()))


# ---- GloVe ----


def squared_error(made, texts, window):
    index = {word: i for i, word in enumerate(made.words_)}
    ids = [[index[word] for word in text.split()] for text in texts]
    x = count_cooccurrences(ids, len(index), window=window, by_distance=True).tocoo()
    w, c = made.word_vectors_[x.row], made.context_vectors_[x.col]
    s = (w[:, :-1] * c[:, :-1]).sum(axis=1) + w[:, -1] + c[:, -1]
    weight = np.minimum(1, (x.data / made.x_max) ** made.alpha)
    return weight, s - np.log(x.data)


def test_glove_reconstructs_the_logarithms_of_the_counts():
    texts = toy("topics")[0][:60]
    made = GloVe(
        dim=24, min_count=1, window=4, x_max=5, epochs=150, batch_size=256, lr=0.2, random_state=0
    ).fit(texts)
    weight, error = squared_error(made, texts, window=4)
    assert np.sqrt((weight * error**2).sum() / weight.sum()) < 0.1
    assert made.losses_[-1] < 0.01 * made.losses_[0]


def test_the_loss_of_glove_is_that_of_its_formula():
    texts = toy("topics")[0][:60]
    made = GloVe(dim=5, min_count=1, window=4, epochs=1, lr=1e-12, random_state=0).fit(texts)
    weight, error = squared_error(made, texts, window=4)
    assert made.losses_[0] == pytest.approx((weight * error**2).mean(), rel=1e-5)


def test_glove_puts_words_of_one_topic_together():
    made = GloVe(dim=8, epochs=20, batch_size=64, random_state=0).fit(toy("topics")[0])
    near = {word: [n for n, _ in made.most_similar(word, n=3)] for word in made.words_}
    right = np.mean([n[0] == word[0] for word, found in near.items() for n in found])
    assert right > 0.9


def test_glove_needs_words_that_stand_together():
    with pytest.raises(InvalidData, match="must stand within one window"):
        GloVe(min_count=1).fit(["a", "b"])
