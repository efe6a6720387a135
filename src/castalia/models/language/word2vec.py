"""word2vec: vectors from which words predict their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from castalia.base import Interval, OneOf
from castalia.models.language.word_heads import Full, Head, Negative, Tree
from castalia.models.language.word_training import Schedule, WordRows, train_vectors
from castalia.models.language.word_vectors import Texts, WordVectorEstimator
from castalia.nn import FullSoftmax, HierarchicalSoftmax, NegativeSampling
from castalia.utils.devices import resolve_device
from castalia.utils.seeds import generator, seed_from

__all__ = ["OUTPUTS", "Word2Vec", "make_head", "start_vectors"]

OUTPUTS = ("negative", "hierarchical", "softmax")


@dataclass(kw_only=True, eq=False, repr=False)
class Word2Vec(WordVectorEstimator):
    """Word vectors from which a word predicts its neighbours, or they predict it.

    Skip-gram maximises (1/T) sum_t sum_j log p(w_(t+j) | w_t) over the words in a window, CBOW
    log p(w_t | mean of the window); words used alike get vectors alike. The best choice from a few
    million words on; on less text, or with many inflections, `FastText` says more, and `GloVe` is
    the one for counts that are there already.

    Parameters
    ----------
    dim
        Size D of the vectors.
    min_count
        Words seen more rarely are left out before windows are formed.
    tokenizer
        Cuts texts; one that is not fitted is fitted on them. None cuts at white space.
    model
        ``"skip-gram"``, or ``"cbow"``, which is a few times faster and a little worse on rare
        words.
    output
        How p is modelled: ``"negative"`` tells words from noise, ``"hierarchical"`` goes down
        Huffman's tree, ``"softmax"`` is the full sum, for small vocabularies.
    negative
        Noise words for each word, of ``"negative"``; more help where text is little.
    power
        Exponent of the counts in the distribution of noise.
    window
        Farthest distance of words that predict each other.
    dynamic
        Whether each window reaches R words, R drawn from 1 … ``window``, so that near words count
        more; words at distance d are then seen with probability (window - d + 1) / window.
    subsample
        Frequency above which words are dropped by chance, the more frequent the more often; 0 drops
        none.
    epochs
        Passes over the texts.
    batch_size
        Centre words of one step, at most: of a short text, so few that a pass has 64 steps.
    lr
        Learning rate of a single pair; falls linearly to nearly zero.

    Attributes
    ----------
    words_ : list of str
        The V words, most frequent first.
    counts_ : ndarray of shape (V,)
        How often each was seen.
    vectors_ : ndarray of float32, (V, D)
        Input vectors v: those to use.
    output_vectors_ : ndarray of float32, (V, D)
        Output vectors v'; (V - 1, D), those of the tree's nodes, with ``"hierarchical"``.
    losses_ : ndarray of shape (epochs,)
        Mean loss of a predicted word, from a sixteenth of the batches.
    tokenizer_ : Tokenizer or None
        The tokenizer in use.

    Shapes
    ------
    X: N texts, as strings or lists of words; ``transform`` gives (N, D), the mean of each text.

    Notes
    -----
    A step of B centre words costs O(B (2 window + 64) D) in matrix products, besides reading
    and writing some 3 B rows. Departs from the authors' program: blocks of 32 neighbouring centres
    come in random order and share 32 noise words, weighted so that the expected gradient is the
    same; a batch is computed from the same tables, and rows that it names very often take shorter
    steps. The projection is linear: there is no sigmoid behind it.

    References
    ----------
    2013, Mikolov, Chen, Corrado, Dean, Efficient estimation of word representations in vector
    space, arXiv 1301.3781. 2013, Mikolov et al., Distributed representations of words and phrases
    and their compositionality, arXiv 1310.4546. 2016, Ji et al., Parallelizing word2vec in shared
    and distributed memory, arXiv 1604.04661.

    See Also
    --------
    FastText : also for words never seen.
    GloVe : from counts of co-occurrence.
    castalia.data.word_vectors.write_word_vectors : files that other programs read.

    Examples
    --------
    >>> texts = ["red green blue red blue green", "dog cat cow cat dog cow"] * 40
    >>> model = Word2Vec(dim=8, min_count=1, subsample=0, epochs=10, lr=0.1, random_state=0)
    >>> model.fit(texts).similarity("red", "blue") > 0.8 > model.similarity("red", "cow")
    True
    >>> sorted(word for word, _ in model.most_similar("dog", n=2))
    ['cat', 'cow']
    """

    model: Annotated[str, OneOf("skip-gram", "cbow")] = "skip-gram"
    output: Annotated[str, OneOf(*OUTPUTS)] = "negative"
    negative: Annotated[int, Interval(1, whole=True)] = 5
    power: Annotated[float, Interval(0, 1)] = 0.75
    window: Annotated[int, Interval(1, whole=True)] = 5
    dynamic: Annotated[bool, OneOf(True, False)] = True
    subsample: Annotated[float, Interval(0, 1)] = 1e-3
    epochs: Annotated[int, Interval(1, whole=True)] = 5
    batch_size: Annotated[int, Interval(1, whole=True)] = 4096
    lr: Annotated[float, Interval(0, closed="neither")] = 0.025

    def _learn(self, texts: Texts) -> np.ndarray:
        device = resolve_device(self.device)
        random = generator(seed_from(self.random_state), device=device)
        head = make_head(
            self.output, self.counts_, self.dim, self.negative, self.power, device=device
        )
        inputs = WordRows(start_vectors(len(self.words_), self.dim, random))
        self.losses_ = train_vectors(
            inputs,
            head,
            torch.as_tensor(texts.ids, device=device),
            torch.as_tensor(texts.text, device=device),
            torch.as_tensor(self.counts_, device=device),
            Schedule(
                self.window, self.dynamic, self.subsample, self.epochs, self.batch_size, self.lr
            ),
            skip_gram=self.model == "skip-gram",
            generator=random,
        )
        self.output_vectors_ = head.table.cpu().numpy()
        return inputs.table.cpu().numpy()


def make_head(
    output: str,
    counts: np.ndarray,
    dim: int,
    negative: int,
    power: float,
    *,
    device: torch.device,
) -> Head:
    """Return the loss of a name, on a device."""
    if output == "negative":
        sampling = NegativeSampling(counts, dim, negative=negative, power=power)
        return Negative(sampling.to(device))
    if output == "hierarchical":
        return Tree(HierarchicalSoftmax(counts, dim).to(device))
    return Full(FullSoftmax(len(counts), dim).to(device))


def start_vectors(n_words: int, dim: int, random: torch.Generator) -> Tensor:
    """Return vectors to start from: numbers between ±1 / (2 D)."""
    drawn = torch.rand(n_words, dim, generator=random, device=random.device)
    return (drawn - 0.5) / dim
