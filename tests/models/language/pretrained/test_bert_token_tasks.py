"""Tags of words and answers in texts: alignment of pieces and words, answers and none."""

import numpy as np
import pytest
import torch

from castalia.data.text import PairAdapter, SpanAdapter, WordAdapter
from castalia.data.tokenizers import WordPieceTokenizer
from castalia.errors import InvalidData
from castalia.models.language import BERT, BERTQuestionAnswerer, BERTTagger
from castalia.objectives import SpanCrossEntropy, TagCrossEntropy
from castalia.objectives.tag_and_span_losses import span_places
from castalia.protocols import Batch
from castalia.testing.toys import questions, tagged

TINY = {"context": 32, "dim": 16, "depth": 1, "heads": 2, "dropout": 0.0, "random_state": 0}
PIECES = ["play", "##ing", "the", "cat", "##s", "who", "?"]


def reader(context: int = 16) -> PairAdapter:
    return PairAdapter(WordPieceTokenizer.from_pieces(PIECES), context=context)


def test_a_tag_belongs_to_the_first_piece_of_its_word():
    adapter = WordAdapter(reader())
    X = adapter.check([["the", "cats", "playing"]], "fit")
    ids, numbers = adapter.fit(X).rows(X, None).take(torch.tensor([0]))[0]
    tokens = [adapter.tokenizer.decode([i], special=True) for i in ids.tolist()[:7]]
    assert tokens == ["[CLS]", "the", "cat", "##s", "play", "##ing", "[SEP]"]
    assert numbers.tolist()[:8] == [0, 1, 2, 0, 3, 0, 0, 0]


def test_only_first_pieces_count_in_the_loss():
    x = torch.tensor([[[2, 5, 6, 7, 3, 0], [0, 1, 2, 0, 0, 0]]])
    y = torch.tensor([[1, 0, -1]])
    scores = torch.randn(1, 6, 3, generator=torch.Generator().manual_seed(0))
    loss = TagCrossEntropy().terms(lambda given: scores, Batch(x, y), "")["loss"]
    log_p = scores.log_softmax(dim=-1)[0]
    assert torch.isclose(loss, -(log_p[1, 1] + log_p[2, 0]) / 2)


def test_tags_told_by_endings_are_learnt_and_cut_words_get_the_commonest():
    X, y = tagged()
    model = BERTTagger(**TINY, epochs=15, lr=1e-2, batch_size=16).fit(X[:80], y[:80])
    assert model.score(X[80:], y[80:]) > 0.95
    long = [("kia",) * 40]
    said = model.predict(long)[0]
    assert len(said) == 40
    assert said[-1] == model.commonest_


def test_tags_start_from_a_pretrained_encoder():
    X, y = tagged(40)
    base = BERT(**TINY, epochs=1).fit([" ".join(words) for words in X])
    model = BERTTagger(**TINY, start=base, train="head", epochs=1).fit(X, y)
    assert torch.equal(model.module_.encoder.tokens.weight, base.module_.tokens.weight)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([["a", "b"]], [["X"]], "sentence 0 has 2 words and 1 tags"),
        ([["a"], []], [["X"], []], "at least one; got \\[\\] at place 1"),
        (["a b"], [["X"]], "a text must be a list of words"),
        ([["a"]], [["X"], ["Y"]], "same number of rows"),
    ],
    ids=["lengths", "empty", "string", "rows"],
)
def test_sentences_that_do_not_fit_are_refused(X, y, said):
    with pytest.raises(InvalidData, match=f"BERTTagger: .*{said}"):
        BERTTagger(**TINY).fit(X, y)


def test_an_answer_is_found_at_the_pieces_that_hold_its_characters():
    adapter = SpanAdapter(reader())
    X = adapter.check([("who ?", "the cats playing")], "fit")
    x = adapter.fit(X).rows(X, None).take(torch.tensor([0, 0, 0]))
    tokens = adapter.tokenizer.decode(x[0, 0].tolist(), special=True).split()[:10]
    assert tokens[:4] == ["[CLS]", "who", "?", "[SEP]"]
    # "cats" is characters 4 to 8, "the" 0 to 3, and there is none
    first, last = span_places(x, torch.tensor([[5, 8], [1, 3], [0, 0]]))
    assert first.tolist() == [5, 4, 0]
    assert last.tolist() == [6, 4, 0]


def test_the_loss_of_a_span_is_that_of_both_ends():
    adapter = SpanAdapter(reader())
    X = adapter.check([("who ?", "the cats playing")], "fit")
    x = adapter.fit(X).rows(X, None).take(torch.tensor([0]))
    scores = torch.randn(1, x.shape[2], 2, generator=torch.Generator().manual_seed(0))
    loss = SpanCrossEntropy().terms(lambda g: scores, Batch(x, torch.tensor([[5, 8]])), "")["loss"]
    log_p = scores.log_softmax(dim=1)[0]
    assert torch.isclose(loss, -(log_p[5, 0] + log_p[6, 1]) / 2)


@pytest.fixture(scope="module")
def answerer() -> BERTQuestionAnswerer:
    X, y = questions()
    return BERTQuestionAnswerer(**TINY, epochs=25, lr=1e-2, batch_size=16).fit(X[:160], y[:160])


def test_answers_are_found_word_by_word_and_none_is_said_where_there_is_none(answerer):
    X, y = questions()
    assert np.mean(answerer.predict(X[160:]) == y[160:]) > 0.9
    assert answerer.score(X[160:], y[160:]) > 0.9
    answered = answerer.decision_function(X[160:])
    assert answered[y[160:] != ""].mean() > answered[y[160:] == ""].mean() + 1


def test_a_higher_threshold_answers_less_often(answerer):
    X, _ = questions()
    shares = []
    for threshold in (-1e4, -5.0, 0.0, 5.0, 1e4):
        answerer.set_params(threshold=threshold)
        shares.append(np.mean(answerer.predict(X[160:]) != ""))
    answerer.set_params(threshold=0.0)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[-1] == 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Bob", "must stand in its text; got 'Bob' in row 0"),
        ((3, 2), "must stand in its text; got \\(3, 2\\) in row 0"),
        (5, "must stand in its text; got 5 in row 0"),
    ],
    ids=["words", "order", "number"],
)
def test_answers_outside_the_text_are_refused(answer, said):
    with pytest.raises(InvalidData, match=said):
        BERTQuestionAnswerer(**TINY).fit([("who", "Ann is here")], [answer])
