"""WordPiece: words cut greedily into the longest pieces of a vocabulary; ``##`` continues a word.

References: 2012, Schuster, Nakajima, Japanese and Korean voice search; 2018, Devlin et al., BERT,
arXiv 1810.04805.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from castalia.data.tokenizers.pair_merges import CRITERIA, Merge, learn_merges
from castalia.data.tokenizers.text_normalisation import normaliser
from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.tokenizer_checks import check_size, check_unknown
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["WordPieceTokenizer"]

PREFIX = "##"
IN_MEMORY = 1 << 28  # characters


@dataclass(kw_only=True, eq=False)
class WordPieceTokenizer(Tokenizer):
    """Longest pieces first, as BERT does.

    Words are cut at white space and punctuation; from the left, the longest piece of the vocabulary
    is taken, ``##`` before those that continue a word. A word with a part that no piece covers is
    unknown as a whole. The spaces are not kept.

    Parameters
    ----------
    vocabulary_size
        Most pieces, special tokens included.
    min_count
        Pairs rarer than this are not merged; only for ``"frequency"``.
    criterion
        Which pair is merged next in training. ``"frequency"``: the commonest, in Rust, as all
        public BERT-like trainers do. ``"score"``: the largest count(ab) / (count(a) count(b)).
        ``"likelihood"``: the largest gain in the log-likelihood of the words. The last two run in
        Python: for small corpora.
    special, normalise
        See ``Tokenizer``.

    Notes
    -----
    The notes give the last two as one; they differ: on hug 10, pug 5, pun 12, bun 4, hugs 5 the
    score merges ``gs`` first, the likelihood ``ug``.

    Examples
    --------
    >>> pieces = ["i", "have", "a", "new", "gp", "##u", "!"]
    >>> made = WordPieceTokenizer.from_pieces(pieces, normalise=("lowercase",))
    >>> made.tokens("I have a new GPU!")
    ['i', 'have', 'a', 'new', 'gp', '##u', '!']
    """

    special: tuple[str, ...] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary_size: int = 30_522
    min_count: int = 1
    criterion: str = "frequency"

    def _check(self) -> None:
        super()._check()
        check_unknown(self)
        check_size(self)
        if self.criterion not in CRITERIA:
            raise InvalidParameter(
                f"WordPieceTokenizer: `criterion` must be {listing(CRITERIA)}; got "
                f"{self.criterion!r}.{did_you_mean(str(self.criterion), CRITERIA)}"
            )

    def _untrained(self) -> Any:
        unknown = check_unknown(self)
        backend = Backend(models.WordPiece({}, unk_token=unknown))
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.decoder = decoders.WordPiece(prefix=PREFIX, cleanup=False)
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        if self.criterion != "frequency":
            return self._train_by_worth(backend, texts)
        kept = list(_up_to(texts, IN_MEMORY))
        rest = next(texts, None)
        if rest is not None:  # too large to be read twice
            return self._trained(backend, chain(kept, [rest], texts), ())
        # Rust would number the letters that continue a word by chance, and ties between pairs are
        # broken by number: the letters are given, in order.
        pieces = self._trained(backend, kept, _continuing(backend, kept)).get_vocab()
        made = self._untrained()
        made.normalizer = backend.normalizer
        return self._filled(made, sorted(pieces, key=pieces.__getitem__))

    def _trained(self, backend: Any, texts: Iterable[str], letters: Iterable[str]) -> Any:
        trainer = trainers.WordPieceTrainer(
            vocab_size=self.vocabulary_size,
            min_frequency=self.min_count,
            special_tokens=[*self.special, *letters],
            continuing_subword_prefix=PREFIX,
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return backend

    def _train_by_worth(self, backend: Any, texts: Iterator[str]) -> Any:
        clean, words = backend.normalizer, Counter[str]()
        for text in texts:
            text = text if clean is None else clean.normalize_str(text)
            words.update(word for word, _ in backend.pre_tokenizer.pre_tokenize_str(text))
        letters = {w[0] for w in words} | {PREFIX + c for w in words for c in w[1:]}
        start = [*self.special, *sorted(letters)]
        merges = self.vocabulary_size - len(start)
        found = learn_merges(words, merges, criterion=self.criterion, prefix=PREFIX)
        self.merges_ = list(found)
        return self._filled(backend, [*start, *(merge.piece for merge in self.merges_)])

    def _filled(self, backend: Any, pieces: Sequence[str]) -> Any:
        ids = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
        backend.model = models.WordPiece(ids, unk_token=check_unknown(self))
        return backend

    def trace_merges(self) -> list[Merge]:
        """Return the merges in the order they were learnt, by ``"score"`` or ``"likelihood"``.

        The vocabulary that Rust learns by frequency keeps no merges, nor does a loaded one.
        """
        self._fitted()
        return list(getattr(self, "merges_", []))

    @classmethod
    def from_pieces(
        cls, pieces: Sequence[str], *, normalise: tuple[str, ...] = ()
    ) -> WordPieceTokenizer:
        """Return a tokenizer with given pieces, such as the lines of BERT's ``vocab.txt``.

        Parameters
        ----------
        pieces
            Pieces in the order of their ids; special tokens that are missing come first.
        normalise
            See ``Tokenizer``.
        """
        made = cls(normalise=normalise)
        made._check()
        missing = [token for token in made.special if token not in pieces]
        backend = made._filled(made._untrained(), [*missing, *pieces])
        backend.normalizer = normaliser(normalise)
        backend.add_special_tokens(list(made.special))
        return made._adopt(backend)


def _continuing(backend: Any, texts: Iterable[str]) -> list[str]:
    """Return the letters that continue a word, behind their prefix: two that are not cut apart."""
    clean, pairs = backend.normalizer, set[tuple[str, str]]()
    for text in texts:
        pairs.update(pairwise(text if clean is None else clean.normalize_str(text)))
    cut = backend.pre_tokenizer.pre_tokenize_str
    joined = {b for a, b in pairs if [word for word, _ in cut(a + b)] == [a + b]}
    return sorted(PREFIX + letter for letter in joined)


def _up_to(texts: Iterator[str], characters: int) -> Iterator[str]:
    """Yield texts until there are so many characters."""
    for text in texts:
        characters -= len(text)
        yield text
        if characters < 0:
            return
