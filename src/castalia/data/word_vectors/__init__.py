"""Vectors of words: questions to them, and the files of word2vec."""

from castalia.data.word_vectors.word_judgements import read_analogies, read_similarities
from castalia.data.word_vectors.word_queries import Projection, WordQueries, WordVectors
from castalia.data.word_vectors.word_vector_files import read_word_vectors, write_word_vectors

__all__ = [
    "Projection",
    "WordQueries",
    "WordVectors",
    "read_analogies",
    "read_similarities",
    "read_word_vectors",
    "write_word_vectors",
]
