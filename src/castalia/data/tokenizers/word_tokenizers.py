"""Tokenizers whose pieces are words: cut at spaces, at punctuation, or by rules.

A word that is not in the vocabulary is unknown. They lose the white space: decoding puts one space
between words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.tokenizer_checks import check_size, check_unknown
from castalia.data.tokenizers.word_rules import ENGLISH, Rules

__all__ = ["RuleTokenizer", "WhitespaceTokenizer", "WordPunctTokenizer", "split_words"]

WORDS = 10**9  # a vocabulary of words is as large as the texts make it


@dataclass(kw_only=True, eq=False)
class _Words(Tokenizer):
    vocabulary_size: int | None = None
    min_count: int = 1

    def _splitter(self) -> Any:
        return None

    def _check(self) -> None:
        super()._check()
        check_unknown(self)
        check_size(self, optional=True)

    def _untrained(self) -> Any:
        backend = Backend(models.WordLevel({}, unk_token=check_unknown(self)))
        backend.pre_tokenizer = self._splitter()
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        trainer = trainers.WordLevelTrainer(
            vocab_size=self.vocabulary_size or WORDS,
            min_frequency=self.min_count,
            special_tokens=list(self.special),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return backend


@dataclass(kw_only=True, eq=False)
class WhitespaceTokenizer(_Words):
    """Words cut at white space.

    The simplest tokenizer, right for text that was tokenized before, such as the Penn Treebank:
    elsewhere ``do.`` and ``do`` are two words.

    Parameters
    ----------
    vocabulary_size
        Most pieces, special ones included; None keeps all words. The rarest go first.
    min_count
        Rarer words are unknown.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = WhitespaceTokenizer().fit(["to be or not to be"])
    >>> made.tokens("to be or what"), made.decode(made.encode("not to be"))
    (['to', 'be', 'or', '<unk>'], 'not to be')
    """

    def _splitter(self) -> Any:
        return pre_tokenizers.WhitespaceSplit()


@dataclass(kw_only=True, eq=False)
class WordPunctTokenizer(_Words):
    """Words cut at white space and at every punctuation mark, which is a token of its own.

    Parameters
    ----------
    vocabulary_size
        Most pieces, special ones included; None keeps all words.
    min_count
        Rarer words are unknown.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = WordPunctTokenizer().fit(["Don't! You do."])
    >>> made.tokens("Don't do.")
    ['Don', "'", 't', 'do', '.']
    """

    def _splitter(self) -> Any:
        return pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()]
        )


@dataclass(kw_only=True, eq=False)
class RuleTokenizer(_Words):
    """Words cut by rules for English, as spaCy does: ``Don't`` is ``Do`` and ``n't``.

    A chunk between spaces that is an exception is cut as listed; otherwise prefixes and suffixes
    are taken off its ends, one at a time, and infixes cut what is left.

    Parameters
    ----------
    exceptions
        Chunks and how they are cut, added to those of English; the parts must join to the chunk.
    vocabulary_size
        Most pieces, special ones included; None keeps all words.
    min_count
        Rarer words are unknown.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = RuleTokenizer().fit(["Don't you love Transformers? We sure do."])
    >>> made.tokens("Don't we?")
    ['Do', "n't", '<unk>', '?']
    """

    exceptions: dict[str, list[str]] | None = None

    def _rules(self) -> Rules:
        return ENGLISH.extended(self.exceptions or {})

    def split(self, text: str) -> list[str]:
        """Return the words of a text, known or not."""
        return self._rules().split(text)

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        made = backend.normalizer
        clean = made.normalize_str if made is not None else str
        rules = self._rules()
        words = chain.from_iterable(rules.split(clean(text)) for text in texts)
        return super()._train(backend, words)

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        made, rules = self.backend_.normalizer, self._rules()
        clean = made.normalize_str if made is not None else str
        split = [rules.split(clean(text)) for text in texts]
        encode = self.backend_.encode_batch_fast
        found = encode(split, is_pretokenized=True, add_special_tokens=False)
        return [row.ids for row in found]


def split_words(text: str) -> list[str]:
    """Return words and punctuation marks, without a vocabulary.

    Examples
    --------
    >>> split_words("We sure do.")
    ['We', 'sure', 'do', '.']
    """
    cut = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation()])
    return [word for word, _ in cut.pre_tokenize_str(text)]
