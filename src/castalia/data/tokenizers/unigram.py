"""Unigram language-model tokenizer: of all ways to cut a text, the most probable.

Each piece has a probability; a text is cut so that the product is largest (Viterbi). Training
starts from many pieces and drops those whose loss hurts the likelihood least.
Reference: 2018, Kudo, Subword regularization, arXiv 1804.10959.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import models, trainers

from castalia.data.tokenizers.byte_fallback import (
    MARK,
    Fallback,
    marked,
    spaced,
    unambiguous,
    with_bytes,
)
from castalia.data.tokenizers.tokenizer import Tokenizer
from castalia.data.tokenizers.tokenizer_checks import check_size, check_unknown

__all__ = ["UnigramTokenizer"]


PENALTY = 1e-4  # between the scores of characters that Rust puts back


def settled(trained: dict[str, Any], special: Sequence[str]) -> Any:
    """Return the model that was trained, with what Rust leaves to chance settled by the alphabet.

    Training prunes characters too; at the end Rust puts them back with scores from the smallest one
    on, a step of ``PENALTY`` each, in the order of a hash map, and so are pieces of equal scores.
    The words come from a hash map as well, so sums of scores differ in their last digits.
    """
    scores = {piece: score for piece, score in trained["vocab"] if piece not in special}
    least = min(scores.values())
    steps = {piece: (score - least) / PENALTY for piece, score in scores.items() if len(piece) == 1}
    back = sorted(piece for piece, step in steps.items() if abs(step - round(step)) < 1e-6)
    scores.update(zip(back, sorted(scores[piece] for piece in back), strict=True))
    rounded = [(piece, float(f"{score:.9g}")) for piece, score in scores.items()]
    ordered = sorted(rounded, key=lambda pair: (-pair[1], pair[0]))
    first = [(piece, score) for piece, score in trained["vocab"] if piece in special]
    return models.Unigram([*first, *ordered], trained["unk_id"], False)


@dataclass(kw_only=True, eq=False)
class UnigramTokenizer(Tokenizer):
    """Pieces with probabilities; a text is cut in the most probable way.

    A space becomes ``▁``, so decoding puts it back.

    Parameters
    ----------
    vocabulary_size
        Most pieces, special tokens and bytes of the fallback included; small texts give fewer.
    byte_fallback
        Whether unknown characters become bytes; then any text survives encoding and decoding.
    prefix
        Whether the first word gets a ``▁`` too. A space at the beginning of a text is then lost.
    split
        Whether pieces stop at spaces.
    piece_length
        Most characters of a piece.
    special, normalise
        See ``Tokenizer``.

    Examples
    --------
    >>> made = UnigramTokenizer(vocabulary_size=40).fit(["the dog", "the dogs", "a dog"] * 9)
    >>> made.decode(made.encode("the dogs")), made.scores["o"] < 0
    ('the dogs', True)
    """

    vocabulary_size: int = 8_000
    byte_fallback: bool = False
    prefix: bool = False
    split: bool = True
    piece_length: int = 16

    def _check(self) -> None:
        super()._check()
        check_unknown(self)
        check_size(self, least=257 if self.byte_fallback else 1)

    @property
    def scores(self) -> dict[str, float]:
        """Pieces and the logarithms of their probabilities."""
        return dict(json.loads(self._fitted().to_str())["model"]["vocab"])

    def _untrained(self) -> Any:
        backend = Backend(models.Unigram())
        backend.pre_tokenizer = marked(prefix=self.prefix, split=self.split)
        backend.decoder = spaced(prefix=self.prefix)
        return backend

    def _train(self, backend: Any, texts: Iterator[str]) -> Any:
        trainer = trainers.UnigramTrainer(
            vocab_size=self.vocabulary_size - 256 * self.byte_fallback,
            special_tokens=list(self.special),
            unk_token=check_unknown(self),
            initial_alphabet=[MARK],
            max_piece_length=self.piece_length,
            show_progress=False,
        )
        backend.train_from_iterator(unambiguous(texts) if self.byte_fallback else texts, trainer)
        backend.model = settled(json.loads(backend.to_str())["model"], self.special)
        return with_bytes(backend) if self.byte_fallback else backend

    def _encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        if self.byte_fallback:
            return Fallback(self.backend_, self.special).encode(texts)
        return super()._encode_all(texts)

    @classmethod
    def from_scores(cls, scores: dict[str, float], *, prefix: bool = False) -> UnigramTokenizer:
        """Return a tokenizer with given pieces.

        Parameters
        ----------
        scores
            Pieces and the logarithms of their probabilities; ``<unk>`` is added.
        prefix
            Whether the first word gets a ``▁``.
        """
        made = cls(special=("<unk>",), prefix=prefix)
        backend = made._untrained()
        backend.model = models.Unigram([("<unk>", 0.0), *scores.items()], 0, False)
        backend.add_special_tokens(["<unk>"])
        return made._adopt(backend)
