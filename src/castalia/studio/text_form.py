"""Texts that are typed: classified, translated, or gone on with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from castalia.errors import InvalidData
from castalia.method.kinds import ParallelTexts, kind_of
from castalia.studio.run_files import result_of
from castalia.studio.run_index import RunRow

__all__ = ["PromptForm", "TextForm", "class_shares"]

MOST_CLASSES = 20
MOST_TOKENS = 200
TEMPERATURE = 0.8


def class_shares(classes: Any, probability: Any) -> list[tuple[str, float]]:
    """Return the likeliest classes with their probabilities.

    >>> class_shares(["a", "b"], [0.25, 0.75])
    [('b', 0.75), ('a', 0.25)]
    """
    pairs = zip(map(str, classes), map(float, probability), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])[:MOST_CLASSES]


class TextForm:
    """A text, and its class or its translation."""

    takes = "text"

    def __init__(self, row: RunRow, model: Any) -> None:
        self.row, self.model = row, model

    def schema(self) -> dict[str, Any]:
        """Return a text to begin with: the worst mistake's, where the run kept it."""
        mistakes = result_of(self.row.folder).get("report", {}).get("mistakes") or []
        texts = [text for each in mistakes for text in (each.get("row") or {}).values()]
        return {"example": next((text for text in texts if isinstance(text, str)), "")}

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the class with its probability, or the translation."""
        text = str(body.get("text", ""))
        if not text.strip():
            raise InvalidData("studio: type a text.")
        X, kind = np.array([text], dtype=object), kind_of(self.model)
        if kind is ParallelTexts:
            return {"text": str(kind.answers(self.model, X)["translation"][0])}
        shares = class_shares(self.model.classes_, self.model.predict_proba(X)[0])
        return {"prediction": shares[0][0], "classes": shares}


class PromptForm:
    """The beginning of a text, and what a language model goes on with, token by token."""

    takes = "prompt"

    def __init__(self, row: RunRow, model: Any) -> None:
        self.row, self.model = row, model

    def schema(self) -> dict[str, Any]:
        """Return nothing: any text will do."""
        return {}

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tokens of prompt and continuation, each with its probability."""
        tokenizer = self.model.tokenizer_
        begin = list(tokenizer.encode(str(body.get("prompt", ""))))
        seed = body.get("seed") if isinstance(body.get("seed"), int) else None
        found = self.model.generate(begin, MOST_TOKENS, temperature=TEMPERATURE, random_state=seed)
        ids = [int(token) for token in found]
        texts = [str(tokenizer.decode(ids[: i + 1])) for i in range(len(ids))]
        pieces = [text[len(before) :] for before, text in zip(["", *texts], texts, strict=False)]
        said = [list(each) for each in zip(pieces, self._chances(ids), strict=True)]
        return {"tokens": said[len(begin) :], "prompt": "".join(pieces[: len(begin)])}

    def _chances(self, ids: list[int]) -> list[float | None]:
        """Return the probability of each token after those before it; None where unknown."""
        logs = self.model.token_log_probabilities([np.array(ids)])[0] if ids else np.zeros(0)
        if len(logs) < len(ids):  # the first has none before it
            return [None] * (len(ids) - len(logs)) + np.exp(logs).tolist()
        found: list[float | None] = np.exp(logs[: len(ids)]).tolist()
        return found
