"""Language models that count n-grams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from castalia.base import Constraint, DirectEstimator, Interval, OneOf
from castalia.data.text import choose_tokenizer
from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.language.generated_text import (
    check_setting,
    continuation,
    cut_behind,
    stop_words,
)
from castalia.models.language.ngrams import smoothing_methods as smoothing
from castalia.models.language.ngrams.interpolation_weights import fit_shares, shares_of, weights_of
from castalia.models.language.ngrams.ngram_counts import count_ngrams
from castalia.models.language.ngrams.ngram_table import Table
from castalia.models.language.ngrams.smoothing_methods import Counted
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.models.language.word_corpus import (
    Corpus,
    kind_of,
    learn_words,
    make_vocabulary,
    opened,
    pack,
    tokenizer_vocabulary,
    without_end,
)
from castalia.nets.language import Picker
from castalia.utils.seeds import seed_from
from castalia.utils.text import shorten

__all__ = ["NGramLanguageModel"]

SMOOTHINGS = ("kneser-ney", "linear", "katz", "stupid", "additive", "epsilon", "likelihood")


class Weights(Constraint):
    """Numbers of at least 0 that sum to one, or None."""

    def rule(self) -> str:
        """Say so."""
        return "numbers of at least 0 that sum to one, or None"

    def holds(self, value: Any) -> bool:
        """Whether they are."""
        if value is None:
            return True
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray):
            return False
        found = np.asarray(value)
        numbers = found.ndim == 1 and found.dtype.kind in "fiu"
        return numbers and bool((found >= 0).all()) and abs(float(found.sum()) - 1) < 1e-6


@dataclass(kw_only=True, eq=False, repr=False)
class NGramLanguageModel(DirectEstimator):
    """Language model by counting: the next word depends on the n - 1 before it.

    p(x_1 … x_T) = prod_t p(x_t | x_(t-n+1) … x_(t-1)), estimated from how often n-grams occur; a
    smoothing says what becomes of those that did not. Fitted in one pass and hard to beat on little
    text; it knows nothing beyond n words and nothing of likeness between words, as neural models
    do.

    Parameters
    ----------
    order
        Length n of the n-grams; larger ones need more text.
    smoothing
        ``"kneser-ney"``: a discount, and below the highest order in how many contexts a word was
        seen; the best in nearly all cases. ``"linear"``: all orders, weighted. ``"katz"``: the
        longest context in which the word was seen, discounted after Good and Turing. ``"stupid"``:
        the same with a fixed factor of 0.4, divided so that it sums to one. ``"additive"``:
        ``alpha`` more of everything. ``"epsilon"``: nothing below ``epsilon``.
        ``"likelihood"``: none; what was not seen is impossible.
    modified
        Whether Kneser–Ney takes three discounts, for counts of 1, 2 and more, instead of one.
    alpha
        What ``"additive"`` adds to every count.
    epsilon
        The smallest probability of ``"epsilon"``, before all are divided by their sum.
    weights
        Those of ``"linear"`` for the orders 0 (uniform), 1, … n; None fits them.
    validation
        Share of the texts on which the weights are fitted; afterwards all texts are counted.
    boundaries
        Whether a text begins after ``<s>`` and ends with ``</s>``, which is predicted too. Without
        them the first word is predicted from nothing.
    min_count
        Words seen more rarely are counted as ``<unk>``; only without a tokenizer.
    tokenizer
        Cuts texts: a tokenizer of ``castalia.data.tokenizers``, which is fitted unless it is, or
        the name of one, such as ``"characters"``. None cuts at white space.

    Attributes
    ----------
    vocabulary_ : Vocabulary
        The words and their numbers.
    table_ : Table
        Probabilities of the n-grams and weights of their contexts.
    tokenizer_ : Tokenizer or None
        The tokenizer in use.
    n_ngrams_ : ndarray of shape (n,)
        How many different 1-grams … n-grams were seen.
    n_possible_ : list of int
        How many there could be, V, V^2 … V^n of V words, ``</s>`` and ``<unk>`` among them.
    weights_ : ndarray of shape (n + 1,)
        Weights of ``"linear"``, uniform distribution first; empty for the others.
    kind_ : str
        What X was: ``"text"``, ``"words"`` or ``"ids"``.

    Shapes
    ------
    X: N texts, as strings, lists of words or arrays of whole numbers; scores (N,).

    Notes
    -----
    Perplexity is exp of the mean of -log p over all predicted words: those of the texts and, with
    ``boundaries``, one ``</s>`` a text; ``<s>`` is not counted. Unknown words count as ``<unk>``.
    The n-grams are sorted arrays: T words cost O(n T log T) time and about 24 bytes an n-gram;
    a million words of 5-grams take seconds. Every smoothing sums to one after every context, seen
    or not; an unseen context gives way to the longest part of it that was seen.

    References
    ----------
    1999, Chen, Goodman, An empirical study of smoothing techniques for language modeling.
    1995, Kneser, Ney, Improved backing-off for m-gram language modeling. 1987, Katz, Estimation of
    probabilities from sparse data. 2007, Brants et al., Large language models in machine
    translation.

    See Also
    --------
    castalia.evaluate.perplexity : the same measure from probabilities.

    Examples
    --------
    >>> texts = ["the dog bit the man", "the man saw the dog", "a dog saw a man"]
    >>> model = NGramLanguageModel(order=2).fit(texts)
    >>> model.predict_next("a dog bit")
    ['the']
    >>> model.perplexity(["the dog saw the man"]) < model.perplexity(["man the saw dog the"])
    True
    """

    _unsaved: ClassVar[tuple[str, ...]] = ()

    order: Annotated[int, Interval(1, whole=True)] = 3
    smoothing: Annotated[str, OneOf(*SMOOTHINGS)] = "kneser-ney"
    modified: Annotated[bool, OneOf(True, False)] = True
    alpha: Annotated[float, Interval(0, closed="neither")] = 1.0
    epsilon: Annotated[float, Interval(0, 1, closed="neither")] = 1e-5
    weights: Annotated[Any, Weights()] = None
    validation: Annotated[float, Interval(0, 1, closed="neither")] = 0.1
    boundaries: Annotated[bool, OneOf(True, False)] = True
    min_count: Annotated[int, Interval(1, whole=True)] = 1
    tokenizer: Annotated[Any, TokenizerChoice()] = None

    # -- fitting -------------------------------------------------------------------------------

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        if sample_weight is not None:
            raise InvalidParameter(
                "NGramLanguageModel: `sample_weight` must be None, since n-grams are counted in "
                "whole numbers. Repeat texts instead."
            )
        counted = self._counted(X)
        self.weights_ = np.zeros(0)
        self.table_ = self._table(counted, X)
        self.n_ngrams_ = np.array([int((level.counts > 0).sum()) for level in counted.levels])
        words = int(self.vocabulary_.outcomes.sum())
        self.n_possible_ = [words**n for n in range(1, self.order + 1)]

    def _counted(self, corpus: Corpus) -> Counted:
        levels = count_ngrams(corpus, self.vocabulary_.size, self.order)
        return Counted(levels, self.vocabulary_.outcomes, self.boundaries)

    def _table(self, counted: Counted, corpus: Corpus) -> Table:
        ways: dict[str, Callable[[Counted], Table]] = {
            "kneser-ney": partial(smoothing.kneser_ney, modified=self.modified),
            "katz": smoothing.katz,
            "stupid": smoothing.stupid,
            "additive": partial(smoothing.additive, alpha=self.alpha),
            "epsilon": partial(smoothing.floor, epsilon=self.epsilon),
            "likelihood": smoothing.likelihood,
        }
        if self.smoothing != "linear":
            return ways[self.smoothing](counted)
        shares = self._shares(corpus)
        self.weights_ = weights_of(shares)
        return smoothing.linear(counted, shares)

    def _shares(self, corpus: Corpus) -> np.ndarray:
        if self.weights is not None:
            if len(self.weights) != self.order + 1:
                raise InvalidParameter(
                    f"NGramLanguageModel: `weights` must be {self.order + 1} numbers, for the "
                    f"orders 0 … {self.order}; got {len(self.weights)}."
                )
            return shares_of(np.asarray(self.weights, dtype=float))
        every = max(2, round(1 / self.validation))
        held_out = np.arange(len(corpus)) % every == every - 1
        if not held_out.any():
            raise InvalidData(
                f"NGramLanguageModel: fitting the weights of `linear` needs at least {every} texts "
                f"with validation={self.validation:g}; got {len(corpus)}. Cut the texts into "
                "shorter ones, raise `validation` or give `weights`."
            )
        return fit_shares(self._counted(corpus.take(~held_out)), corpus.take(held_out))

    # -- reading texts -------------------------------------------------------------------------

    def _matrix(self, X: Any, *, reset: bool = False) -> Any:
        name = type(self).__name__
        X = opened(X, name)
        kind = kind_of(name, X)
        if reset:
            self._learn_vocabulary(X, kind)
        elif kind != self.kind_ and self.kind_ == "ids":
            raise InvalidData(f"{name}: it was fitted on numbers; X must hold numbers, too.")
        corpus = pack(self._numbers(X, kind), self.vocabulary_, boundaries=self.boundaries)
        if reset and not self.vocabulary_.outcomes[corpus.ids].any():
            raise InvalidData(f"{name}: the texts must hold at least one word; got none.")
        return corpus

    def _learn_vocabulary(self, X: Any, kind: str) -> None:
        self.kind_, self.tokenizer_ = kind, None
        if self.tokenizer is not None and kind != "words":
            self.tokenizer_ = self._fitted_tokenizer(X, kind)
            self.vocabulary_ = tokenizer_vocabulary(self.tokenizer_)
        elif kind == "ids":
            most = max((int(np.max(text)) for text in X if len(text)), default=-1)
            self.vocabulary_ = make_vocabulary(None, most + 1, ())
        else:
            self.vocabulary_ = learn_words([_split(text) for text in X], self.min_count)
        if not self.boundaries:
            self.vocabulary_ = without_end(self.vocabulary_)

    def _fitted_tokenizer(self, X: Any, kind: str) -> Tokenizer:
        if kind == "ids" and not hasattr(self.tokenizer, "backend_"):
            raise InvalidParameter(
                "NGramLanguageModel: `tokenizer` must be fitted where X holds numbers."
            )
        return choose_tokenizer(self.tokenizer, list(X), "NGramLanguageModel")

    def _numbers(self, X: Any, kind: str) -> list[Any]:
        """Return the numbers of the words of each text."""
        if kind == "ids":
            return [self._checked(np.asarray(text)) for text in X]
        if self.tokenizer_ is not None and kind == "text":
            return self.tokenizer_.encode(list(X))
        numbers, unknown = self._index(), self.vocabulary_.unknown
        return [[numbers.get(word, unknown) for word in _split(text)] for text in X]

    def _index(self) -> dict[str, int]:
        """Return the numbers of words that may stand in a text."""
        words = self.vocabulary_.words or []
        return {word: i for i, word in enumerate(words[:-2])}

    def _checked(self, ids: np.ndarray) -> np.ndarray:
        bad = (ids < 0) | (ids >= self.vocabulary_.size - 2)
        if bad.any():
            raise InvalidData(
                f"NGramLanguageModel: numbers must be at least 0 and below "
                f"{self.vocabulary_.size - 2}, as in fit; got {ids[bad][0]}."
            )
        return ids

    # -- scoring -------------------------------------------------------------------------------

    def _log_probabilities(self, X: Any) -> tuple[Corpus, np.ndarray, np.ndarray]:
        """Return the corpus, log p of every word, and which words are predicted."""
        check_is_fitted(self, "table_")
        corpus = self._matrix(X)
        predicted = corpus.ids != self.vocabulary_.begin
        p = self.table_.probabilities(corpus)
        with np.errstate(divide="ignore"):
            return corpus, np.log(np.where(predicted, p, 1.0)), predicted

    def score_samples(self, X: Any) -> np.ndarray:
        """Return the natural logarithm of each text's probability, (N,)."""
        corpus, logs, _ = self._log_probabilities(X)
        return np.bincount(corpus.text, weights=logs, minlength=len(corpus))

    def token_log_probabilities(self, X: Any) -> list[np.ndarray]:
        """Return, for each text, the natural logarithm of every predicted word's probability."""
        corpus, logs, predicted = self._log_probabilities(X)
        sizes = np.bincount(corpus.text[predicted], minlength=len(corpus))
        return np.split(logs[predicted], np.cumsum(sizes)[:-1])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of a word, in nats: minus the logarithm of perplexity."""
        _, logs, predicted = self._log_probabilities(X)
        if not predicted.any():
            raise InvalidData(
                "NGramLanguageModel: the texts must hold at least one word to be scored; got none."
            )
        return float(logs.sum() / predicted.sum())

    def perplexity(self, X: Any) -> float:
        """Return exp of the mean of -log p over all predicted words, ``</s>`` included."""
        return float(np.exp(-self.score(X)))

    # -- what comes next -----------------------------------------------------------------------

    def next_distribution(self, context: Any = "") -> np.ndarray:
        """Return the probability of every word of ``vocabulary_`` after a context, (V,).

        Parameters
        ----------
        context
            The beginning of a text: a string, a list of words or of numbers.
        """
        check_is_fitted(self, "table_")
        return self._after(self._context(context))

    def _after(self, context: list[int]) -> np.ndarray:
        return self.table_.distribution(context, self.vocabulary_.outcomes)

    def _context(self, prompt: Any) -> list[int]:
        """Return the numbers of a prompt, behind ``<s>`` where texts have one."""
        if hasattr(prompt, "__len__") and not len(prompt):
            numbers: list[int] = []
        elif isinstance(prompt, str) and self.kind_ == "ids" and self.tokenizer_ is None:
            raise InvalidData(
                f"NGramLanguageModel: it was fitted on numbers; the prompt must be a list of them, "
                f"got {shorten(repr(prompt))}."
            )
        else:
            kind = kind_of(type(self).__name__, [prompt])
            numbers = [int(i) for i in self._numbers([prompt], kind)[0]]
        return [self.vocabulary_.begin, *numbers] if self.boundaries else numbers

    def predict_next(self, context: Any = "", top: int = 1) -> list[Any]:
        """Return the most probable next words, best first."""
        check_setting("top", top, Interval(1, whole=True), "NGramLanguageModel.predict_next")
        p = self.next_distribution(context)
        best = np.argsort(-p, kind="stable")[:top]
        words = self.vocabulary_.words
        return [int(i) if words is None else words[i] for i in best]

    def rank(self, context: Any, endings: Sequence[Any]) -> np.ndarray:
        """Return the log-probability of each ending after a context, (K,); the largest fits best.

        Parameters
        ----------
        context
            The beginning of a text, as a string or a list.
        endings
            Continuations of it, of the same type; strings are joined by a space.
        """
        check_is_fitted(self, "table_")
        start = self._context(context)
        if isinstance(context, str):
            texts: list[Any] = [f"{context} {ending}" for ending in endings]
        else:
            texts = [[*context, *ending] for ending in endings]
        found = self.token_log_probabilities(texts)
        skip = len(start) - self.boundaries
        return np.array([logs[skip : len(logs) - self.boundaries].sum() for logs in found])

    # -- generating ----------------------------------------------------------------------------

    def generate(
        self,
        prompt: Any = "",
        tokens: int = 50,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        stop: str | Sequence[str] | None = None,
        random_state: Any = None,
    ) -> Any:
        """Continue a prompt and return the whole text; unknown words are never drawn.

        Parameters
        ----------
        prompt
            The beginning of a text; what comes back is of its type: a string, a list of words or
            of numbers.
        tokens
            Most words to add; with ``boundaries`` the text may end before.
        temperature
            Below 1, probable words become more so; 0 takes the most probable one.
        top_k
            Draw among this many of the most probable words only.
        top_p
            Draw among the fewest words that hold this much probability, above 0 and at most 1.
        repetition_penalty
            Above 1, words that occurred become less probable: p^penalty.
        stop
            A piece of text that ends the writing, or several; for a prompt that is a string.
        random_state
            Seed; that of the model when None.
        """
        check_is_fitted(self, "table_")
        name = "NGramLanguageModel.generate"
        check_setting("tokens", tokens, Interval(0, whole=True), name)
        check_setting("temperature", temperature, Interval(0), name)
        check_setting("top_k", top_k, Interval(1, whole=True, optional=True), name)
        pick, cut = Picker(temperature, top_k, top_p, repetition_penalty), stop_words(stop, name)
        seed = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_from(seed))
        given = self._context(prompt)
        ids = list(given)
        while len(ids) < len(given) + tokens:
            p = self._after(ids[-self.order :])
            choice = _draw(self._known(p), ids, pick, rng)
            if self.boundaries and choice == self.vocabulary_.end:
                break
            ids.append(choice)
        return self._worded(prompt, given[self.boundaries :], ids[len(given) :], cut)

    def sample(self, n_samples: int = 1, length: int = 1000, random_state: Any = None) -> list[Any]:
        """Draw whole texts."""
        seed = self.random_state if random_state is None else random_state
        rng = np.random.default_rng(seed_from(seed))
        empty: Any = "" if self.kind_ == "text" else []
        return [self.generate(empty, length, random_state=rng) for _ in range(n_samples)]

    def _known(self, p: np.ndarray) -> np.ndarray:
        """Leave out the unknown word, unless there is no other."""
        unknown = self.vocabulary_.unknown
        if unknown < 0 or p[unknown] >= 1 - 1e-9:
            return p
        p[unknown] = 0.0
        return p

    def _worded(self, prompt: Any, given: list[int], new: list[int], stop: list[str]) -> Any:
        """Return a prompt and the words behind it."""
        words = self.vocabulary_.words
        if isinstance(prompt, str) and self.tokenizer_ is not None:
            return prompt + cut_behind(continuation(self.tokenizer_, given, new), stop)
        numbers = self.kind_ == "ids" if not len(prompt) else not isinstance(prompt[0], str)
        if words is None or (numbers and not isinstance(prompt, str)):
            return [*given, *new]
        written = [words[i] for i in new]
        if not isinstance(prompt, str):
            return [*prompt, *written]
        space = " " if written and prompt and not prompt[-1].isspace() else ""
        return prompt + cut_behind(space + " ".join(written), stop)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.no_validation = True
        return tags


def _split(text: Any) -> Sequence[str]:
    return text.split() if isinstance(text, str) else text


def _draw(p: np.ndarray, used: list[int], pick: Picker, rng: np.random.Generator) -> int:
    """Draw a word."""
    with np.errstate(divide="ignore"):
        logs = torch.from_numpy(np.log(p))
    before = torch.zeros(len(p), dtype=torch.bool)
    before[used] = True
    scores = pick.scores(logs[None], before[None])[0]
    if pick.temperature == 0:
        return int(scores.argmax())
    return int(rng.choice(len(p), p=scores.softmax(dim=0).numpy()))
