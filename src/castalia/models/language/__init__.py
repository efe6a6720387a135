"""Language models and word vectors."""

from castalia.models.language.classifiers import AttentionClassifier, TransformerClassifier
from castalia.models.language.fasttext import FastText
from castalia.models.language.glove import GloVe
from castalia.models.language.gpt import GPTLanguageModel
from castalia.models.language.ngram import NGramLanguageModel
from castalia.models.language.recurrent import RNNLanguageModel
from castalia.models.language.window import WindowLanguageModel
from castalia.models.language.word2vec import Word2Vec

__all__ = [
    "AttentionClassifier",
    "FastText",
    "GPTLanguageModel",
    "GloVe",
    "NGramLanguageModel",
    "RNNLanguageModel",
    "TransformerClassifier",
    "WindowLanguageModel",
    "Word2Vec",
]
