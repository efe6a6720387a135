"""A running text: the next token is predicted from those before it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from castalia.catalog import System, system_for
from castalia.data.text import choose_tokenizer
from castalia.data.tokenizers import CharTokenizer, Tokenizer
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds.kind import Asked, Kind, NewRows, refuse
from castalia.method.task import Task
from castalia.method.texts.fit_texts import holds_text, read_lines, read_running
from castalia.method.texts.passages import SHORTEST, Passages, cut_passages
from castalia.method.texts.surprisal import surprises
from castalia.method.texts.text_baselines import ngram_order
from castalia.method.texts.text_model import build_language_model, choose_language_model
from castalia.method.texts.text_panels import continuations, hardest
from castalia.method.train_test_split import LEAST_ROWS, Part, same_rows
from castalia.method.verdict import Verdict
from castalia.models.language import NGramLanguageModel
from castalia.utils.text import listing, plural, shorten

__all__ = ["Prose"]

SHORT = 100_000  # characters
UNKNOWN = 8  # characters in a remark


class Prose(Kind):
    """A text file, tested at its end."""

    catalog = "text"
    other = "gpt"
    tries: ClassVar = {"hidden": (512, 1024), "context": (128, 256)}
    searched = checked = False
    direct = None

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("text", "task", "group", "time"), "a running text, which has no columns")
        self.text = read_running(plan.data)
        self.X = cut_passages(self.text)
        if len(self.X) < LEAST_ROWS:
            raise InvalidData(
                f"fit: `{plan.data}` must have {LEAST_ROWS * SHORTEST} characters or more to train "
                f"and test; got {len(self.text):,}. Take a longer text."
            )
        self.parts = _parts(len(self.X), plan)
        self._tokenizers: dict[bytes, Tokenizer] = {}
        self.tokens = self._tokenizer(self.parts[0].train)
        unit = "character" if isinstance(self.tokens, CharTokenizer) else "token"
        self.target = f"next {unit}"
        why = "the file is a running text"
        self.task = Task("language modelling", why, self.X.sizes(), np.array([]), "passage")
        self._check_context(unit)
        self.notes = self._remarks(unit)

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names a running text."""
        return holds_text(plan.data, plan.target)

    def _tokenizer(self, rows: np.ndarray) -> Tokenizer:
        """Return the tokenizer that a network learns from some passages."""
        mark = rows.tobytes()
        if mark not in self._tokenizers:
            asked = getattr(self.build(len(rows)), "tokenizer", None)
            texts = self.X.take(rows).texts()
            self._tokenizers[mark] = choose_tokenizer(asked, texts, "fit")
        return self._tokenizers[mark]

    def _check_context(self, unit: str) -> None:
        """Refuse a text that does not fill one block of the training."""
        train = self.X.take(self.parts[0].train).texts()
        found = sum(map(len, self.tokens.encode(train)))
        context = getattr(self.build(len(self.X)), "context", 0)
        if found <= context:
            raise InvalidData(
                f"fit: the training part of {self.plan.name} must be longer than the context of "
                f"{context} {unit}s; it has {found:,}. Take a longer text, or --set context="
                f"{max(1, found // 8)}."
            )

    def _remarks(self, unit: str) -> list[str]:
        """Say which choices were made, and what the tested part has that the rest has not."""
        found = []
        if self.plan.model is None:
            name, why = choose_language_model(len(self.text), self.plan.device)
            other = "rnn" if name.startswith("GPT") else "gpt"
            found.append(f"{name} is taken, as {why} (--model {other} for another).")
        if "tokenizer" not in self.plan.settings:
            pieces = f"{self._different:,} different {unit}s"
            other = "byte-bpe" if unit == "character" else "characters"
            found.append(f"The text is read as {pieces} (--set tokenizer={other} for another way).")
        part = self.parts[0]
        known = set().union(*self.X.take(part.train).pieces)
        new = sorted(set().union(*self.X.take(part.test).pieces) - known)
        if new and unit == "character":
            said = listing([shorten(repr(c)[1:-1], 8) for c in new], "and", UNKNOWN)
            found.append(
                f"{plural(len(new), 'character')} of the tested part, {said}, "
                f"{'is' if len(new) == 1 else 'are'} nowhere else and read as unknown."
            )
        return found

    @property
    def _different(self) -> int:
        return len(self.tokens) - len(self.tokens.special)

    def fingerprint(self) -> str:
        """Return a mark of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Count characters, words and lines."""
        words, lines = len(self.text.split()), self.text.count("\n") + 1
        what = f"{len(self.text):,} characters, {plural(words, 'word')}, {plural(lines, 'line')}"
        return {"source": str(self.plan.data), "what": what}

    def rows(self, index: np.ndarray) -> tuple[Any, np.ndarray]:
        """Return passages as texts, those that follow each other in one, and their lengths."""
        return self.X.take(index).texts(), self.task.y[index]

    def hold_validation(
        self, rows: np.ndarray, share: float
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Cut the last of the training passages off."""
        size = int(len(rows) * share) if 0 < share < 1 else 0
        return (rows[:-size], rows[-size:]) if size else None

    @property
    def baselines(self) -> dict[str, str]:
        """Single tokens and n-grams, counted."""
        return {"guess": "Guessing", "ngrams": f"{ngram_order(self.tokens)}-gram (Kneser–Ney)"}

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Count n-grams of the training passages."""
        begin = time.perf_counter()
        tokenizer = self._tokenizer(part.train)
        order = 1 if key == "guess" else ngram_order(tokenizer)
        model = NGramLanguageModel(order=order, tokenizer=tokenizer)
        model.fit(self.X.take(part.train).texts())
        seconds = time.perf_counter() - begin
        return model, Answers(surprises(model, self.X.take(part.test)), seconds=seconds)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline counts."""
        unit = self.target.removeprefix("next ")
        if key == "guess":
            return f"by how often each {unit} occurs (unigram)"
        return f"counts of {ngram_order(self.tokens)} {unit}s in a row, smoothed"

    def usual_model(self) -> str:
        """Return a recurrent network, or attention for much text on a GPU."""
        return choose_language_model(len(self.text), self.plan.device)[0]

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted language model, sized for so many passages."""
        characters = int(rows / len(self.X) * len(self.text))
        return build_language_model(self.plan, self.system, characters, seed)

    @property
    def system(self) -> System:
        """The system that the plan names, or the one that suits the text."""
        name = self.plan.model or self.usual_model()
        return system_for("language modelling", name, self.catalog)

    @property
    def title(self) -> str:
        """What is modelled."""
        return f"Language model of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what a short text suggests."""
        if len(self.text) >= SHORT:
            return []
        return [
            f"The text has only {len(self.text):,} characters: more text changes more than "
            "settings."
        ]

    def described(self) -> dict[str, Any]:
        """Return lengths, and how the text is read."""
        unit = self.target.removeprefix("next ")
        return {
            "facts": {
                "Characters": f"{len(self.text):,}",
                "Words": f"{len(self.text.split()):,}",
                "Read as": f"{unit}s, {self._different:,} different ones",
                "Passages": f"{len(self):,} of some {int(np.median(self.task.y)):,} characters",
            }
        }

    def split_words(self) -> str:
        """Say which passages are tested."""
        if self.plan.cv:
            return f"{self.plan.cv} folds of passages that follow each other"
        return f"the last {100 * self.plan.test:.0f} % of the text tested, in passages"

    def split_sizes(self, facts: Mapping[str, Any]) -> dict[str, int]:
        """Return the characters of each part."""
        train, test = (int(self.task.y[rows].sum()) for rows in _first(self.parts))
        if self.plan.cv:
            return {f"each of {self.plan.cv} folds tested, characters": test}
        training = getattr(self.build(len(self.X)), "training", None)
        cut = training and self.hold_validation(self.parts[0].train, training.validation)
        held = int(self.task.y[cut[1]].sum()) if cut else 0
        return {"train": train - held, "validation": held, "test": test}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return passages as they are."""
        return [{"row": {"passage": self.X.pieces[row]}} for row in rows]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show how the model writes, and what it could not foresee."""
        test = self.X.take(tested)
        return {"panels": [continuations(model, test, self.plan.seed), hardest(test, answers)]}

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model gives tokens probabilities."""
        return hasattr(model, "token_log_probabilities")

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read the lines of one text, blank ones left out."""
        if len(data) != 1:
            raise InvalidParameter(
                f"predict: a language model takes one text file; got {len(data)}."
            )
        lines = [line for line in read_lines(data[0], "predict") if line.strip()]
        _check_tokenizer(model, "predict")
        return NewRows(lines, {"text": np.array(lines, dtype=object)})

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read a text whose passages are to be foreseen."""
        _check_tokenizer(model, "evaluate")
        passages = cut_passages(read_running(data, "evaluate"))
        unit = "character" if isinstance(model.tokenizer_, CharTokenizer) else "token"
        return NewRows(passages, target=f"next {unit}", y=passages.sizes(), unit="passage")

    @staticmethod
    def known_task(model: Any, rows: NewRows) -> Task:
        """Foreseeing the passages."""
        return Task("language modelling", "", np.asarray(rows.y), np.array([]), "passage")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return how many bits a character of each line takes, each read by itself."""
        bits, tokens = surprises(model, Passages(X, 2 * np.arange(len(X)))).T
        sizes = np.array([len(line) for line in X])
        return {"tokens": tokens.astype(int), "bits_per_character": bits / sizes}


def _first(parts: list[Part]) -> tuple[np.ndarray, np.ndarray]:
    return parts[0].train, parts[0].test


def _parts(passages: int, plan: FitPlan) -> list[Part]:
    """Test the end of the text, or each of some parts that follow each other."""
    places = np.arange(passages)
    if plan.cv:
        return [
            Part(f"fold-{i + 1}", np.setdiff1d(places, held), held, i)
            for i, held in enumerate(np.array_split(places, plan.cv))
        ]
    size = max(1, int(passages * plan.test))
    return same_rows(Part("", places[:-size], places[-size:]), plan.seeds or 1)


def _check_tokenizer(model: Any, owner: str) -> None:
    if model.tokenizer_ is None:
        raise InvalidData(
            f"{owner}: the language model must have a tokenizer; it was fitted on words or token "
            "ids."
        )
