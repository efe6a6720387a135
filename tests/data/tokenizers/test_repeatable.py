"""Training on the same texts gives the same tokenizer, and costs one training."""

import pytest
from tokenizers import trainers

from castalia.data.tokenizers import SentencePieceTokenizer, UnigramTokenizer, WordPieceTokenizer

TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "pack my box with five dozen liquor jugs",
    "how vexingly quick daft zebras jump",
]


@pytest.mark.parametrize(
    "make",
    [
        lambda: UnigramTokenizer(vocabulary_size=60),
        lambda: SentencePieceTokenizer(vocabulary_size=330, split=False),
        lambda: WordPieceTokenizer(vocabulary_size=60),
    ],
    ids=["unigram", "sentencepiece", "wordpiece"],
)
def test_the_same_texts_give_the_same_tokenizer(make):
    made = [make().fit(TEXTS) for _ in range(8)]
    assert len({one.fingerprint for one in made}) == 1
    assert len({tuple(one.vocabulary.items()) for one in made}) == 1


def test_word_pieces_are_trained_once(monkeypatch):
    counted, trainer = [], trainers.WordPieceTrainer

    def counting(**settings):
        counted.append(settings["special_tokens"])
        return trainer(**settings)

    monkeypatch.setattr(trainers, "WordPieceTrainer", counting)
    made = WordPieceTokenizer(vocabulary_size=60).fit(["ab abc", "cab!", "x"])
    assert len(counted) == 1
    # Of the letters, those that continue a word; x and ! never do.
    assert counted[0][len(made.special) :] == ["##a", "##b", "##c"]
