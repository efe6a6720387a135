"""Settings as words on a command line, and where they belong: to the model or to its training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from castalia.errors import InvalidParameter
from castalia.train import Training
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "apply_settings",
    "find_setting",
    "fitting_value",
    "parse_settings",
    "parse_value",
    "written",
]

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
        found[name.strip()] = parse_value(value.strip())
    return found


def parse_value(text: str) -> Any:
    """Turn a word into a number, yes or no, None, or a tuple; or leave it a word."""
    if "," in text:
        return tuple(
            parse_value(part.strip()) for part in text.strip("()[]").split(",") if part.strip()
        )
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def apply_settings(model: Any, settings: Mapping[str, Any]) -> Any:
    """Set settings, each where it belongs: to the model, its training, or what it wraps."""
    for given, value in settings.items():
        place, name = find_setting(model, given)
        place.owner.set_params(**{name: fitting_value(value, getattr(place.owner, name))})
    return model


class Place(NamedTuple):
    """What holds settings, their names, and how they are reached from the model."""

    owner: Any
    names: list[str]
    prefix: str


def find_setting(model: Any, given: str) -> tuple[Place, str]:
    """Return where a setting belongs and its name there, or say what there is."""
    places, name = _places(model), given.removeprefix("estimator__").removeprefix("training__")
    for place in places:
        if name in place.names:
            return place, name
    said = " or of ".join(
        f"{'its training' if isinstance(place.owner, Training) else type(place.owner).__name__} "
        f"({listing(place.names, 'and', 20)})"
        for place in places
    )
    known = [word for place in places for word in place.names]
    raise InvalidParameter(
        f"fit: `{given}` must be a setting of {said}.{did_you_mean(name, known)}"
    )


def _places(model: Any, prefix: str = "") -> list[Place]:
    """Return the model, what it wraps, and its training."""
    own = [n for n in model.get_params(deep=False) if n not in (*_OURS, "estimator")]
    found = [Place(model, own, prefix)]
    inner, training = getattr(model, "estimator", None), getattr(model, "training", None)
    if inner is not None:
        found += _places(inner, f"{prefix}estimator__")
    if training is not None:
        loop = [f.name for f in fields(Training) if f.name not in _OURS]
        found.append(Place(training, loop, f"{prefix}training__"))
    return found


def fitting_value(value: Any, default: Any) -> Any:
    """Return a value in the shape of the default: one whole number for a tuple becomes a tuple."""
    return (value,) if isinstance(default, tuple) and isinstance(value, int) else value


def written(value: Any) -> str:
    """Write a value as one would type it.

    >>> written((64, 64)), written(0.001)
    ('64,64', '0.001')
    """
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
