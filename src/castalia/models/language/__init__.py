"""Language models and word vectors."""

from castalia.models.language.fasttext import FastText
from castalia.models.language.glove import GloVe
from castalia.models.language.ngram import NGramLanguageModel
from castalia.models.language.word2vec import Word2Vec

__all__ = ["FastText", "GloVe", "NGramLanguageModel", "Word2Vec"]
