"""Two texts whose lines are translations of each other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds.kind import Asked, Kind, NewRows, refuse
from castalia.method.task import Task
from castalia.method.texts.fit_texts import is_pair, read_lines, read_pairs
from castalia.method.texts.text_model import build_translator
from castalia.method.texts.text_panels import translations
from castalia.method.train_test_split import Part, RowKeys, make_parts
from castalia.method.verdict import Verdict
from castalia.utils.text import listing, plural

__all__ = ["ParallelTexts"]

FEW = 10_000  # pairs
_PAIR = "two files, which are taken as translations of each other"
MOST_TESTED = 2_000  # pairs that are enough to compare by


class ParallelTexts(Kind):
    """Pairs of texts, one to be translated and one that is its translation."""

    catalog = "text"
    tries: ClassVar = {"dim": (256, 512), "epochs": (30, 60)}
    slow = True
    searched = checked = False

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        refuse(plan, ("target", "text", "task", "group", "time"), _PAIR)
        self.pairs = read_pairs(plan.data)
        self.target = self.pairs.names[1]
        self.X = np.array(self.pairs.sources, dtype=object)
        y = np.array(self.pairs.targets, dtype=object)
        why = "two files are taken as translations of each other"
        self.task = Task("translation", why, y, np.array([]), "pair")
        groups = np.unique(self.X.astype(str), return_inverse=True)[1]  # a source is on one side
        self.parts, more = make_parts(self.pairs, self.task, plan, RowKeys(groups), repeats=1)
        self.notes = [*self.pairs.notes, *more, *self._remarks()]

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names several files."""
        return is_pair(plan.data)

    def _remarks(self) -> list[str]:
        """Test no more pairs than are needed, and say so."""
        found = []
        if not self.plan.cv and len(self.parts[0].test) > MOST_TESTED:
            self.parts = [_fewer_tested(part) for part in self.parts]
            found.append(f"{MOST_TESTED:,} pairs are tested, which is enough; the others train.")
        same = float(np.mean(self.task.y == self.X))
        if same > 0.5:
            found.append(
                f"{100 * same:.0f} % of the pairs are equal texts: is one file given twice?"
            )
        return found

    def fingerprint(self) -> str:
        """Return a mark of both texts."""
        text = repr([self.pairs.sources, self.pairs.targets])
        return hashlib.sha256(text.encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Count pairs and words."""
        words = [sum(len(line.split()) for line in side) for side in self._sides]
        said = f"{words[0]:,} and {words[1]:,} words"
        return {"source": self.pairs.source, "what": f"{plural(len(self), 'pair')}, {said}"}

    @property
    def _sides(self) -> tuple[list[str], list[str]]:
        return self.pairs.sources, self.pairs.targets

    @property
    def baselines(self) -> dict[str, str]:
        """Translating nothing."""
        return {"copy": "Copying the source"}

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Return the sources."""
        return None, Answers(self.X[part.test].astype(str))

    def baseline_note(self, key: str) -> str:
        """Say why it scores at all."""
        return "names, numbers and signs are often the same in both"

    def usual_model(self) -> str:
        """Return an encoder and decoder of attention."""
        return "Transformer"

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted translator, sized for so many pairs."""
        sides = self._sides
        words = int(np.percentile([len(line.split()) for side in sides for line in side], 99))
        characters = sum(len(line) for side in sides for line in side)
        return build_translator(self.plan, self.system, rows, words, characters, seed)

    @property
    def title(self) -> str:
        """From what to what."""
        return f"Translation from {self.pairs.names[0]} to {self.target}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what few pairs suggest."""
        if len(self) >= FEW:
            longer = "Train longer or larger (--set epochs=30, --set dim=256), best on a GPU."
            return [] if verdict.outcome == "better" else [longer]
        return [
            f"There are only {plural(len(self), 'pair')}: a translator from scratch wants ten "
            "thousand or more; otherwise continue from a pretrained T5 or BART in Python."
        ]

    def described(self) -> dict[str, Any]:
        """Return lengths and vocabularies."""
        facts = {}
        for name, side in zip(self.pairs.names, self._sides, strict=True):
            lengths = [len(line.split()) for line in side]
            different = len({word for line in side for word in line.split()})
            facts[f"Words of {name}"] = (
                f"{different:,} different ones; {np.median(lengths):.0f} a line, {max(lengths):,} "
                "at most"
            )
        return {"facts": facts}

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the sources."""
        return [{"row": {"source": self.X[row]}} for row in rows]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show translations beside their references."""
        said = answers.prediction.tolist()
        shown = translations(self.X[tested], self.task.y[tested], said, self.pairs.names)
        return {"panels": shown}

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model answers texts by texts."""
        return hasattr(model, "answer_tokens_")

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read the lines of one text."""
        if len(data) != 1:
            raise InvalidParameter(
                f"predict: a translator takes one text file; got {len(data)}. `castalia evaluate` "
                "takes two."
            )
        lines = np.array(read_lines(data[0], "predict"), dtype=object)
        return NewRows(lines, {"source": lines}, unit="text")

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read two parallel texts."""
        if not is_pair(data) or len(data) != 2:
            raise InvalidData(
                "evaluate: a translator is scored on two files, the texts and their translations, "
                f"line by line; got {listing(data if is_pair(data) else [data], 'and')}."
            )
        pairs = read_pairs(data, "evaluate")
        y = np.array(pairs.targets, dtype=object)
        X = np.array(pairs.sources, dtype=object)
        return NewRows(X, {}, pairs.notes, [], pairs.names[1], y, "pair")

    @staticmethod
    def known_task(model: Any, rows: NewRows) -> Task:
        """Translating the texts."""
        return Task("translation", "", np.asarray(rows.y), np.array([]), "pair")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return a translation of each line; blank ones stay blank."""
        found = np.full(len(X), "", dtype=object)
        there = np.array([bool(line.strip()) for line in X])
        found[there] = model.predict(X[there])
        return {"translation": found}


def _fewer_tested(part: Part) -> Part:
    train = np.sort(np.concatenate([part.train, part.test[MOST_TESTED:]]))
    return replace(part, train=train, test=part.test[:MOST_TESTED])
