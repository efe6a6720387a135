"""Conversations as one text, by the templates that chat models come with.

A template is written in Jinja and belongs to a stranger's folder: it is rendered in a sandbox, sees
plain values only, and cannot change them.
Shapes: a conversation is a list of messages {"role": …, "content": …}.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from castalia.errors import DamagedFile, InvalidData
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import shorten

__all__ = ["CHATML", "ChatTemplate", "as_conversations", "is_conversations"]

# A template that many models share; what a model without one gets.
CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
LONGEST = 10**6  # characters of a repeated text; a thousandth of it: steps of a count
TOKENS = (
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
)


@dataclass(frozen=True)
class ChatTemplate:
    r"""How a model writes a conversation.

    Parameters
    ----------
    source
        The template, in Jinja; it reads ``messages``, ``add_generation_prompt``, ``tools`` and the
        special tokens.
    special
        Special tokens by the names that templates have for them, such as ``bos_token``.
    answers
        The role whose messages a model learns to write.

    Examples
    --------
    >>> talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    >>> ChatTemplate().render(talk[:1], add_generation_prompt=True)
    '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'
    >>> text, spans = ChatTemplate().spans(talk)
    >>> [text[start:stop] for start, stop in spans]
    ['Hello<|im_end|>\n']
    """

    source: str = CHATML
    special: Mapping[str, str] = field(default_factory=dict)
    answers: str = "assistant"

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """Return a conversation as one text.

        Parameters
        ----------
        messages
            The conversation.
        add_generation_prompt
            Whether the text goes on to where an answer begins.
        tools
            Descriptions of functions, for templates that mention them.
        variables
            Further names that a template reads.
        """
        given = {"tools": tools, "documents": None, **self.special, **variables}
        try:
            return _compiled(self.source).render(
                messages=_plain(list(messages)),
                add_generation_prompt=add_generation_prompt,
                **_plain(given),
            )
        except (jinja2.TemplateError, TypeError) as error:
            raise InvalidData(
                f"ChatTemplate: the conversation must be one that its template takes; it says "
                f"{shorten(str(error), 200)!r}."
            ) from error

    def spans(self, messages: Sequence[Mapping[str, Any]]) -> tuple[str, list[tuple[int, int]]]:
        """Return a conversation as one text, and where in it the answers begin and end.

        An answer is what follows the text that asks for it, the end of its turn included.
        """
        text, spans = self.render(messages), []
        for place, message in enumerate(messages):
            if message["role"] != self.answers:
                continue
            asked = self.render(messages[:place], add_generation_prompt=True)
            answered = self.render(messages[: place + 1])
            if not (answered.startswith(asked) and text.startswith(answered)):
                raise InvalidData(
                    "ChatTemplate: a template must write the beginning of a conversation as it "
                    f"writes it alone, or answers cannot be found in it; message {place} changes "
                    "what stands before it. Give each answer as a conversation that ends there."
                )
            spans.append((len(asked), len(answered)))
        return text, spans

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> ChatTemplate | None:
        """Return the template of a Hugging Face folder, or None where it has none.

        Parameters
        ----------
        folder
            With ``chat_template.jinja``, or with a ``chat_template`` in ``tokenizer_config.json``.
        """
        folder = Path(folder)
        said = _json(folder / "tokenizer_config.json")
        source = said.get("chat_template")
        if isinstance(source, list):  # several, each with a name
            named = {str(e.get("name")): e.get("template") for e in source if isinstance(e, dict)}
            source = named.get("default")
        try:
            source = read_regular(folder / "chat_template.jinja").decode("utf-8")
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise DamagedFile(f"ChatTemplate.load: `{folder}` cannot be read; {error}.") from None
        if not isinstance(source, str):
            return None
        return cls(source, special_tokens(said))


def special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the special tokens of a ``tokenizer_config.json`` by their names.

    >>> special_tokens({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": None})
    {'bos_token': '<s>', 'eos_token': '</s>'}
    """
    given = {name: config.get(name) for name in TOKENS}
    found = {k: v.get("content") if isinstance(v, Mapping) else v for k, v in given.items()}
    return {name: token for name, token in found.items() if isinstance(token, str)}


def is_conversations(X: Any) -> bool:
    """Say whether X is a list of conversations: whether its first row is a list of messages.

    >>> is_conversations([[{"role": "user", "content": "Hi"}]]), is_conversations(["Hi"])
    (True, False)
    """
    if not isinstance(X, list | tuple) or not X or not isinstance(X[0], list | tuple):
        return False
    return bool(X[0]) and isinstance(X[0][0], Mapping)


def as_conversations(X: Any, owner: str) -> list[list[dict[str, Any]]]:
    """Return conversations, each message with a role and a content, both texts."""
    for row, talk in enumerate(X):
        if not isinstance(talk, list | tuple) or not talk:
            raise InvalidData(
                f"{owner}: a conversation must be a list of messages; got "
                f"{shorten(repr(talk), 60)} in row {row}."
            )
        for message in talk:
            if not _is_message(message):
                raise InvalidData(
                    f"{owner}: a message must be {{'role': …, 'content': …}} with two texts; got "
                    f"{shorten(repr(message), 60)} in row {row}."
                )
    return [[dict(message) for message in talk] for talk in X]


def _is_message(message: Any) -> bool:
    parts = ("role", "content")
    return isinstance(message, Mapping) and all(isinstance(message.get(p), str) for p in parts)


# ---- rendering ----


class Generation(jinja2.ext.Extension):
    """``{% generation %}``, by which some templates mark answers; it changes nothing here."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        """Return what stands between the marks."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class Namespace(jinja2.utils.Namespace):
    """What templates keep values in; names that begin with an underscore are refused."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"no template may set {name!r}")
        super().__setitem__(name, value)


class Sandbox(ImmutableSandboxedEnvironment):
    """A sandbox in which numbers and texts stay small."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Compute a product, a power or a format, unless it is too large."""
        if _is_large(operator, left, right):
            raise jinja2.exceptions.SecurityError(f"no template may compute so much by {operator}")
        return super().call_binop(context, operator, left, right)


def _is_large(operator: str, left: Any, right: Any) -> bool:
    if operator == "%":
        return isinstance(left, str) and re.search(r"\d{4}|\*", left) is not None
    if operator == "**":
        return abs(left) > LONGEST or abs(right) > 64
    parts = [v for v in (left, right) if isinstance(v, str | list | tuple)]
    return bool(parts) and len(parts[0]) * abs(right if parts[0] is left else left) > LONGEST


def _range(*bounds: int) -> range:
    found = range(*bounds)
    if len(found) > LONGEST // 1000:
        raise jinja2.exceptions.SecurityError("no template may count that far")
    return found


@lru_cache(maxsize=64)
def _compiled(source: str) -> jinja2.Template:
    made = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = _to_json
    made.globals |= {"raise_exception": _refuse, "strftime_now": _now, "range": _range}
    made.globals["namespace"] = Namespace
    return made.from_string(source)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON; Jinja's own filter would escape it for web pages."""
    settings: dict[str, Any] = {"indent": indent, "separators": separators, "sort_keys": sort_keys}
    return json.dumps(value, ensure_ascii=ensure_ascii, **settings)


def _refuse(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _plain(value: Any) -> Any:
    """Return plain values, whose methods a sandbox knows; of anything else the name of its kind."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return value if type(value) is kind else kind(value)
    return None if value is None else f"<{type(value).__name__}>"


def _json(file: Path) -> dict[str, Any]:
    try:
        found = parse_json(read_regular(file))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise DamagedFile(f"ChatTemplate.load: `{file}` must be JSON; {error}.") from None
    return found if isinstance(found, dict) else {}
