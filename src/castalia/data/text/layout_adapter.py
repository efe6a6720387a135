"""The adapter of texts as GPT reads them for a task: ``start a delimiter b extract``.

One text, a pair, a pair in both orders, or a context with each of several answers: a row is one
sequence or a few, and the last token of each, ``extract``, is where the task is decided.
Reference: 2018, Radford et al., Improving language understanding by generative pre-training, 3.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tokenizers as rust
import torch
from torch import Tensor

from castalia.data.adapter_base import Adapter
from castalia.data.text.named_tokenizers import choose_tokenizer
from castalia.data.text.pair_adapter import as_pairs
from castalia.data.text.text_inputs import as_texts, first_row
from castalia.data.text.token_rows import TokenRows
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.data.tokenizers.special_frame import Frame, framed
from castalia.errors import InvalidData, InvalidParameter
from castalia.protocols import Rows
from castalia.utils.text import listing, shorten

__all__ = ["LAYOUTS", "LayoutAdapter", "as_choices"]

LAYOUTS = ("auto", "text", "pair", "similarity", "choice")
ADDED = ("start", "delimiter", "extract", "padding")  # ids after those of the tokenizer
BLOCK = 1 << 17  # tokens of a block when predicting
MULTIPLE = 8  # rows are as long as the longest, rounded up to a multiple
_MEANT = {"text": "texts", "pair": "pairs of texts", "choice": "contexts with several answers"}


def as_choices(X: Any, owner: str) -> np.ndarray:
    """Return contexts with their answers as pairs of texts, (N, K, 2).

    Parameters
    ----------
    X
        Rows ``(context, [answer, …])``, or lists of pairs ``(context, answer)``; all with the same
        number of answers.
    owner
        Whom errors name.

    Examples
    --------
    >>> as_choices([("It rained.", ["She got wet.", "She flew."])], "fit")[0].tolist()
    [['It rained.', 'She got wet.'], ['It rained.', 'She flew.']]
    """
    rows = [_pairs_of(row, place, owner) for place, row in enumerate(X)]
    counts = [len(row) for row in rows]
    if min(counts) < 2 or max(counts) != min(counts):
        odd = next((i for i, n in enumerate(counts) if n != counts[0]), 0)
        raise InvalidData(
            f"{owner}: every row must have the same number of answers, two or more; row 0 has "
            f"{counts[0]} and row {odd} has {counts[odd]}."
        )
    flat = as_pairs([pair for row in rows for pair in row], owner)
    return flat.reshape(len(rows), counts[0], 2)


def _pairs_of(row: Any, place: int, owner: str) -> list[tuple[Any, Any]]:
    if _is_row(row) and len(row) == 2 and isinstance(row[0], str) and _is_row(row[1]):
        return [(row[0], answer) for answer in row[1]]
    if _is_row(row) and all(_is_row(pair) and len(pair) == 2 for pair in row):
        return [tuple(pair) for pair in row]
    raise InvalidData(
        f"{owner}: a row must be (context, [answers]), as others are; got "
        f"{shorten(repr(row), 40)} at place {place}."
    )


def _is_row(value: Any) -> bool:
    return isinstance(value, tuple | list | np.ndarray)


def _kind(X: Any) -> str:
    """Say what the first row is: ``"text"``, ``"pair"`` or ``"choice"``."""
    first = first_row(X)
    if not _is_row(first) or not len(first):
        return "text"
    return "choice" if any(_is_row(part) for part in first) else "pair"


class LayoutAdapter(Adapter):
    """Texts, pairs and choices as token ids between a start and an extract token.

    | layout | X | a row |
    |---|---|---|
    | text | n texts | start a extract |
    | pair | n pairs | start a delimiter b extract |
    | similarity | n pairs | the same, and start b delimiter a extract |
    | choice | n contexts with K answers | start context delimiter answer extract, K times |

    Parameters
    ----------
    tokenizer
        A tokenizer, fitted or not; a name of ``TOKENIZERS``; None: byte BPE.
    context
        Most tokens of a sequence; of a pair the longer text is cut first.
    layout
        One of ``LAYOUTS``; ``"auto"`` sees whether X holds texts, pairs or choices. A pair is read
        in both orders only when asked: ``"similarity"``.
    vocabulary
        Ids that are the tokenizer's own, when a network knows more than it has; None: its size.

    Attributes
    ----------
    tokenizer : Tokenizer
        The fitted tokenizer.
    known : int
        Number of ordinary ids; start, delimiter, extract and padding are the next four.
    padding : int
        The id that fills up.

    Examples
    --------
    >>> adapter = LayoutAdapter("words", context=8)
    >>> texts = adapter.check([("so", "good"), ("bad", "so bad")], "fit")
    >>> adapter.fit(texts).rows(texts, None).take(torch.tensor([0, 1]))
    tensor([[ 7,  5,  8,  6,  9, 10, 10, 10],
            [ 7,  4,  8,  5,  4,  9, 10, 10]])
    """

    def __init__(
        self,
        tokenizer: Any = None,
        *,
        context: int = 128,
        layout: str = "auto",
        vocabulary: int | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            raise InvalidParameter(
                f"LayoutAdapter: `layout` must be {listing(LAYOUTS)}; got {layout!r}."
            )
        self.asked, self.context, self.layout = tokenizer, context, layout
        self.tokenizer: Tokenizer | None = None
        self.known = 0 if vocabulary is None else vocabulary
        self.length = self.answers = 0
        self.plain = False  # whether texts are read without start and extract, as others do it
        self.owner = "LayoutAdapter"

    @property
    def padding(self) -> int:
        """The id that fills up."""
        return self.known + ADDED.index("padding")

    @property
    def extra(self) -> Mapping[str, Any]:
        """What a network needs to be built."""
        tokenizer: Any = self.tokenizer
        return {
            "known": self.known,
            "padding": self.padding,
            "end": tokenizer.find_id("end"),
            "context": self.context,
            "choice": self.layout == "choice",
        }

    @property
    def readings(self) -> int:
        """How many sequences a row is."""
        return {"similarity": 2, "choice": self.answers}.get(self.layout, 1)

    @property
    def shape(self) -> torch.Size:
        """Shape of one row: a token at each of T places, R times."""
        return torch.Size([1, self.length * self.readings])

    def check(self, X: Any, owner: str) -> np.ndarray:
        """Return texts, (N,), pairs, (N, 2), or choices, (N, K, 2)."""
        self.owner = owner
        found = as_choices(X, owner) if _kind(X) == "choice" else as_pairs(X, owner)
        kind = ("text", "pair", "choice")[found.ndim - 1]
        wanted = "pair" if self.layout == "similarity" else self.layout
        if wanted not in ("auto", kind):
            raise InvalidData(
                f"{owner}: X must hold {_MEANT[wanted]}, for its layout is '{self.layout}'; got "
                f"{_MEANT[kind]}."
            )
        if kind == "choice" and self.answers not in (0, found.shape[1]):
            raise InvalidData(
                f"{owner}: a context must have {self.answers} answers, as in training; got "
                f"{found.shape[1]}."
            )
        return found

    def fit(self, X: np.ndarray, sample_weight: np.ndarray | None = None) -> LayoutAdapter:
        """Learn the layout, the tokenizer and the length of a row."""
        if self.layout == "auto":
            self.layout = ("text", "pair", "choice")[X.ndim - 1]
        self.answers = X.shape[1] if X.ndim == 3 else 0
        texts = as_texts(list(X.ravel()), self.owner)
        self.tokenizer = choose_tokenizer(self.asked, texts, self.owner, default="byte-bpe")
        self.known = self.known or len(self.tokenizer)
        longest = max(len(row) for row in self.encode(X))
        self.length = min(self.context, -(-longest // MULTIPLE) * MULTIPLE)
        return self

    def encode(self, X: np.ndarray) -> list[list[int]]:
        """Return the sequences of all rows, those of a row one behind the other."""
        tokenizer: Any = self.tokenizer
        if self.plain:
            return [ids[: self.context] or [0] for ids in tokenizer.encode(list(X))]
        if X.ndim == 1:
            start, _, extract, _ = self._added()
            room = self.context - 2
            return [[start, *ids[:room], extract] for ids in tokenizer.encode(list(X))]
        pairs = X.reshape(-1, 2)
        first, second = (tokenizer.encode(list(column)) for column in pairs.T)
        both = zip(first, second, strict=True)
        if self.layout == "similarity":
            return [row for a, b in both for row in (self.join(a, b), self.join(b, a))]
        return [self.join(a, b) for a, b in both]

    def join(self, first: list[int], second: list[int]) -> list[int]:
        """Return ``start a delimiter b extract``, cut to the context."""
        start, delimiter, extract, _ = self._added()
        room = self.context - 3
        a = min(len(first), max(room // 2, room - len(second)))
        b = min(len(second), room - a)
        return [start, *first[:a], delimiter, *second[:b], extract]

    def exported(self) -> str:
        """Return the ``tokenizer.json`` of a folder, with the tokens that are added to texts."""
        tokenizer: Any = self.tokenizer
        if self.plain:
            return str(tokenizer.backend_.to_str())
        if len(tokenizer) != self.known:
            raise InvalidParameter(
                f"LayoutAdapter: the tokenizer must have as many tokens as the network knows, "
                f"{self.known:,}, for others to be added; got {len(tokenizer):,}."
            )
        copy = rust.Tokenizer.from_str(tokenizer.backend_.to_str())
        copy.add_special_tokens([f"<|{name}|>" for name in ADDED])
        start, delimiter, extract, _ = self._added()
        return framed(copy, Frame((start,), (delimiter,), (extract,)))

    def _added(self) -> range:
        return range(self.known, self.known + len(ADDED))

    def pad(self, rows: list[list[int]], length: int | None = None) -> Tensor:
        """Return sequences as one tensor, (N, T), or (N, R, T) where a row is several."""
        ids = pad_batch(rows, self.padding, length=length, longer="cut").ids
        found = torch.from_numpy(ids.astype(np.int32))
        return found if self.readings == 1 else found.unflatten(0, (-1, self.readings))

    def rows(self, X: np.ndarray, dtype: Any) -> Rows:
        """Return texts as rows of a training."""
        return TokenRows(self.pad(self.encode(X), self.length))

    def blocks(self, X: np.ndarray, dtype: Any) -> Iterator[Tensor]:
        """Yield rows of ids block by block, for prediction: each as long as it needs to be."""
        step = max(1, BLOCK // (self.length * self.readings))
        for start in range(0, len(X), step):
            yield self.pad(self.encode(X[start : start + step])).long()
