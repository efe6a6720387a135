"""The adapter of chat models: texts as one stream, or conversations of which answers are learnt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.data.prompts.chat_template import ChatTemplate, as_conversations, is_conversations
from castalia.data.text.language_adapter import BLOCK, LanguageAdapter
from castalia.data.text.named_tokenizers import default_tokenizer
from castalia.data.text.token_rows import TokenRows
from castalia.data.tokenizers import PretrainedTokenizer, Tokenizer
from castalia.errors import InvalidData
from castalia.protocols import Rows

__all__ = ["IGNORED", "ConversationAdapter", "answer_lengths"]

IGNORED = -100  # target of a token that is not learnt
_MARK = re.compile(r"<\|\w+\|>")


class ConversationAdapter(LanguageAdapter):
    r"""Texts as ``LanguageAdapter`` reads them, or conversations, one a row.

    A conversation is (2, T): its tokens, and at each place the token to predict, or ``IGNORED``
    where that belongs to no answer. Only answers are learnt, the end of their turn included.

    Parameters
    ----------
    tokenizer, context, stride, rest
        As for ``LanguageAdapter``; of a longer conversation the beginning is read.
    template
        How conversations are written; None: the one of ``ChatTemplate()``.

    Examples
    --------
    >>> adapter = ConversationAdapter(context=32)
    >>> talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    >>> X = adapter.check([talk], "fit")
    >>> X.shape, adapter.tokenizer.decode(X[0, 1][X[0, 1] != IGNORED], special=True)
    ((1, 2, 22), 'b<|im_end|>\n')
    """

    def __init__(
        self,
        tokenizer: Any = None,
        *,
        context: int = 256,
        stride: int | None = None,
        rest: bool = True,
        template: ChatTemplate | None = None,
    ) -> None:
        super().__init__(tokenizer, context=context, stride=stride, rest=rest)
        self.template = template
        self.ends: tuple[int, ...] = ()  # tokens that end a text, where a folder says which
        self.answers = False  # whether it was fitted on conversations

    def adopt(
        self, tokenizer: Tokenizer | None, vocabulary: int, ends: Sequence[int] = ()
    ) -> ConversationAdapter:
        """Take over a fitted tokenizer, the number of ids and the tokens that end a text."""
        self.tokenizer, self.vocabulary, self.ends = tokenizer, vocabulary, tuple(ends)
        return self

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built, and whether answers are learnt."""
        return {**super().extra, "answers": self.answers}

    @property
    def end(self) -> int | None:
        """The id between texts, or None."""
        return self.ends[0] if self.ends else super().end

    @property
    def stops(self) -> tuple[int, ...]:
        """Tokens that end a text, the end of a turn included."""
        return tuple(dict.fromkeys([*(self.ends or super().stops), *self.turn()[1]]))

    @property
    def frame(self) -> tuple[list[int], list[int]]:
        """What stands before and behind a text; of a file's tokenizer, what the file says."""
        if not isinstance(self.tokenizer, PretrainedTokenizer):
            return super().frame
        said = self.tokenizer.frame
        after = [] if self.end is None else [self.end]
        return [] if said is None else list(said.before), after

    def turn(self) -> tuple[str, tuple[int, ...]]:
        """Return what is written behind an answer, and its first token where that is special."""
        talk = [{"role": "user", "content": "a"}, {"role": self._writer().answers, "content": "b"}]
        text, spans = self._writer().spans(talk)
        tail = text[slice(*spans[-1])].partition("b")[2]
        special = () if self.tokenizer is None else self.tokenizer.special
        first = [token for token in special if tail.strip().startswith(token)]
        return tail.strip(), tuple(self.tokenizer.id_of(token) for token in first)  # type: ignore[union-attr]

    def _writer(self) -> ChatTemplate:
        return ChatTemplate() if self.template is None else self.template

    def check(self, X: Any, owner: str) -> Any:
        """Return texts as blocks of ids, (N, T + 1), or conversations, (N, 2, T)."""
        if not is_conversations(X):
            return super().check(X, owner)
        if self.vocabulary == 0:
            talks = as_conversations(X, owner)
            self._learn_marks([self._writer().render(talk) for talk in talks], owner)
        if not self.fitted:
            self.answers = True
        rows = list(zip(*self.marked(X, owner), strict=True))
        return _stacked(rows, self.context, self._writer().answers, owner)

    def _learn_marks(self, texts: list[str], owner: str) -> None:
        """Learn a tokenizer; where none was asked for, the template's marks are special tokens."""
        if self.asked is None:
            made = default_tokenizer(texts)
            marks = dict.fromkeys(_MARK.findall(self._writer().source))
            self.asked = replace(made, special=(*made.special, *marks))
        self._learn(texts, texts, owner)

    def _marked(
        self, text: str, spans: Sequence[tuple[int, int]], owner: str
    ) -> tuple[list[int], list[bool]]:
        """Return the ids of a conversation, and which of them belong to answers."""
        if self.tokenizer is None:
            raise InvalidData(f"{owner}: it has no tokenizer; X must be token ids.")
        ids: list[int] = self.tokenizer.encode(text, special=True)
        found = self.tokenizer.backend_.encode(text, add_special_tokens=False)
        if found.ids == ids:
            inside = [any(a <= i and j <= b for a, b in spans) for i, j in found.offsets]
            return ids, inside
        ids, inside, place = [], [], 0  # the backend alone does not read it: piece by piece
        for start, stop in [*spans, (len(text), len(text))]:
            for piece, counts in ((text[place:start], False), (text[start:stop], True)):
                some = self.tokenizer.encode(piece, special=True) if piece else []
                ids, inside = ids + some, inside + [counts] * len(some)
            place = stop
        return ids, inside

    def marked(self, X: Any, owner: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return the ids of conversations, and which of them belong to answers."""
        written = [self._writer().spans(talk) for talk in as_conversations(X, owner)]
        rows = [self._marked(text, spans, owner) for text, spans in written]
        return [np.array(ids) for ids, _ in rows], [np.array(inside) for _, inside in rows]

    def streams(self, X: Any, owner: str) -> list[np.ndarray]:
        """Return each text by itself as it is framed; conversations as they are written."""
        return self.marked(X, owner)[0] if is_conversations(X) else super().streams(X, owner)

    def rows(self, X: Any, dtype: Any) -> Rows:
        """Return the inputs as rows of a training, (N, T)."""
        if not _is_answered(X):
            return super().rows(X, dtype)
        lengths = answer_lengths(torch.from_numpy(X[:, 1]))
        return TokenRows(torch.from_numpy(np.ascontiguousarray(X[:, 0])), lengths)

    def blocks(self, X: Any, dtype: Any) -> Iterator[Tensor]:
        """Yield inputs block by block, for prediction."""
        if not _is_answered(X):
            yield from super().blocks(X, dtype)
            return
        for some in torch.from_numpy(X[:, 0]).split(max(1, BLOCK // self.context)):
            yield some.long()


def _is_answered(X: Any) -> bool:
    return isinstance(X, np.ndarray) and X.ndim == 3


def answer_lengths(targets: Tensor) -> Tensor:
    """Return how far each row must be read to learn its last answer, (N,) of targets (N, T).

    >>> answer_lengths(torch.tensor([[-100, 4, 5, -100, -100]]))
    tensor([3])
    """
    places = torch.arange(1, targets.shape[1] + 1)
    return torch.where(targets != IGNORED, places, 1).amax(dim=1)


def _stacked(
    rows: list[tuple[np.ndarray, np.ndarray]], context: int, role: str, owner: str
) -> np.ndarray:
    """Return conversations as inputs and targets, (N, 2, T)."""
    length = min(context, max(len(ids) for ids, _ in rows) - 1)
    found = np.zeros((len(rows), 2, length), dtype=np.int32)
    found[:, 1] = IGNORED
    for place, (ids, inside) in enumerate(rows):
        some, counted = ids[: length + 1], inside[: length + 1]
        found[place, 0, : len(some) - 1] = some[:-1]
        found[place, 1, : len(some) - 1] = np.where(counted[1:], some[1:], IGNORED)
        if not counted[1:].any():
            raise InvalidData(
                f"{owner}: every conversation must hold an answer, a message of the role '{role}', "
                f"that begins among its first {context} tokens; row {place} does not. Leave it "
                "out, or raise `context`."
            )
    return found
