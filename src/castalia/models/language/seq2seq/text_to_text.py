"""The task of answering a text by a text: translation, and everything written as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Interval, Target, TargetCodec
from castalia.base.targets import TextCodec
from castalia.data.batches import TensorRows
from castalia.data.text import PairAdapter, as_texts, choose_tokenizer, real_lengths
from castalia.data.tokenizers import Tokenizer, pad_batch
from castalia.errors import InvalidData
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.models.language.tokenizer_parameter import TokenizerChoice, make_tokenizer
from castalia.nets.language import beam_search, generate
from castalia.objectives.tokens import shift_right, token_losses
from castalia.protocols import Spec
from castalia.utils.bleu import bleu

__all__ = ["AnswerCodec", "TextToText", "answer_rows", "padded_answers"]

TOKENS = 1 << 13  # of the sources that are answered at once
ROOM = 1.5  # an answer may be so much longer than the longest that was learnt from


class AnswerCodec(TextCodec):
    """Texts that answer texts, in the tokens of both: learns how long answers are."""

    def check(self, est: Any, adapter: PairAdapter, X: np.ndarray, y: Any) -> np.ndarray:
        """Return the answers as an array of strings; in ``fit`` the tokenizer is learnt here."""
        if y is not None:
            _refuse_pairs(X, type(est).__name__)
        found = super().check(est, adapter, X, y)
        self.learn_tokenizer(est, adapter, chain(X, found))
        return found

    def learn_tokenizer(self, est: Any, adapter: PairAdapter, texts: Iterable[str]) -> None:
        """Learn the adapter's tokenizer from sources and answers, where it has none yet."""
        if adapter.tokenizer is None:
            adapter.asked = choose_tokenizer(adapter.asked, list(texts), type(est).__name__)

    def fit(
        self, est: Any, adapter: PairAdapter, X: Any, y: np.ndarray, weight: np.ndarray | None
    ) -> Target:
        """Learn ``answer_tokens_`` and ``usual_tokens_``, and pad the answers."""
        tokenizer: Tokenizer = adapter.asked
        rows = answer_rows(est, tokenizer, y)
        sizes = [len(row) for row in rows]
        est.answer_tokens_ = min(est.context, math.ceil(ROOM * max(sizes)))
        est.usual_tokens_ = float(np.mean(sizes))
        return Target(padded_answers(tokenizer, rows), len(tokenizer), weight)

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Encode further answers with the tokenizer already learnt."""
        tokenizer = est.adapter_.tokenizer
        return Target(padded_answers(tokenizer, answer_rows(est, tokenizer, y)), len(tokenizer))


def answer_rows(est: Any, tokenizer: Tokenizer, y: np.ndarray) -> list[list[int]]:
    """Return the tokens of answers, each with its end."""
    end = tokenizer.id_of("end")
    rows = tokenizer.encode(list(y), special=est._special_meant)
    rows = [row[:-1] if row[-1:] == [end] else row for row in rows]
    return [[*row[: est.context - 1], end] for row in rows]


def padded_answers(tokenizer: Tokenizer, rows: list[list[int]]) -> TensorRows:
    """Return the tokens of answers in one tensor, with their lengths."""
    pad = tokenizer.find_id("pad")
    padding = len(tokenizer) if pad is None else pad
    ids = torch.from_numpy(pad_batch(rows, padding).ids)
    return TensorRows(ids, real_lengths(ids, padding))


@dataclass(kw_only=True, eq=False, repr=False)
class TextToText:
    """Answers to texts, by an encoder and a decoder with one vocabulary; see ``Transformer``."""

    adapter: ClassVar[Any] = StartReader(PairAdapter)
    codec: ClassVar[TargetCodec] = AnswerCodec()
    _default_tokenizer: ClassVar[str] = "bpe"
    _special: ClassVar[tuple[str, ...]] = ("<pad>", "<unk>", "<s>", "</s>")
    _special_meant: ClassVar[bool] = False  # whether special tokens written in texts are meant

    tokenizer: Annotated[Any, TokenizerChoice()] = None
    context: Annotated[int, Interval(2, whole=True)] = 128
    beams: Annotated[int, Interval(1, whole=True)] = 1
    length_penalty: Annotated[float, Interval(0)] = 0.0
    batch_tokens: Annotated[int | None, Interval(1, whole=True, optional=True)] = None

    def _reader(self) -> PairAdapter:
        """Make the adapter."""
        asked = make_tokenizer(self.tokenizer, self._default_tokenizer, self._special)
        made = PairAdapter(asked, context=self.context)
        made.special = self._special_meant
        return made

    def _start_of(self, adapter: PairAdapter) -> int:
        """Return the id that an answer begins with."""
        tokenizer: Any = adapter.tokenizer
        return int(tokenizer.id_of("begin"))

    def predict(self, X: Any) -> np.ndarray:
        """Return an answer to each text, by beam search or, with one beam, greedily."""
        return self._answer(X, None)

    def generate(
        self,
        X: Any,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        random_state: Any = None,
    ) -> np.ndarray:
        """Return a drawn answer to each text.

        Parameters
        ----------
        X
            Texts.
        temperature
            Tokens are drawn from a flatter distribution the larger it is.
        top_k
            Draw among the k most probable tokens; None: among all.
        top_p
            Draw among the fewest tokens that hold this much probability.
        random_state
            Seed of the draws.
        """
        drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p}
        return self._answer(X, {**drawn, "random_state": random_state})

    def _answer(self, X: Any, drawn: dict[str, Any] | None) -> np.ndarray:
        check_is_fitted(self, "module_")
        adapter: Any = self.adapter_  # type: ignore[attr-defined]
        net: Any = self.module_  # type: ignore[attr-defined]
        texts = adapter.check(X, type(self).__name__)
        _refuse_pairs(texts, type(self).__name__)
        found = np.empty(len(texts), dtype=object)
        settings: dict[str, Any] = {
            "tokens": self.answer_tokens_,  # type: ignore[attr-defined]
            "stop": adapter.end,
            "start": self._start_of(adapter),
            "pad": adapter.end,
        }
        for index, ids in self._by_length(adapter, texts):
            keep = ids != adapter.padding
            if drawn is not None:
                ids = generate(net, ids, keep=keep, **settings, **drawn)
            elif self.beams == 1:
                ids = generate(net, ids, keep=keep, **settings)
            else:
                search = {**settings, "beams": self.beams, "length_penalty": self.length_penalty}
                ids = beam_search(net, ids, keep=keep, **search).ids[:, 0]
            for place, row in zip(index, ids.tolist(), strict=True):
                row = row[: row.index(adapter.end)] if adapter.end in row else row
                known = [token for token in row if token < len(adapter.tokenizer)]
                found[place] = self._words(adapter, known, texts[place])
        return found

    def _words(self, adapter: PairAdapter, ids: list[int], source: str) -> str:
        """Return the answer that some tokens are."""
        tokenizer: Any = adapter.tokenizer
        words: str = tokenizer.decode(ids)
        return words

    def _by_length(
        self, adapter: PairAdapter, texts: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Tensor]]:
        """Yield sources of like lengths together, with their places: little padding is read."""
        rows = adapter.encode(texts)
        order = np.argsort([-len(row) for row in rows], kind="stable")
        start = 0
        while start < len(order):
            longest = len(rows[order[start]]) * self.beams
            index = order[start : start + max(1, TOKENS // longest)]
            yield index, adapter.pad([rows[i] for i in index]).long()
            start += len(index)

    def score_answers(self, X: Any, answers: Sequence[str]) -> np.ndarray:
        """Return log p of each answer to each text, its end included, (n, K).

        Where a task has few answers, such as the words of its labels, the best of them is what the
        model says: softmax over the K scores gives their probabilities among each other.
        """
        check_is_fitted(self, "module_")
        adapter: Any = self.adapter_  # type: ignore[attr-defined]
        net: Any = self.module_.eval()  # type: ignore[attr-defined]
        wanted = np.array(as_texts(answers, f"{type(self).__name__}.score_answers"), dtype=object)
        rows = answer_rows(self, adapter.tokenizer, wanted)
        ids = padded_answers(adapter.tokenizer, rows).x  # (K, T)
        texts = adapter.check(X, type(self).__name__)
        found = np.empty((len(texts), len(rows)))
        for index, source in self._by_length(adapter, texts):
            found[index] = _answer_logs(net, source, ids, adapter.padding, self._start_of(adapter))
        return found

    def choose(self, X: Any, answers: Sequence[str]) -> np.ndarray:
        """Return the most probable of a few answers to each text, (n,)."""
        return np.array(answers)[self.score_answers(X, answers).argmax(axis=1)]

    def score(self, X: Any, y: Any) -> float:
        """Return the BLEU of the answers, from 0 to 100, as sacreBLEU computes it."""
        said = list(self.predict(X))
        return bleu(as_texts(y, type(self).__name__), said).score

    def _ids(self, spec: Spec) -> dict[str, int]:
        """Return what an objective on answers needs."""
        return {"pad": spec.extra["padding"], "start": self._start_of(self.adapter_)}  # type: ignore[attr-defined]


@torch.inference_mode()
def _answer_logs(net: Any, source: Tensor, answers: Tensor, pad: int, start: int) -> np.ndarray:
    """Return log p of K answers, (K, T), to each of some sources, (B, S), as (B, K)."""
    device = next(net.parameters()).device
    source, answers = source.to(device), answers.to(device)
    keep, memory = source != pad, net.encode(source, keep=source != pad)
    found = []
    for answer in answers:  # the sources are read once, and each answer is written by all of them
        row = answer[answer != pad].expand(len(source), -1)
        h = net.decode(shift_right(row, start), memory, memory_keep=keep)
        found.append(-token_losses(net.head(h).float(), row).sum(dim=1))
    return torch.stack(found, dim=1).double().cpu().numpy()


def _refuse_pairs(X: np.ndarray, owner: str) -> None:
    if X.ndim != 1:
        raise InvalidData(f"{owner}: X must hold single texts; got pairs of texts.")
