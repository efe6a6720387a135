"""word2vec: vectors from which words predict their neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from castalia.models.language.embeddings.predicting_vectors import PredictingVectors
from castalia.models.language.embeddings.vector_rows import start_vectors
from castalia.models.language.embeddings.word_descent import WordRows

__all__ = ["Word2Vec"]


@dataclass(kw_only=True, eq=False, repr=False)
class Word2Vec(PredictingVectors):
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
        How p is modelled: ``"negative"`` separates words from noise, ``"hierarchical"`` goes down
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
    training
        ``Training`` with callbacks, a run folder, checkpoints or progress; a run that was killed
        is resumed bit for bit. Its other settings have no meaning here and are refused.

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
    history_, n_iter_, stopped_, settings_, run_
        Record of the epochs: loss, rate and seconds of each; how many; why it ended early; device
        and seed; the run's folder.

    Shapes
    ------
    X: N texts, as strings or lists of words; ``transform`` gives (N, D), the mean of each text.

    Notes
    -----
    A step of B centre words costs O(B (2 window + 56) D) in matrix products, besides reading
    and writing some 3 B rows. Departs from the authors' program: blocks of 32 neighbouring centres
    come in random order and share 24 noise words, weighted so that the expected gradient is the
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

    def _inputs(self, random: torch.Generator) -> WordRows:
        return WordRows(start_vectors(len(self.words_), self.dim, random))
