"""Settings as words on a command line, and where they belong: to the model or to its training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from castalia.errors import InvalidParameter
from castalia.train import Training
from castalia.utils.text import did_you_mean, listing

__all__ = ["apply_settings", "parse_settings"]

_WORDS = {"none": None, "true": True, "false": False}
_OURS = ("training", "random_state", "run", "device", "verbose", "callbacks")


def parse_settings(words: Iterable[str]) -> dict[str, Any]:
    """Turn ``name=value`` words into values: numbers, yes/no, None, tuples by commas, or words.

    Examples
    --------
    >>> parse_settings(["hidden=64,64", "lr=0.01", "optimizer=sgd", "patience=none"])
    {'hidden': (64, 64), 'lr': 0.01, 'optimizer': 'sgd', 'patience': None}
    """
    found = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name.strip():
            raise InvalidParameter(
                f"fit: `--set` must be NAME=VALUE, such as lr=0.01; got {word!r}."
            )
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    if "," in text:
        return tuple(_value(part.strip()) for part in text.strip("()[]").split(",") if part.strip())
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def apply_settings(model: Any, settings: Mapping[str, Any]) -> Any:
    """Set settings on a model that has a training, each where it belongs; return the model."""
    own = [name for name in model.get_params(deep=False) if name not in _OURS]
    loop = [field.name for field in fields(Training) if field.name not in _OURS]
    for given, value in settings.items():
        name = given.removeprefix("training__")
        if name in own and name == given:
            default = getattr(model, name)
            model.set_params(**{name: (value,) if _lone(value, default) else value})
        elif name in loop:
            setattr(model.training, name, value)
        else:
            raise InvalidParameter(
                f"fit: `{given}` must be a setting of {type(model).__name__} "
                f"({listing(own, 'and', 20)}) or of its "
                f"training ({listing(loop, 'and', 20)}).{did_you_mean(name, [*own, *loop])}"
            )
    return model


def _lone(value: Any, default: Any) -> bool:
    return isinstance(default, tuple) and isinstance(value, int)
