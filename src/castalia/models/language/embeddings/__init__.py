"""Word vectors: word2vec, fastText and GloVe."""

__all__: list[str] = []
