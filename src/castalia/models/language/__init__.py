"""Language models."""

from castalia.models.language.gpt import GPTLanguageModel
from castalia.models.language.ngram import NGramLanguageModel

__all__ = ["GPTLanguageModel", "NGramLanguageModel"]
