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
    """Set settings, each where it belongs: to the model, its training, or what it wraps.

    Parameters
    ----------
    model
        An estimator; changed and returned.
    settings
        Values by name; ``training__`` and ``estimator__`` may be left out.
    """
    places = _places(model)
    for given, value in settings.items():
        name = given.removeprefix("estimator__").removeprefix("training__")
        place = next((owner for owner, names in places if name in names), None)
        if place is None:
            known = [word for _, names in places for word in names]
            said = " or of ".join(
                f"{'its training' if isinstance(owner, Training) else type(owner).__name__} "
                f"({listing(names, 'and', 20)})"
                for owner, names in places
            )
            raise InvalidParameter(
                f"fit: `{given}` must be a setting of {said}.{did_you_mean(name, known)}"
            )
        default = getattr(place, name)
        place.set_params(**{name: (value,) if _lone(value, default) else value})
    return model


def _places(model: Any) -> list[tuple[Any, list[str]]]:
    """Return what holds settings, with their names: a model, what it wraps, and its training."""
    own = [n for n in model.get_params(deep=False) if n not in (*_OURS, "estimator")]
    found: list[tuple[Any, list[str]]] = [(model, own)]
    inner, training = getattr(model, "estimator", None), getattr(model, "training", None)
    if inner is not None:
        found += _places(inner)
    if training is not None:
        found.append((training, [f.name for f in fields(Training) if f.name not in _OURS]))
    return found


def _lone(value: Any, default: Any) -> bool:
    return isinstance(default, tuple) and isinstance(value, int)
