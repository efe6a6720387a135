"""Small data sets with known answers: quick to fit, and a good score means something was learnt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from castalia.errors import InvalidParameter
from castalia.testing.toys.toy_dynamics import narma, plant, regimes, voices, wander
from castalia.testing.toys.toy_graphs import blocks, communities, heights, ring_sizes, rings
from castalia.testing.toys.toy_images import captions, scenes, shapes, stripes, textures, tones
from castalia.testing.toys.toy_sequences import beginnings, formulas, swings, tides, totals
from castalia.testing.toys.toy_tables import blobs, counts, echo, moons, plane, sine
from castalia.testing.toys.toy_tasks import grid, steps, waves
from castalia.testing.toys.toy_texts import (
    chain,
    opinions,
    paraphrases,
    questions,
    reversal,
    reviews,
    tagged,
    topics,
)
from castalia.utils.text import did_you_mean, listing

__all__ = [
    "TOYS",
    "beginnings",
    "blobs",
    "blocks",
    "captions",
    "chain",
    "communities",
    "counts",
    "echo",
    "formulas",
    "grid",
    "heights",
    "moons",
    "narma",
    "opinions",
    "paraphrases",
    "plane",
    "plant",
    "questions",
    "regimes",
    "reversal",
    "reviews",
    "ring_sizes",
    "rings",
    "scenes",
    "shapes",
    "sine",
    "steps",
    "stripes",
    "swings",
    "tagged",
    "textures",
    "tides",
    "tones",
    "topics",
    "totals",
    "toy",
    "voices",
    "wander",
    "waves",
]

TOYS: dict[str, Callable[[], Any]] = {
    "moons": moons,
    "blobs": blobs,
    "sine": sine,
    "plane": plane,
    "counts": counts,
    "echo": echo,
    "shapes": shapes,
    "stripes": stripes,
    "textures": textures,
    "tones": tones,
    "beginnings": beginnings,
    "totals": totals,
    "step_totals": partial(totals, steps=True),
    "swings": swings,
    "formulas": formulas,
    "tides": tides,
    "scenes": scenes,
    "captions": captions,
    "chain": chain,
    "topics": topics,
    "reviews": reviews,
    "reversal": reversal,
    "opinions": opinions,
    "paraphrases": paraphrases,
    "tagged": tagged,
    "questions": questions,
    "regimes": regimes,
    "wander": wander,
    "plant": plant,
    "narma": narma,
    "voices": voices,
    "communities": communities,
    "heights": heights,
    "rings": rings,
    "ring_sizes": ring_sizes,
    "blocks": blocks,
    "waves": waves,
    "grid": grid,
    "steps": steps,
}


def toy(name: str) -> Any:
    """Return the toy problem of a name, as a catalogue record gives it.

    >>> toy("sine")[0].shape
    (800, 1)
    """
    if name not in TOYS:
        raise InvalidParameter(
            f"testing: `toy` must be {listing(TOYS)}; got {name!r}.{did_you_mean(name, TOYS)}"
        )
    return TOYS[name]()
