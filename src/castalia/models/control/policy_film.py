"""A film of what an agent does: one episode as an animated GIF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from castalia.errors import InvalidParameter
from castalia.models.control.experience import begun, opened, shown, stepped

__all__ = ["record"]

MOST = 1000  # steps of a film


def record(agent: Any, world: Any, path: str | Path, *, seed: int = 0, every: int = 2) -> float:
    """Let an agent play one episode, write it as a GIF and return the sum of its rewards.

    Parameters
    ----------
    agent
        A fitted agent, or any object whose ``predict`` takes a list of states and returns actions.
    world
        A world with ``render``, which returns an image (H, W, 3) of bytes: ours, or one that
        Gymnasium made with ``render_mode="rgb_array"``; or the name of one of Gymnasium's.
    path
        The file.
    seed
        Of the episode.
    every
        Steps between two images; the last state is always shown.

    Examples
    --------
    >>> import tempfile
    >>> from castalia.models.control import GridWorld, QLearning
    >>> world = GridWorld(["S.", "HG"])
    >>> agent = QLearning(episodes=100, random_state=0).fit(world)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     round(record(agent, world, f"{folder}/policy.gif"), 2)
    0.98
    """
    world = opened("record", world, render_mode="rgb_array")
    state = begun("record", world, seed)
    images, total = [_image(world)], 0.0
    for number in range(1, MOST + 1):
        state, reward, ended, cut, _ = stepped("record", world, int(agent.predict([state])[0]))
        total, over = total + float(reward), ended or cut
        if over or number % every == 0:
            images.append(_image(world))
        if over:
            break
    first, *others = images
    first.save(Path(path), save_all=True, append_images=others, duration=20 * every, loop=0)
    return total


def _image(world: Any) -> Image.Image:
    found = shown("record", world)
    if not (isinstance(found, np.ndarray) and found.dtype == np.uint8 and found.ndim == 3):
        raise InvalidParameter(
            "record: the world must have a `render` that returns an image (H, W, 3) of bytes; got "
            f"{type(world).__name__}, whose `render` gives {type(found).__name__}."
        )
    return Image.fromarray(found)
