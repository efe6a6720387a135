"""Language models."""

from castalia.models.language.ngram import NGramLanguageModel

__all__ = ["NGramLanguageModel"]
