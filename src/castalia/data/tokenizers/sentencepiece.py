"""SentencePiece: a text as a raw stream in which a space is a sign like any other.

No words are needed beforehand, so languages without spaces work as well, and decoding is joining.
Reference: 2018, Kudo, Richardson, SentencePiece, arXiv 1808.06226.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from castalia.data.tokenizers.bpe import BPETokenizer
from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.unigram import UnigramTokenizer
from castalia.errors import InvalidParameter

__all__ = ["SentencePieceTokenizer"]


@dataclass(kw_only=True, eq=False)
class SentencePieceTokenizer(Tokenizer):
    r"""Pieces of the raw stream, spaces included, by unigram model or byte-pair encoding.

    Nothing is lost: any text survives encoding and decoding, unless ``byte_fallback`` is off or a
    normalisation changes it.

    Parameters
    ----------
    algorithm
        ``"unigram"`` or ``"bpe"``.
    vocabulary_size
        Most pieces, special tokens and the 256 bytes of the fallback included.
    byte_fallback
        Whether unknown characters become bytes.
    prefix
        Whether the first word gets a ``▁`` too. A space at the beginning of a text is then lost.
    split
        Whether pieces stop at spaces; False lets them run across, for languages without spaces or
        for fixed phrases.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = SentencePieceTokenizer(vocabulary_size=300).fit(["new york is new"] * 9)
    >>> made.decode(made.encode("  new\työrk ▁"))
    '  new\työrk ▁'
    """

    algorithm: str = "unigram"
    vocabulary_size: int = 8_000
    byte_fallback: bool = True
    prefix: bool = False
    split: bool = True

    def _model(self) -> BPETokenizer | UnigramTokenizer:
        kinds: dict[str, type[BPETokenizer] | type[UnigramTokenizer]]
        kinds = {"unigram": UnigramTokenizer, "bpe": BPETokenizer}
        if self.algorithm not in kinds:
            raise InvalidParameter(
                f"SentencePieceTokenizer: `algorithm` must be `unigram` or `bpe`; got "
                f"{self.algorithm!r}."
            )
        return kinds[self.algorithm](
            vocabulary_size=self.vocabulary_size,
            byte_fallback=self.byte_fallback,
            prefix=self.prefix,
            split=self.split,
            special=self.special,
        )

    def _check(self) -> None:
        super()._check()
        self._model()._check()

    def _untrained(self) -> Any:
        return self._model()._untrained()

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        return self._model()._train(backend, texts)

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        return self._model()._adopt(self.backend_)._encode_all(texts)
