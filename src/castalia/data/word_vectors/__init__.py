"""Vectors of words: questions to them, and the files of word2vec."""

from castalia.data.word_vectors.files import read_word_vectors, write_word_vectors
from castalia.data.word_vectors.judging import read_analogies, read_similarities
from castalia.data.word_vectors.queries import Projection, WordQueries, WordVectors

__all__ = [
    "Projection",
    "WordQueries",
    "WordVectors",
    "read_analogies",
    "read_similarities",
    "read_word_vectors",
    "write_word_vectors",
]
