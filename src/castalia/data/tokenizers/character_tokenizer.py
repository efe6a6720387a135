"""Characters as tokens, and the character n-grams of words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models

from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.tokenizer_checks import check_unknown
from castalia.errors import InvalidParameter

__all__ = ["CharTokenizer", "character_ngrams"]

POINTS = 0x110000  # code points of Unicode


@dataclass(kw_only=True, eq=False)
class CharTokenizer(Tokenizer):
    """One token a character (a Unicode code point), the special ones aside.

    A small vocabulary and long sequences. Decoding gives back every text made of characters that
    were seen.

    Parameters
    ----------
    min_count
        Rarer characters are unknown.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = CharTokenizer().fit(["hello"])
    >>> made.encode("hell"), made.tokens("help")
    ([5, 4, 6, 6], ['h', 'e', 'l', '<unk>'])
    """

    min_count: int = 1

    def _untrained(self) -> Any:
        backend = Backend(models.BPE(unk_token=check_unknown(self)))
        backend.decoder = decoders.Fuse()
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        clean, counts = backend.normalizer, Counter[str]()
        for text in texts:
            counts.update(text if clean is None else clean.normalize_str(text))
        letters = sorted(letter for letter, count in counts.items() if count >= self.min_count)
        ids = {piece: place for place, piece in enumerate([*self.special, *letters])}
        backend.model = models.BPE(ids, [], unk_token=check_unknown(self))
        return backend

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        if not self.backend_.encode_special_tokens:  # special tokens are meant: Rust finds them
            return super()._encode_all(texts)
        clean = self.backend_.normalizer
        texts = texts if clean is None else [clean.normalize_str(text) for text in texts]
        points = (np.frombuffer(text.encode("utf-32-le"), dtype="<u4") for text in texts)
        return [self._table()[row].tolist() for row in points]

    def _table(self) -> np.ndarray:
        """Return the id of every code point, (1114112,)."""
        if "_ids" not in vars(self):
            self._ids = np.full(POINTS, self.id_of("unknown"), dtype=np.int32)
            known = json.loads(self.backend_.to_str())["model"]["vocab"]
            for piece, place in known.items():
                if len(piece) == 1:
                    self._ids[ord(piece)] = place
        return self._ids

    def _adopt(self, backend: Any) -> Any:
        vars(self).pop("_ids", None)
        return super()._adopt(backend)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_ids"}


def character_ngrams(
    word: str, n: int | tuple[int, int] = 3, *, whole: bool = False, ends: str = "<>"
) -> list[str]:
    """Return the n-grams of a word's characters, with signs for its ends.

    Parameters
    ----------
    word
        A word.
    n
        Their length, or the smallest and the largest, as FastText's (3, 6).
    whole
        Whether to add the word itself between its signs, as FastText does.
    ends
        The two signs; empty for none.

    Examples
    --------
    >>> character_ngrams("where")
    ['<wh', 'whe', 'her', 'ere', 're>']
    """
    low, high = (n, n) if isinstance(n, int) else n
    if not 1 <= low <= high:
        raise InvalidParameter(
            f"character_ngrams: `n` must be at least 1, the smaller one first; got {n!r}."
        )
    full = f"{ends[:1]}{word}{ends[1:]}"
    found = [full[i : i + k] for k in range(low, high + 1) for i in range(len(full) - k + 1)]
    return [*found, full] if whole and full not in found else found
