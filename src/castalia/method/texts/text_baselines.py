"""What a network for text has to beat: guessing, counted n-grams, weighed words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from castalia.data.tokenizers import CharTokenizer, Tokenizer
from castalia.method.classic_model import ClassicModel

__all__ = ["LETTERS", "PlainTexts", "ngram_order", "informative_words", "word_model"]

LETTERS, PIECES = 6, 4  # lengths of n-grams of characters and of longer tokens
RARE = 1_000  # texts from which words seen once are left out
MOST_WORDS = 200_000  # words and pairs of words
_WORD = r"\w+|[^\w\s]"  # words, and signs one by one


def ngram_order(tokenizer: Tokenizer) -> int:
    """Return how many tokens the n-grams of a baseline have."""
    return LETTERS if isinstance(tokenizer, CharTokenizer) else PIECES


class PlainTexts:
    """Texts as they are: the model of scikit-learn reads them itself."""

    def fit(self, texts: Any) -> PlainTexts:
        """Return itself."""
        return self

    def encode(self, texts: Any) -> np.ndarray:
        """Return an array of texts."""
        return np.array([str(text) for text in texts], dtype=object)

    def state(self) -> dict[str, Any]:
        """Return nothing, for nothing is learnt."""
        return {}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> PlainTexts:
        """Return new ones."""
        return cls()


def word_model(key: str, texts: int) -> ClassicModel:
    """Return a classifier of texts by scikit-learn, not yet fitted."""
    if key == "guess":
        return ClassicModel(DummyClassifier(strategy="prior"), PlainTexts())
    words = TfidfVectorizer(
        token_pattern=_WORD,
        ngram_range=(1, 2),
        sublinear_tf=True,
        min_df=1 if texts < RARE else 2,
        max_features=MOST_WORDS,
    )
    return ClassicModel(
        make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000)), PlainTexts()
    )


def informative_words(model: Pipeline, classes: Sequence[Any], most: int = 10) -> list[list[str]]:
    """Return the words that speak most for each class, by the weights of the regression."""
    vectorizer, regression = model[0], model[-1]
    names, weights = vectorizer.get_feature_names_out(), regression.coef_
    words = np.array([all(part[0].isalnum() for part in name.split()) for name in names])
    if len(weights) == 1:  # of two classes only the second has weights
        weights = np.concatenate([-weights, weights])
    known = regression.classes_.tolist()
    found = []
    for label in classes:
        row = weights[known.index(label)] if label in known else np.zeros(len(names))
        best = np.argsort(np.where(words, -row, 0.0), kind="stable")[:most]
        found.append([str(names[i]) for i in best if row[i] > 0])
    return found
