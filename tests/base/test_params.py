"""Declared constraints."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from castalia.base import Interval, OneOf, RandomState, Sizes, check_parameters
from castalia.errors import InvalidParameter


@dataclass
class Owner:
    share: Annotated[float, Interval(0, 1, closed="left")] = 0.5
    rate: Annotated[float, Interval(0, closed="neither")] = 0.1
    depth: Annotated[int, Interval(1, 8, whole=True)] = 2
    most: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    kind: Annotated[str, OneOf("relu", "tanh", None)] = "relu"
    flag: Annotated[bool, OneOf(True, False)] = False
    hidden: Annotated[tuple[int, ...], Sizes()] = (4,)
    seed: Annotated[Any, RandomState()] = None


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("share", 1, "`share` must be a number at least 0 and below 1; got 1"),
        ("share", True, "got True"),
        ("share", float("nan"), "got nan"),
        ("share", "half", "got 'half'"),
        ("rate", 0, "`rate` must be a number above 0; got 0"),
        ("depth", 9, "`depth` must be a whole number at least 1 and at most 8; got 9"),
        ("depth", 2.0, "got 2.0"),
        ("most", 0, "`most` must be a whole number at least 1 or None; got 0"),
        (
            "kind",
            "rellu",
            "`kind` must be `relu`, `tanh` or `None`; got 'rellu'. Did you mean `relu`",
        ),
        ("flag", 1, "got 1"),
        ("hidden", (4, 0), r"`hidden` must be a tuple of positive whole numbers; got \(4, 0\)"),
        ("hidden", 4, "got 4"),
        ("seed", -1, "`seed` must be a whole number of at least 0 .*; got -1"),
    ],
)
def test_the_error_is_made_from_the_constraint(name, value, message):
    with pytest.raises(InvalidParameter, match=f"Owner: .*{message}"):
        check_parameters(Owner(**{name: value}))


@pytest.mark.parametrize(
    "settings",
    [
        {"share": 0},
        {"share": np.float32(0.25)},
        {"depth": np.int64(8)},
        {"most": 3},
        {"kind": None},
        {"hidden": []},
        {"hidden": [np.int32(3)]},
        {"seed": np.random.default_rng(0)},
        {"seed": np.random.RandomState(0)},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_values_at_the_edge_pass(settings):
    check_parameters(Owner(**settings))
