"""The record of one system."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["System"]


@dataclass(frozen=True)
class System:
    """One row of the catalogue; tests, documentation and the command line read it.

    Attributes
    ----------
    name
        Public name, also the name by which saved models refer to it.
    path
        ``package:Class``; a package, never a file, so that files may be split later.
    family
        Folder under ``castalia.models``.
    tasks
        What it can be asked to do: classification, regression, density …
    data
        Kind of input: table, image, text, sequence, tree, graph, tasks (rows of many), world.
    summary
        One line.
    reference
        Year, authors, title, identifier.
    small
        Constructor arguments of the smallest sensible configuration, used by the contract tests.
    toy
        Name of a toy problem in ``castalia.testing``.
    pass_mark
        Score that ``small`` must reach on the toy problem.
    seeded
        Whether chance plays a part in the fit, so that another seed gives another model.
    sizes
        Published sizes: name to constructor arguments.
    rows
        Course rows it answers.
    tier
        ``stable``, ``experimental`` or ``teaching``.
    """

    name: str
    path: str
    family: str
    tasks: tuple[str, ...]
    data: str
    summary: str
    reference: str = ""
    small: Mapping[str, Any] = field(default_factory=dict)
    toy: str = ""
    pass_mark: float = 0.0
    seeded: bool = True
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    tier: str = "stable"
