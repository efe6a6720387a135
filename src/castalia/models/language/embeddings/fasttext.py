"""fastText: word2vec whose words are made of their character n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from castalia.base import Interval
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language.embeddings.predicting_vectors import PredictingVectors
from castalia.models.language.embeddings.subwords import SubwordRows, make_bags
from castalia.models.language.embeddings.vector_rows import start_vectors
from castalia.models.language.embeddings.word_descent import InputRows

__all__ = ["FastText"]


@dataclass(kw_only=True, eq=False, repr=False)
class FastText(PredictingVectors):
    """Word vectors made of vectors of character n-grams, so that unseen words have one, too.

    The vector of a word is the mean over those of the n-grams of ``<word>`` and one of its own;
    it is trained to predict neighbours as in `Word2Vec`. Better there for rare words and for
    languages with many endings; several times slower, and words spelt alike come out alike
    even where they mean something else.

    Parameters
    ----------
    shortest, longest
        Lengths of the n-grams, in characters.
    buckets
        Rows that n-grams are hashed into; fewer save memory and let more n-grams share one.
    dim, min_count, tokenizer, model, output, negative, power, window, dynamic, subsample
        As for ``Word2Vec``.
    epochs, batch_size, lr
        As for ``Word2Vec``.

    Attributes
    ----------
    vectors_ : ndarray of float32, (V, D)
        Vectors of the words.
    parts_ : ndarray of float32, (V + buckets, D)
        Vectors of whole words, then of the n-grams by their hash.
    output_vectors_ : ndarray of float32, (V, D)
        Output vectors; (V - 1, D), those of the tree's nodes, with ``"hierarchical"``.
    words_, counts_, losses_, tokenizer_, history_, n_iter_, stopped_, settings_, run_
        As for ``Word2Vec``.

    Shapes
    ------
    X: N texts, as strings or lists of words; ``transform`` gives (N, D), the mean of each text.

    Notes
    -----
    The paper sums the vectors of n-grams and the authors' program takes their mean, as here: the
    direction is the same. n-grams are hashed by CRC-32 instead of FNV, so files of that program's
    own kind cannot be read. Memory: (2 V + ``buckets``) D numbers.

    References
    ----------
    2017, Bojanowski, Grave, Joulin, Mikolov, Enriching word vectors with subword information,
    arXiv 1607.04606.

    See Also
    --------
    Word2Vec : without n-grams, faster.

    Examples
    --------
    >>> texts = ["he walked and jumped", "she walks and jumps", "walking or jumping"] * 30
    >>> model = FastText(dim=8, min_count=1, buckets=500, epochs=2, random_state=0).fit(texts)
    >>> model.most_similar("walker", n=1)[0][0].startswith("walk")
    True
    """

    shortest: Annotated[int, Interval(1, whole=True)] = 3
    longest: Annotated[int, Interval(1, whole=True)] = 6
    buckets: Annotated[int, Interval(1, whole=True)] = 200_000
    lr: Annotated[float, Interval(0, closed="neither")] = 0.05

    def _inputs(self, random: torch.Generator) -> SubwordRows:
        if self.longest < self.shortest:
            raise InvalidParameter(
                f"FastText: `longest` must be at least `shortest`, {self.shortest}; got "
                f"{self.longest}."
            )
        own = len(self.words_)
        bags = make_bags(
            self.words_, self.shortest, self.longest, self.buckets, own=own, known=True
        )
        moved = {name: value.to(random.device) for name, value in vars(bags).items()}
        table = start_vectors(own + self.buckets, self.dim, random)
        return SubwordRows(table, replace(bags, **moved))

    def _finish(self, inputs: InputRows) -> None:
        self.parts_ = inputs.table.cpu().numpy()

    def _spelt(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return which words have n-grams, (n,), and the means of their vectors, (n, D)."""
        own = len(self.words_)
        bags = make_bags(words, self.shortest, self.longest, self.buckets, own=own, known=False)
        table = torch.from_numpy(self.parts_)
        made = embedding_bag(bags.rows, table, bags.start, mode="mean")
        return (bags.size > 0).numpy(), made.numpy()

    def _vector(self, word: str) -> np.ndarray:
        known, made = self._known([word])
        if not known[0]:
            raise InvalidData(
                f"FastText: an unknown word must have an n-gram of at least {self.shortest} "
                f"characters, its ends counted; got {word!r}."
            )
        return made[0]

    def _known(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        known, made = super()._known(words)
        if known.all():
            return known, made
        spelt, vectors = self._spelt([words[i] for i in np.flatnonzero(~known).tolist()])
        made = made.copy()
        made[~known] = vectors
        known[~known] = spelt
        return known, made
