"""Byte-pair encoding, on characters and on bytes.

Starting from single symbols, the most frequent neighbouring pair inside the words becomes a new
symbol, again and again; a text is encoded by the same merges in the same order.
References: 1994, Gage, A new algorithm for data compression; 2016, Sennrich, Haddow, Birch, Neural
machine translation of rare words with subword units, arXiv 1508.07909; on bytes: 2019, Radford et
al., Language models are unsupervised multitask learners.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from castalia.data.tokenizers.byte_fallback import (
    MARK,
    Fallback,
    marked,
    spaced,
    unambiguous,
    with_bytes,
)
from castalia.data.tokenizers.pair_merges import Merge, replay_merges
from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.tokenizer_checks import check_size, check_unknown
from castalia.data.tokenizers.tokenizer_sources import texts_of

__all__ = ["BPETokenizer", "ByteBPETokenizer", "traced"]


@dataclass(kw_only=True, eq=False)
class BPETokenizer(Tokenizer):
    """Byte-pair encoding on characters.

    A space becomes ``▁`` and stays with the word behind it, so decoding puts it back. A character
    that was not seen is unknown, or, with ``byte_fallback``, written as its bytes.

    Parameters
    ----------
    vocabulary_size
        Most pieces: special tokens, bytes of the fallback, characters and merges together.
    min_count
        Pairs rarer than this are not merged.
    byte_fallback
        Whether unknown characters become bytes; then any text survives encoding and decoding.
    prefix
        Whether the first word gets a ``▁`` too, so that a word is the same piece everywhere. A
        space at the beginning of a text is then lost.
    split
        Whether merges stop at spaces.
    special, normalise
        See ``Tokenizer``.

    See Also
    --------
    castalia.data.tokenizers.ByteBPETokenizer : the same on bytes; nothing is ever unknown.

    Examples
    --------
    >>> words = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
    >>> made = BPETokenizer(vocabulary_size=15).fit(words)
    >>> [merge.piece for merge in made.trace_merges()]
    ['ug', 'un', 'hug']
    >>> made.tokens("bug"), made.tokens("mug")
    (['b', 'ug'], ['<unk>', 'ug'])
    """

    vocabulary_size: int = 32_000
    min_count: int = 1
    byte_fallback: bool = False
    prefix: bool = False
    split: bool = True

    def _check(self) -> None:
        super()._check()
        check_unknown(self)
        check_size(self, least=257 if self.byte_fallback else 1)

    def _untrained(self) -> Any:
        backend = Backend(models.BPE(unk_token=check_unknown(self)))
        backend.pre_tokenizer = marked(prefix=self.prefix, split=self.split)
        backend.decoder = spaced(prefix=self.prefix)
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocabulary_size - 256 * self.byte_fallback,
            min_frequency=self.min_count,
            special_tokens=list(self.special),
            initial_alphabet=[MARK],
            show_progress=False,
        )
        backend.train_from_iterator(unambiguous(texts) if self.byte_fallback else texts, trainer)
        return with_bytes(backend) if self.byte_fallback else backend

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        if self.byte_fallback:
            return Fallback(self.backend_, self.special).encode(texts)
        return super()._encode_all(texts)

    def trace_merges(self, texts: Any = None) -> list[Merge]:
        """Return the merges in the order they were learnt.

        Parameters
        ----------
        texts
            What ``fit`` takes. Each merge then says how often its pair stood there at that moment.
        """
        return traced(self._fitted(), texts)


@dataclass(kw_only=True, eq=False)
class ByteBPETokenizer(Tokenizer):
    """Byte-pair encoding on the bytes of UTF-8, as GPT-2 does.

    The alphabet is the 256 bytes, so nothing is ever unknown and any text survives encoding and
    decoding. Words are cut by GPT-2's pattern: letters, digits and other signs apart, a space in
    front. GPT-2's vocabulary has 256 bytes, 50,000 merges and ``<|endoftext|>``: 50,257 pieces.

    Parameters
    ----------
    vocabulary_size
        Most pieces: special tokens, 256 bytes and merges together.
    min_count
        Pairs rarer than this are not merged.
    special, normalise
        See ``Tokenizer``.

    See Also
    --------
    castalia.data.tokenizers.BPETokenizer : the same on characters.

    Examples
    --------
    >>> made = ByteBPETokenizer(vocabulary_size=260).fit(["low lower lowest"])
    >>> made.tokens("low é"), made.decode(made.encode("low é"))
    (['low', 'Ġ', 'Ã', '©'], 'low é')
    """

    special: tuple[str, ...] = ("<|endoftext|>",)
    vocabulary_size: int = 50_257
    min_count: int = 1

    def _check(self) -> None:
        super()._check()
        check_size(self, least=256)

    def _untrained(self) -> Any:
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        trainer = trainers.BpeTrainer(
            vocab_size=self.vocabulary_size,
            min_frequency=self.min_count,
            special_tokens=list(self.special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        return backend

    def trace_merges(self, texts: Any = None) -> list[Merge]:
        """Return the merges in the order they were learnt; bytes are shown as GPT-2 shows them.

        Parameters
        ----------
        texts
            What ``fit`` takes. Each merge then says how often its pair stood there at that moment.
        """
        return traced(self._fitted(), texts)


def traced(backend: Any, texts: Any) -> list[Merge]:
    """Return a backend's merges, with their counts in some texts when there are any."""
    merges = [(left, right) for left, right in json.loads(backend.to_str())["model"]["merges"]]
    if texts is None:
        return [Merge(left, right, left + right) for left, right in merges]
    words: Counter[str] = Counter()
    clean, cut = backend.normalizer, backend.pre_tokenizer
    for text in texts_of(texts, "trace_merges"):
        text = text if clean is None else clean.normalize_str(text)
        words.update(word for word, _ in cut.pre_tokenize_str(text))
    return list(replay_merges(words, merges))
