"""Byte fallback: what no piece covers is written as the bytes of its UTF-8, so nothing is lost.

A vocabulary with fallback holds 256 pieces ``<0x00>`` … ``<0xFF>``, and a space is written ``▁``.
These, and special tokens, could also stand in a text as they are; there they, too, are written as
bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer as Backend
from tokenizers import decoders, pre_tokenizers

__all__ = ["MARK", "Fallback", "marked", "spaced", "unambiguous", "with_bytes"]

MARK = "▁"  # U+2581, what a space becomes
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
_AMBIGUOUS = f"{MARK}|<0x[0-9A-F]{{2}}>"


def marked(*, prefix: bool, split: bool) -> Any:
    """Return the pre-tokenizer that turns spaces into marks."""
    scheme = "first" if prefix else "never"
    return pre_tokenizers.Metaspace(replacement=MARK, prepend_scheme=scheme, split=split)


def spaced(*, prefix: bool) -> Any:
    """Return the decoder that turns marks into spaces, bytes into characters, and joins."""
    parts = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*parts, *([decoders.Strip(" ", 1, 0)] if prefix else [])])


def with_bytes(backend: Any) -> Any:
    """Return a trained BPE or unigram backend that falls back to bytes.

    The pieces for the bytes come after the special tokens, so that their ids do not depend on what
    was learnt.
    """
    content = json.loads(backend.to_str())
    model, first = content["model"], len(content["added_tokens"])
    if model["type"] == "BPE":
        learnt = sorted(model["vocab"], key=model["vocab"].get)
        names = [*learnt[:first], *BYTES, *learnt[first:]]
        model["vocab"] = {name: place for place, name in enumerate(names)}
    else:
        scored = [[name, 0.0] for name in BYTES]
        model["vocab"] = [*model["vocab"][:first], *scored, *model["vocab"][first:]]
    model["byte_fallback"] = True
    return Backend.from_str(json.dumps(content))


class Fallback:
    """Encodes with a backend that falls back to bytes, texts that look like its pieces included.

    Parameters
    ----------
    backend
        A backend made by `with_bytes`.
    special
        Special tokens.
    """

    def __init__(self, backend: Any, special: Sequence[str]) -> None:
        self.backend = backend
        self.first = backend.token_to_id(BYTES[0])
        plain = map(re.escape, special) if backend.encode_special_tokens else ()
        self.ambiguous = re.compile("|".join((_AMBIGUOUS, *plain)))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of texts."""
        if any(self.ambiguous.search(text) for text in texts):
            return [self._careful(text) for text in texts]
        found = self.backend.encode_batch_fast(texts, add_special_tokens=False)
        return [row.ids for row in found]

    def _careful(self, text: str) -> list[int]:
        """Encode what stands between ambiguous places, and those as bytes."""
        ids, start = [], 0
        for found in self.ambiguous.finditer(text):
            ids += self._plain(text[start : found.start()])
            ids += [self.first + byte for byte in found.group().encode()]
            start = found.end()
        return ids + self._plain(text[start:])

    def _plain(self, text: str) -> list[int]:
        return list(self.backend.encode(text, add_special_tokens=False).ids)


def unambiguous(texts: Iterator[str]) -> Iterator[str]:
    """Take out of training texts what is always written as bytes."""
    return (re.sub(_AMBIGUOUS, " ", text) for text in texts)
