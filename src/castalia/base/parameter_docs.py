"""Docstrings and signatures that show every parameter of an estimator, inherited ones too."""

from __future__ import annotations

import inspect
import re
import warnings
from typing import Any, get_type_hints

from sklearn.base import BaseEstimator

__all__ = ["PlainSignature", "document", "html_diagram", "parameter_entries"]

_SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^\S[^\n]*\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(\w[\w, ]*)[^\n]*\n(?:(?:[ ]+[^\n]*)?\n)*", re.MULTILINE)


class PlainSignature:
    """The attribute ``__signature__``: plain types, a class's own parameters before shared ones."""

    def __get__(self, owned: Any, owner: type) -> inspect.Signature:
        """Return the signature of the constructor without ``self``."""
        found = inspect.signature(owner.__init__).parameters  # type: ignore[misc]
        hints = get_type_hints(owner)
        shared = set().union(*(vars(c).get("__annotations__", ()) for c in _roots(owner)))
        plain = [
            p.replace(annotation=hints.get(p.name, p.annotation))
            for p in found.values()
            if p.name != "self"
        ]
        return inspect.Signature(sorted(plain, key=lambda p: p.name in shared))


def document(cls: type) -> None:
    """Add the parameters that a class inherits to its docstring."""
    if cls.__doc__ is not None:
        cls.__doc__ = _completed(cls, inspect.cleandoc(cls.__doc__))


def html_diagram(estimator: Any) -> str:
    """Return scikit-learn's diagram; its parser of docstrings would warn of our `Shapes`."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unknown section", UserWarning)
        found: str = BaseEstimator._html_repr(estimator)  # scikit-learn 1.6 does not ask for it
    return found


def _roots(cls: type) -> list[type]:
    """Return the classes that declare what all estimators have."""
    return [base for base in cls.__mro__ if "__signature__" in vars(base)]


def _completed(cls: type, text: str) -> str:
    """Return a docstring with the entries of inherited parameters that it leaves out."""
    known, added = set(parameter_entries(text)), []
    for base in cls.__mro__[1:]:
        fields = getattr(base, "__dataclass_fields__", {})
        for name, entry in parameter_entries(inspect.cleandoc(base.__doc__ or "")).items():
            if name in fields and name not in known:
                known.add(name)
                added.append(_alone(entry, name))
    if not added:
        return text
    section = _SECTION.search(text)
    if section is not None:
        end = section.start(1) + len(section.group(1).rstrip("\n")) + 1
        return text[:end].rstrip("\n") + "\n" + "".join(added) + "\n" + text[end:].lstrip("\n")
    heading = _HEADING.search(text)
    place = heading.start() if heading else len(text)
    head = text[:place].rstrip("\n")
    return f"{head}\n\nParameters\n----------\n{''.join(added)}\n{text[place:]}".rstrip("\n")


def _alone(entry: str, name: str) -> str:
    """Return an entry under one of its names."""
    return f"{name}\n{entry.partition(chr(10))[2]}"


def parameter_entries(text: str) -> dict[str, str]:
    r"""Return the entries of a docstring's section of parameters, by name; several may share one.

    >>> parameter_entries("A.\n\nParameters\n----------\na, b\n    Sizes.\nc\n    Rate.\n")
    {'a': 'a, b\n    Sizes.\n', 'b': 'a, b\n    Sizes.\n', 'c': 'c\n    Rate.\n'}
    """
    section = _SECTION.search(f"{text}\n")
    if section is None:
        return {}
    body = section.group(1).rstrip("\n") + "\n"
    return {
        name: match.group(0).rstrip("\n") + "\n"
        for match in _ENTRY.finditer(body)
        for name in match.group(1).replace(" ", "").split(",")
    }
