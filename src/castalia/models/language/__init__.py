"""Language models, and classifiers of texts."""

from castalia.models.language.classifiers import AttentionClassifier, TransformerClassifier
from castalia.models.language.gpt import GPTLanguageModel
from castalia.models.language.ngram import NGramLanguageModel
from castalia.models.language.recurrent import RNNLanguageModel
from castalia.models.language.window import WindowLanguageModel

__all__ = [
    "AttentionClassifier",
    "GPTLanguageModel",
    "NGramLanguageModel",
    "RNNLanguageModel",
    "TransformerClassifier",
    "WindowLanguageModel",
]
