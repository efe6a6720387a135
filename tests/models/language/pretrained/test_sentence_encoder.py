"""Vectors of texts: those of transformers from a folder, search, and what is learnt."""

import json

import numpy as np
import pytest
import torch
from tests.nets.language import peers
from torch.testing import assert_close

import castalia
from castalia.data.tokenizers import WordPunctTokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.evaluate import mean_reciprocal_rank, recall_at
from castalia.models.language import BERTClassifier, SentenceEncoder
from castalia.nn.adaptation.lora import LoRA
from castalia.testing.toys import paraphrases

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TINY = {"context": 8, "dim": 16, "depth": 1, "heads": 2, "dropout": 0.0, "lr": 5e-3}
PAIRS, _ = paraphrases(80)
TEXTS = ["a b c", "m n", "h"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A DistilBERT of transformers with a tokenizer of the toy's words."""
    path = tmp_path_factory.mktemp("distilbert")
    model = peers.distilbert("DistilBertModel")
    model.save_pretrained(path)
    tokenizer = WordPunctTokenizer(special=SPECIAL).fit([" ".join("abcdefghijklmnopqrstuvwx")])
    tokenizer.save(path)
    return path, model, tokenizer


@pytest.fixture(scope="module")
def model():
    return SentenceEncoder(**TINY, epochs=15, batch_size=20, random_state=0).fit(PAIRS)


def theirs(folder, texts, pool):
    """Return the vectors by transformers alone."""
    _, model, tokenizer = folder
    found = []
    for text in texts:
        ids = torch.tensor([tokenizer.encode(text, boundaries=True)])
        h = model(ids).last_hidden_state[0]
        v = h.mean(dim=0) if pool == "mean" else h[0]
        found.append((v / v.norm()).detach().numpy())
    return np.stack(found)


@pytest.mark.parametrize("pool, mode", [("mean", "mean_tokens"), ("first", "cls_token")])
def test_vectors_of_a_folder_are_those_of_transformers(folder, pool, mode, tmp_path):
    path, _, _ = folder
    for file in path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "1_Pooling").mkdir()
    said = {"word_embedding_dimension": 16, f"pooling_mode_{mode}": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(said))
    ours = SentenceEncoder.from_pretrained(tmp_path)
    np.testing.assert_allclose(ours.embed(TEXTS), theirs(folder, TEXTS, pool), atol=1e-5)
    castalia.save(ours, tmp_path / "saved")
    np.testing.assert_array_equal(castalia.load(tmp_path / "saved").embed(TEXTS), ours.embed(TEXTS))


def test_it_goes_on_from_a_folder_with_all_of_it_or_with_lora(folder):
    path, _, _ = folder
    kept = SentenceEncoder(start=path, context=8, epochs=1, lr=1e-30).fit(PAIRS)
    np.testing.assert_allclose(kept.embed(TEXTS), theirs(folder, TEXTS, "mean"), atol=1e-5)
    settings = {"context": 8, "epochs": 3, "lr": 5e-3, "dropout": 0.0, "random_state": 0}
    tuned = SentenceEncoder(start=path, adapt=LoRA(rank=2), **settings).fit(PAIRS)
    before = kept.module_.encoder.state_dict()
    after = tuned.module_.encoder.state_dict()
    assert all(after[name].equal(before[name]) for name in before)
    assert tuned.score(PAIRS) > kept.score(PAIRS)


def test_a_classifier_begins_with_distilbert(folder):
    path, model, _ = folder
    first = [pair[0] for pair in PAIRS]
    y = [int("a" in text.split()) for text in first]
    made = BERTClassifier(start=path, context=8, epochs=1, lr=1e-30).fit(first, y)
    ids = torch.tensor([[2, 5, 6, 7, 3], [2, 9, 8, 5, 3]])
    vectors = made.module_.features(ids)
    assert_close(vectors, model(ids).last_hidden_state, atol=1e-5, rtol=1e-5)
    learnt = BERTClassifier(start=path, context=8, epochs=5, lr=5e-3, random_state=0).fit(first, y)
    assert learnt.history_[-1]["loss"] < made.history_[-1]["loss"]


def test_pairs_that_were_not_seen_are_found(model):
    unseen = paraphrases(160)[0][80:]
    first, second = ([pair[k] for pair in unseen] for k in (0, 1))
    cosines = model.similarity(first, second)
    truth = np.arange(len(unseen))
    assert model.score(unseen) > 0.5
    assert recall_at(truth, cosines, k=1) == pytest.approx(model.score(unseen))
    assert mean_reciprocal_rank(truth, cosines) > 0.6


def test_search_is_the_order_of_the_cosines(model):
    documents = [second for _, second in PAIRS]
    hits = model.index(documents).search([first for first, _ in PAIRS[:5]], k=4)
    cosines = model.similarity([first for first, _ in PAIRS[:5]], documents)
    assert hits.documents.shape == hits.scores.shape == (5, 4)
    np.testing.assert_array_equal(
        hits.documents, np.argsort(-cosines, axis=1, kind="stable")[:, :4]
    )
    np.testing.assert_allclose(hits.scores, -np.sort(-cosines, axis=1)[:, :4], rtol=1e-6)
    assert model.search(TEXTS, k=1000).documents.shape == (3, 80)


def test_vectors_have_length_one_and_padding_changes_nothing(model):
    together, alone = model.embed(TEXTS), np.concatenate([model.embed([t]) for t in TEXTS])
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(together, alone, atol=1e-6)
    pairs = model.embed(PAIRS[:3])
    assert pairs.shape == (3, 2, 16)
    np.testing.assert_allclose(pairs[:, 1], model.embed([b for _, b in PAIRS[:3]]), atol=1e-6)
    np.testing.assert_allclose(np.diag(model.similarity(TEXTS)), 1, rtol=1e-5)


def test_what_it_cannot_do_is_refused(model, tmp_path):
    with pytest.raises(InvalidData, match="X must hold pairs of texts"):
        SentenceEncoder(**TINY).fit(TEXTS)
    with pytest.raises(InvalidData, match="score: X must be pairs"):
        model.score(TEXTS)
    with pytest.raises(InvalidData, match="index: documents must be texts"):
        model.index(PAIRS)
    with pytest.raises(InvalidParameter, match="call `index` with them first"):
        SentenceEncoder(**TINY, epochs=1).fit(PAIRS[:20]).search(TEXTS)
    with pytest.raises(InvalidParameter, match="`k` must be"):
        model.search(TEXTS, k=0)
    (tmp_path / "1_Pooling").mkdir()
    said = {"pooling_mode_max_tokens": True}
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(said))
    with pytest.raises(InvalidParameter, match="got pooling_mode_max_tokens"):
        SentenceEncoder.from_pretrained(tmp_path)
