"""OpenAI's API for language models: completions, whole or as a stream, and embeddings."""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from castalia.errors import InvalidData
from castalia.utils.text import shorten

__all__ = ["Completion", "embeddings", "stream_events"]

PIECE = 8  # tokens between two events of a stream
MOST = 4_096  # tokens of a completion


class Completion:
    """A request for a completion, checked.

    Parameters
    ----------
    body
        The JSON of the request.
    model
        A language model of ours.
    """

    def __init__(self, body: Any, model: Any) -> None:
        if not isinstance(body, dict):
            raise InvalidData("serve: the body must be an object with a `prompt`.")
        self.model, self.tokenizer = model, model.tokenizer_
        prompts = body.get("prompt", "")
        self.prompts = list(prompts) if isinstance(prompts, list) else [prompts]
        if not self.prompts or not all(isinstance(text, str) for text in self.prompts):
            raise InvalidData("serve: `prompt` must be a text or a list of texts.")
        self.tokens = _number(body, "max_tokens", 16, 1, MOST, whole=True)
        self.copies = _number(body, "n", 1, 1, 16, whole=True)
        stop = body.get("stop") or []
        self.stop = [stop] if isinstance(stop, str) else list(stop)
        if len(self.stop) > 4 or not all(isinstance(word, str) and word for word in self.stop):
            raise InvalidData("serve: `stop` must be a text or up to four of them.")
        self.drawn = {
            "temperature": _number(body, "temperature", 1.0, 0.0, 2.0),
            "top_p": _number(body, "top_p", 1.0, 1e-6, 1.0),
        }
        self.seed = _number(body, "seed", int(time.time_ns() % 2**31), 0, 2**31 - 1, whole=True)
        self.stream = bool(body.get("stream"))
        self.id, self.created = f"cmpl-{uuid.uuid4().hex}", int(time.time())
        self.name = str(body.get("model", ""))

    def pieces(self, prompt: str, copy: int, piece: int) -> Iterator[tuple[str, int, str | None]]:
        """Yield new text, how many tokens it has, and at the end why it ended."""
        begin = list(self.tokenizer.encode(prompt))
        shown = str(self.tokenizer.decode(begin))
        ids, said, seed = list(begin), "", self.seed + copy
        while len(ids) - len(begin) < self.tokens:
            count = min(piece, self.tokens - (len(ids) - len(begin)))
            found = self.model.generate(ids, count, random_state=seed, **self.drawn)
            new, seed = len(found) - len(ids), seed + 7_919
            ids = [int(token) for token in found]
            text, stopped = self._cut(str(self.tokenizer.decode(ids))[len(shown) :])
            ended = stopped or new < count
            last = len(ids) - len(begin) >= self.tokens
            yield text[len(said) :], new, "stop" if ended else "length" if last else None
            if ended:
                return
            said = text

    def _cut(self, text: str) -> tuple[str, bool]:
        """Return the text before the first word that ends it, and whether there is one."""
        places = [text.find(word) for word in self.stop if word in text]
        return (text[: min(places)], True) if places else (text, False)

    def whole(self) -> dict[str, Any]:
        """Return the answer to a request that is not streamed."""
        choices: list[dict[str, Any]] = []
        used = 0
        for prompt in self.prompts:
            for copy in range(self.copies):
                parts = list(self.pieces(prompt, copy, self.tokens))
                used += sum(count for _, count, _ in parts)
                text = "".join(text for text, _, _ in parts)
                choices.append(self._choice(len(choices), text, parts[-1][2]))
        prompted = sum(len(self.tokenizer.encode(text)) for text in self.prompts)
        usage = {"prompt_tokens": prompted, "completion_tokens": used}
        return {**self.frame(choices), "usage": {**usage, "total_tokens": prompted + used}}

    def frame(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return an answer, or an event of a stream."""
        facts = {"id": self.id, "object": "text_completion", "created": self.created}
        return {**facts, "model": self.name, "choices": list(choices)}

    @staticmethod
    def _choice(index: int, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}

    def events(self) -> Iterator[str]:
        """Yield the events of a stream."""
        index = 0
        for prompt in self.prompts:
            for copy in range(self.copies):
                for text, _, reason in self.pieces(prompt, copy, PIECE):
                    frame = self.frame([self._choice(index, text, reason)])
                    yield f"data: {json.dumps(frame)}\n\n"
                index += 1
        yield "data: [DONE]\n\n"


async def stream_events(asked: Completion, loop: Any, pool: Executor) -> AsyncIterator[str]:
    """Yield events that are computed in a thread."""
    events = asked.events()
    while (event := await loop.run_in_executor(pool, next, events, None)) is not None:
        yield event


def embeddings(body: Any, model: Any, name: str) -> dict[str, Any]:
    """Return the vectors of texts."""
    texts = body.get("input") if isinstance(body, dict) else None
    texts = [texts] if isinstance(texts, str) else texts
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise InvalidData("serve: `input` must be a text or a list of texts.")
    found = np.asarray(model.transform(texts), np.float32)
    found = found.reshape(len(texts), -1) if found.ndim == 2 else found.mean(axis=1)
    packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": i, "embedding": _vector(row, packed)}
        for i, row in enumerate(found)
    ]
    words = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": words, "total_tokens": words}
    return {"object": "list", "data": data, "model": name, "usage": usage}


def _vector(row: np.ndarray, packed: bool) -> Any:
    return base64.b64encode(row.astype("<f4").tobytes()).decode() if packed else row.tolist()


def _number(
    body: dict[str, Any], name: str, usual: Any, low: Any, high: Any, whole: bool = False
) -> Any:
    value = body.get(name)
    value = usual if value is None else value
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        raise InvalidData(
            f"serve: `{name}` must be a {'whole ' if whole else ''}number from {low} to {high}; "
            f"got {shorten(repr(value), 40)}."
        )
    return value
