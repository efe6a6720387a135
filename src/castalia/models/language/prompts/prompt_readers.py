"""How each kind of language model reads prompts: log-probabilities of endings, and answers.

Three kinds of one face: networks that continue a text, counts that do, and networks that answer a
text by another.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain, islice, takewhile
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.language.causal.neural_language_model import NeuralLanguageModel
from castalia.models.language.ngrams.ngram_language_model import NGramLanguageModel
from castalia.models.language.seq2seq.text_to_text import (
    TextToText,
    answer_rows,
    padded_answers,
)
from castalia.nn.network_modes import evaluating
from castalia.objectives.tokens import shift_right, token_losses
from castalia.utils.text import plural, shorten

__all__ = ["Reader", "reader"]

Endings = Sequence[Sequence[str]]  # of each prompt
Logs = list[list[np.ndarray]]  # log p of the tokens of each ending of each prompt


class Reader(ABC):
    """A fitted model that is given prompts."""

    def __init__(self, model: Any) -> None:
        check_is_fitted(model)
        self.model, self.name = model, type(model).__name__

    @abstractmethod
    def logs(self, prompts: list[str], endings: Endings) -> Logs:
        """Return log p of the tokens of each ending after its prompt."""

    @abstractmethod
    def write(self, prompts: list[str], tokens: int) -> list[str]:
        """Return the most probable continuation of each prompt, without the prompt."""

    def tell_cut(self, sizes: Sequence[int], room: int, kept: str) -> None:
        """Warn of texts that are longer than the model reads."""
        cut = [size for size in sizes if size > room]
        if cut:
            warnings.warn(
                f"{self.name}: {plural(len(cut), 'text')} of up to {max(cut)} tokens must be cut "
                f"to the {kept} {room}, the most the model reads at once. Give fewer examples.",
                DataWarning,
                stacklevel=5,
            )

    def check_distinct(self, row: Sequence[str], tokens: Sequence[Sequence[int]]) -> None:
        """Refuse endings that are nothing, or the same, to the model."""
        if not all(tokens) or len(set(map(tuple, tokens))) < len(tokens):
            raise InvalidData(
                f"{self.name}: choices must differ in tokens that the model knows; it reads some "
                f"of {shorten(repr(list(row)))} alike, or as nothing. Endings of a string stand "
                "right behind it: begin them with a space."
            )


def reader(model: Any) -> Reader:
    """Return the reader of a model."""
    if isinstance(model, NeuralLanguageModel):
        return Network(model)
    if isinstance(model, NGramLanguageModel):
        return Counts(model)
    if isinstance(model, TextToText):
        return TwoParts(model)
    raise InvalidParameter(
        "prompting: `model` must be a fitted language model, such as GPTLanguageModel, "
        f"RNNLanguageModel, NGramLanguageModel or T5; got {shorten(repr(model))}."
    )


class Continues(Reader):
    """A model that reads prompt and ending as one text."""

    @abstractmethod
    def tokens(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""

    @abstractmethod
    def last_logs(self, texts: list[str], sizes: list[int]) -> list[np.ndarray]:
        """Return log p of so many last tokens of each text."""

    def logs(self, prompts: list[str], endings: Endings) -> Logs:
        """Score what stands behind the tokens that a prompt and all its endings share.

        A tokenizer may join the end of the prompt with the beginning of an ending; then both count
        as ending, for all endings of that prompt.
        """
        pairs = zip(prompts, endings, strict=True)
        texts = [prompt + ending for prompt, row in pairs for ending in row]
        read, sizes = iter(self.tokens(texts)), []
        for own, row in zip(self._prompt_tokens(prompts), endings, strict=True):
            wholes = list(islice(read, len(row)))
            shared = min(_shared(own, whole) for whole in wholes)
            self.check_distinct(row, [whole[shared:] for whole in wholes])
            sizes += [len(whole) - shared for whole in wholes]
        found = iter(self.last_logs(texts, sizes))
        return [list(islice(found, len(row))) for row in endings]

    def _prompt_tokens(self, prompts: list[str]) -> list[list[int]]:
        """Return the ids of prompts, of which one may be empty."""
        read = iter(self.tokens([prompt for prompt in prompts if prompt]))
        return [next(read) if prompt else [] for prompt in prompts]


class Network(Continues):
    """A network that predicts the next token."""

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        tokenizer = self.model.tokenizer_
        if tokenizer is None:
            raise InvalidData(
                f"{self.name}: it was fitted on token ids; prompts need a model that was fitted on "
                "texts."
            )
        found: list[list[int]] = tokenizer.encode(texts)
        return found

    def last_logs(self, texts: list[str], sizes: list[int]) -> list[np.ndarray]:
        """Read all texts together in batches; of long ones, the last tokens."""
        adapter, window = self.model.adapter_, self.model._window()
        streams = adapter.streams(texts, self.name)
        if adapter.end is not None:
            streams = [stream[:-1] for stream in streams]  # an ending need not be the end
        if any(size >= len(stream) for stream, size in zip(streams, sizes, strict=True)):
            raise InvalidData(
                f"{self.name}: a prompt must hold at least one token, since the tokenizer has no "
                "token that begins a text; got an empty one."
            )
        if window is not None:
            self.tell_cut([len(stream) - 1 for stream in streams], window, "last")
            pairs = zip(streams, sizes, strict=True)
            streams = [stream[-max(window, size) - 1 :] for stream, size in pairs]
        found = self.model._logs(streams)
        return [logs[len(logs) - size :] for logs, size in zip(found, sizes, strict=True)]

    def write(self, prompts: list[str], tokens: int) -> list[str]:
        """Write greedily, all prompts together."""
        window = self.model._window()
        if window is not None:
            self.tell_cut([len(ids) for ids in self._prompt_tokens(prompts)], window, "last")
        return _without(prompts, self.model.generate(prompts, tokens, temperature=0))


class Counts(Continues):
    """An n-gram model."""

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """Return the numbers of the words of each text."""
        return [self.model._context(text) for text in texts]

    def last_logs(self, texts: list[str], sizes: list[int]) -> list[np.ndarray]:
        """Look up the words of all texts at once."""
        end = int(self.model.boundaries)  # the end is scored too
        found = self.model.token_log_probabilities(texts)
        pairs = zip(found, sizes, strict=True)
        return [logs[len(logs) - end - size : len(logs) - end] for logs, size in pairs]

    def write(self, prompts: list[str], tokens: int) -> list[str]:
        """Write the commonest words."""
        whole = [self.model.generate(prompt, tokens, temperature=0) for prompt in prompts]
        return _without(prompts, whole)


class TwoParts(Reader):
    """A network that encodes a text and decodes its answer, to which its end belongs."""

    def logs(self, prompts: list[str], endings: Endings) -> Logs:
        """Encode each prompt once and decode all its endings together."""
        model, adapter = self.model, self.model.adapter_
        self._tell_long(prompts)
        texts = adapter.check(prompts, self.name)
        found: Logs = [[] for _ in prompts]
        with torch.inference_mode(), evaluating(model.module_):
            for index, ids in model._by_length(adapter, texts):
                rows = [self._answers(endings[i]) for i in index]
                flat = list(chain.from_iterable(rows))
                wanted = padded_answers(adapter.tokenizer, flat).x
                logs = self._answer_logs(ids, wanted, torch.tensor([*map(len, rows)]))
                each = iter([log[: len(ids)] for log, ids in zip(logs, flat, strict=True)])
                for i, row in zip(index, rows, strict=True):
                    found[i] = list(islice(each, len(row)))
        return found

    def _answers(self, endings: Sequence[str]) -> list[list[int]]:
        """Return the ids of answers and of their ends."""
        texts = np.array([ending.strip() for ending in endings], dtype=object)
        rows = answer_rows(self.model, self.model.adapter_.tokenizer, texts)
        self.check_distinct(endings, [row[:-1] for row in rows])
        return rows

    def _answer_logs(self, ids: Tensor, wanted: Tensor, counts: Tensor) -> np.ndarray:
        """Return log p of answers, (A, T); source b, of ids (B, S), has ``counts[b]`` of them."""
        net, adapter = self.model.module_, self.model.adapter_
        device = next(net.parameters()).device
        ids, wanted, counts = ids.to(device), wanted.to(device), counts.to(device)
        keep = ids != adapter.padding
        memory = net.encode(ids, keep=keep).repeat_interleave(counts, dim=0)  # (A, S, dim)
        seen = keep.repeat_interleave(counts, dim=0)
        given = shift_right(wanted, self.model._start_of(adapter))
        logits = net.head(net.decode(given, memory, memory_keep=seen))  # (A, T, V)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        found: np.ndarray = -token_losses(logits, wanted).double().cpu().numpy()
        return found

    def write(self, prompts: list[str], tokens: int) -> list[str]:
        """Answer by the model's own search."""
        self._tell_long(prompts)
        return [str(text) for text in self.model.predict(prompts)]

    def _tell_long(self, prompts: list[str]) -> None:
        adapter = self.model.adapter_
        sizes = [len(ids) for ids in adapter.tokenizer.encode(prompts)]
        self.tell_cut(sizes, adapter.context - 2, "first")


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two rows have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _without(prompts: list[str], texts: list[str]) -> list[str]:
    """Return what stands behind each prompt."""
    return [text.removeprefix(before) for before, text in zip(prompts, texts, strict=True)]
