"""Special tokens around texts, as the post-processor of a ``tokenizer.json`` puts them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import tokenizers as rust

from castalia.errors import DamagedFile

__all__ = ["Frame", "frame_of", "framed"]


@dataclass(frozen=True)
class Frame:
    """Ids before a text, between two texts and behind the last."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]

    def around(self, ids: list[int]) -> list[int]:
        """Return a text with what stands around it."""
        return [*self.before, *ids, *self.after]

    def join(self, first: list[int], second: list[int]) -> list[int]:
        """Return two texts with what stands around them."""
        return [*self.before, *first, *self.between, *second, *self.after]


def frame_of(backend: Any) -> Frame | None:
    """Return what a backend's post-processor adds to texts, or None where it adds nothing.

    >>> from castalia.data.tokenizers import WordPunctTokenizer
    >>> frame_of(WordPunctTokenizer().fit(["so it is"]).backend_) is None
    True
    """
    if backend.post_processor is None:
        return None
    one = rust.Tokenizer(rust.models.WordLevel({"a": 0}, unk_token="a")).encode("a")
    single = _runs(backend.post_processor.process(one))
    pair = _runs(backend.post_processor.process(one, one))
    if len(single) != 2 or len(pair) != 3:
        raise DamagedFile(
            "Tokenizer: the `post_processor` of a tokenizer.json must keep each text once."
        )
    frame = Frame(single[0], pair[1], single[1])
    used = [*single, *pair]
    size = backend.get_vocab_size(with_added_tokens=True)
    if any(i >= size for run in used for i in run):
        raise DamagedFile(
            f"Tokenizer: the `post_processor` of a tokenizer.json must add ids below {size:,}, the "
            f"size of the vocabulary; got {max(i for run in used for i in run):,}."
        )
    return frame if any(used) else None


def framed(backend: Any, frame: Frame) -> str:
    """Return the JSON of a backend with a post-processor that puts special tokens around texts."""
    copy = rust.Tokenizer.from_str(backend.to_str())
    before, between, after = (
        [str(copy.id_to_token(i)) for i in part]
        for part in (frame.before, frame.between, frame.after)
    )
    used = {*frame.before, *frame.between, *frame.after}
    copy.post_processor = rust.processors.TemplateProcessing(
        single=[*before, "$A", *after],
        pair=[*before, "$A", *between, "$B:1", *(f"{token}:1" for token in after)],
        special_tokens=[(str(copy.id_to_token(i)), i) for i in sorted(used)],
    )
    return str(copy.to_str())


def _runs(encoding: Any) -> list[tuple[int, ...]]:
    """Return the special ids before, between and behind the ordinary ones."""
    pairs = zip(encoding.ids, encoding.special_tokens_mask, strict=True)
    runs: list[tuple[int, ...]] = [()]
    for special, group in groupby(pairs, key=lambda pair: pair[1]):
        ids = [i for i, _ in group]
        if special:
            runs[-1] = tuple(ids)
        else:
            runs += [()] * len(ids)
    return runs
