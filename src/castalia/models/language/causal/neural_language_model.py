"""What language models trained by gradients share: reading, scoring and writing texts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import Estimator, Interval, NoTarget, Target, TargetCodec
from castalia.data.adapter_base import Reads
from castalia.data.text import LanguageAdapter, TokenRows
from castalia.data.text.conversation_adapter import IGNORED, answer_lengths
from castalia.data.tokenizers import Tokenizer
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.language.causal.token_scores import token_log_probabilities
from castalia.models.language.generated_text import (
    check_setting,
    continuation,
    cut_behind,
    stop_words,
)
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.models.language.word_corpus import kind_of
from castalia.nets.language import beam_search, generate
from castalia.objectives import CausalLM
from castalia.objectives.objective import Objective
from castalia.protocols import Spec
from castalia.utils.text import shorten

__all__ = ["NeuralLanguageModel"]


class NextTokenCodec(NoTarget):
    """The next token of each, (N, T), out of the blocks; any y is not used."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return the next tokens; blocks of a corpus and conversations hold theirs themselves."""
        if not isinstance(X, np.ndarray):
            return super().check(est, adapter, X, y)
        return X[:, 1:] if X.ndim == 2 else np.ascontiguousarray(X[:, 1])

    def check_weight(self, est: Any, X: Any, weight: Any) -> None:
        """Refuse weights: a block of tokens holds pieces of several texts."""
        if weight is not None:
            raise InvalidParameter(
                f"{type(est).__name__}: `sample_weight` must be None, since blocks hold pieces of "
                "several texts. Repeat texts instead."
            )

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Return them as they are; of conversations, as long as their rows."""
        found = torch.from_numpy(y)
        if y.ndim == 2 and (y == IGNORED).any():
            return Target(TokenRows(found, answer_lengths(found)), 1)
        return Target(found, 1)


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralLanguageModel(Estimator):
    """Base of networks that predict the next token; a subclass gives ``_network``.

    The network maps ids (B, T) to logits (B, T, V), causally, by ``features`` and ``head``.
    """

    adapter: ClassVar[Any] = Reads(LanguageAdapter, "tokenizer", "context")
    codec: ClassVar[TargetCodec] = NextTokenCodec()
    _bounded: ClassVar[bool] = True  # whether the network reads only so many tokens at once
    _cached: ClassVar[bool] = True  # whether generation keeps what the network saw
    _beam_cache: ClassVar[bool] = False  # and whether beams can share it

    context: Annotated[int, Interval(1, whole=True)] = 128
    tokenizer: Annotated[Any, TokenizerChoice()] = None

    def _objective(self, spec: Spec) -> Objective:
        return CausalLM()

    @property
    def tokenizer_(self) -> Tokenizer | None:
        """The fitted tokenizer, or None where texts are token ids."""
        check_is_fitted(self, "module_")
        found: Tokenizer | None = self.adapter_.tokenizer
        return found

    # -- scoring -------------------------------------------------------------------------------

    def token_log_probabilities(self, X: Any) -> list[np.ndarray]:
        """Return, for each text, log p of each of its tokens and of its end, in nats."""
        check_is_fitted(self, "module_")
        return self._logs(self.adapter_.streams(X, type(self).__name__))

    def _logs(self, streams: Sequence[np.ndarray]) -> list[np.ndarray]:
        return token_log_probabilities(self.module_, streams, self._window())

    def _window(self) -> int | None:
        """Return how many tokens the network reads at once when it scores; None: any number."""
        return int(self.spec_.extra["context"]) if self._bounded else None

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the natural logarithm of each text's probability, its end included, (N,)."""
        return np.array([logs.sum() for logs in self.token_log_probabilities(X)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a token, in nats: minus the logarithm of perplexity.

        Parameters
        ----------
        X
            Texts; they are read one behind the other, as in training.
        y
            Not used.
        """
        check_is_fitted(self, "module_")
        stream = self.adapter_.stream(X, type(self).__name__)
        return float(self._logs([stream])[0].mean())

    def perplexity(self, X: Any) -> float:
        """Return exp of the mean of -log p over all tokens and the end of each text.

        Texts are read one behind the other, as in training, in overlapping windows: every token
        has at least half a context before it, or all there is. The first token is predicted from
        the end token that stands before it; with a tokenizer that has none, it is not counted.
        """
        return float(np.exp(-self.score(X)))

    # -- writing -------------------------------------------------------------------------------

    def next_distribution(self, prompt: Any = "") -> np.ndarray:
        """Return the probability of every token after a prompt, (V,).

        Parameters
        ----------
        prompt
            The beginning of a text, or its token ids.
        """
        check_is_fitted(self, "module_")
        ids = self._prompt(prompt)
        window = self._window()
        ids = ids if window is None else ids[-window:]
        net: Any = self.module_.eval()
        device = next(net.parameters()).device
        with torch.inference_mode():
            h = net.features(torch.tensor([ids], device=device))
            p: np.ndarray = net.head(h[:, -1])[0].double().softmax(dim=-1).cpu().numpy()
        return p

    def predict_next(self, prompt: Any = "", top: int = 1) -> list[Any]:
        """Return the most probable next tokens, best first: pieces of text, or ids.

        Parameters
        ----------
        prompt
            The beginning of a text, or its token ids.
        top
            How many.
        """
        check_setting("top", top, Interval(1, whole=True), f"{type(self).__name__}.predict_next")
        best = np.argsort(-self.next_distribution(prompt), kind="stable")[:top].tolist()
        made = self.tokenizer_
        return best if made is None else [made.decode([i], special=True) for i in best]

    def generate(
        self,
        prompt: Any = "",
        tokens: int = 100,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        beams: int = 1,
        length_penalty: float = 0.0,
        special: bool = False,
        stop: str | Sequence[str] | None = None,
        random_state: Any = None,
    ) -> Any:
        """Continue a prompt and return the whole text, or texts for a list of prompts.

        A text ends after ``tokens`` new tokens, at an end token, or behind a word of ``stop``.
        When it outgrows the context, the network sees its last tokens only.

        Parameters
        ----------
        prompt
            The beginning of a text, or several; lists of token ids give lists of token ids.
        tokens
            Most tokens to add.
        temperature
            0 takes the most probable token; otherwise tokens are drawn, from a flatter distribution
            the larger it is.
        top_k
            Draw among this many of the most probable tokens; None: among all.
        top_p
            Draw among the fewest tokens that hold this much probability, above 0 and at most 1.
        repetition_penalty
            Above 1, tokens that occurred become less probable.
        beams
            Above 1, nothing is drawn: the most probable of the texts that stay among the best so
            many, as in transformers.
        length_penalty
            The exponent a of log p / n^a, by which texts of n new tokens compete in such a search.
        special
            Whether special tokens written in a prompt, such as ``<|endoftext|>``, are meant.
        stop
            A piece of text that ends the writing, or several.
        random_state
            Seed; that of the model when None.
        """
        check_is_fitted(self, "module_")
        name = f"{type(self).__name__}.generate"
        check_setting("tokens", tokens, Interval(1, whole=True), name)
        check_setting("temperature", temperature, Interval(0), name)
        check_setting("beams", beams, Interval(1, whole=True), name)
        cut = stop_words(stop, name)
        several = _is_several(prompt)
        prompts = [self._prompt(text, special) for text in (prompt if several else [prompt])]
        settings: dict[str, Any] = {"tokens": tokens, "stop": self.adapter_.stops, "pad": -1}
        drawn: dict[str, Any] = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "repetition_penalty": repetition_penalty,
        }
        if beams > 1:
            check_setting("length_penalty", length_penalty, Interval(0), name)
            _refuse_draws(drawn, name)
            search = {**settings, "beams": beams, "length_penalty": length_penalty}
            fits = max(map(len, prompts)) + tokens <= (self._window() or 0)
            cached = self._beam_cache and self._caches() and fits
            found = beam_search(self.module_, prompts, **search, cached=cached).ids[:, 0]
        else:
            seed = self.random_state if random_state is None else random_state
            how: dict[str, Any] = {"cached": self._caches(), "slide": True, "random_state": seed}
            found = generate(self.module_, prompts, **settings, **drawn, **how)
        new = found.tolist()
        if not several:
            return self._worded(prompt, new[0], cut)
        return [self._worded(text, row, cut) for text, row in zip(prompt, new, strict=True)]

    def _caches(self) -> bool:
        """Whether the network keeps what it saw while it writes."""
        return self._cached

    def _worded(self, prompt: Any, new: list[int], stop: list[str]) -> Any:
        """Return a prompt and what was written behind it, up to the first end."""
        ends = (-1, *self.adapter_.stops)
        new = [i for i in new if i not in ends]
        if not isinstance(prompt, str):
            return [*map(int, prompt), *new]
        made: Any = self.tokenizer_
        new = [i for i in new if i < len(made)]  # a network may have more ids, without a meaning
        return prompt + cut_behind(continuation(made, made.encode(prompt), new), stop)

    def _prompt(self, prompt: Any, special: bool = False) -> list[int]:
        """Return the ids of a prompt behind what begins every text."""
        name, adapter = f"{type(self).__name__}.generate", self.adapter_
        begin = adapter.frame[0]
        if not isinstance(prompt, str):
            found = [*begin, *adapter._known(_as_ids(prompt, name), name).tolist()]
            return self._begun(found, name)
        if adapter.tokenizer is None:
            raise InvalidData(
                f"{name}: it was fitted on token ids; the prompt must be a list of them, got "
                f"{shorten(repr(prompt), 40)}."
            )
        ids = adapter.tokenizer.encode(prompt, special=special)
        begin = [] if special and ids[:1] == begin else begin  # it is written there
        self._tell_unknown(prompt, ids)
        return self._begun([*begin, *ids], name)

    def _begun(self, ids: list[int], name: str) -> list[int]:
        """Refuse a prompt that gives the network nothing to begin with."""
        if not ids:
            raise InvalidData(
                f"{name}: `prompt` must hold at least one token, since the tokenizer has no token "
                "that begins a text; got an empty one."
            )
        return ids

    def _tell_unknown(self, prompt: str, ids: list[int]) -> None:
        unknown = self.adapter_.tokenizer.find_id("unknown")
        count = ids.count(unknown) if unknown is not None else 0
        if count:
            warnings.warn(
                f"{type(self).__name__}.generate: {count} of {len(ids)} tokens of the prompt "
                f"{shorten(repr(prompt), 40)} were not in the training texts; the model reads them "
                "as unknown.",
                DataWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _refuse_draws(drawn: dict[str, Any], name: str) -> None:
    """Refuse settings of draws beside beams, which draw nothing."""
    usual = {"temperature": (0, 1), "top_k": (None,), "top_p": (1,), "repetition_penalty": (1,)}
    for key, value in drawn.items():
        if value not in usual[key]:
            raise InvalidParameter(
                f"{name}: `{key}` must be left out with beams, which draw nothing; got {value!r}."
            )


def _is_several(prompt: Any) -> bool:
    """Whether a prompt is a list of them: of texts, or of rows of token ids."""
    if hasattr(prompt, "ndim") and prompt.ndim != 1:
        return bool(prompt.ndim == 2)
    if not isinstance(prompt, list | tuple | np.ndarray) or not len(prompt):
        return False
    return all(isinstance(each, str | list | tuple | np.ndarray | Tensor) for each in prompt)


def _as_ids(prompt: Any, name: str) -> np.ndarray:
    """Return the token ids of a prompt; refuse anything else."""
    if hasattr(prompt, "__len__") and not len(prompt):
        return np.zeros(0, dtype=np.int64)
    if kind_of(name, [prompt]) != "ids":
        raise InvalidData(
            f"{name}: a prompt must be a text or a list of token ids; got "
            f"{shorten(repr(prompt), 40)}."
        )
    return np.asarray(prompt, dtype=np.int64)
