"""Averages of the weights along the trajectory.

EMA: s <- d s + (1 - d) w after every step, with d = min(decay, (1 + t) / (10 + t)).
SWA: the plain mean of the weights at the end of each epoch of the last quarter (Izmailov et al.
2018, arXiv 1803.05407).
Lookahead: every fifth step s <- s + a (w - s) and w <- s; training goes on from the average (2019,
Zhang, Lucas, Hinton, Ba, arXiv 1907.08610).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from castalia.errors import InvalidParameter

__all__ = ["Average", "build_average"]

AHEAD = 5  # steps that lookahead takes before it goes back


class Average:
    """A running average of a list of parameters.

    Parameters
    ----------
    kind
        ``"ema"``, ``"swa"`` or ``"lookahead"``.
    parameters
        The live parameters.
    decay
        Of the exponential average; with lookahead, 1 - a.
    start
        Fraction of the epochs after which SWA begins.
    """

    def __init__(
        self, kind: str, parameters: Sequence[Tensor], *, decay: float = 0.999, start: float = 0.75
    ) -> None:
        self.kind, self.decay, self.start = kind, decay, start
        self.live = list(parameters)
        self.shadow = [p.detach().clone() for p in self.live]
        self.count = 0

    @torch.no_grad()
    def after_step(self) -> None:
        """Take one step of the exponential average."""
        if self.kind == "ema":
            decay = min(self.decay, (1 + self.count) / (10 + self.count))
            torch._foreach_lerp_(self.shadow, [p.detach() for p in self.live], 1 - decay)
            self.count += 1
        elif self.kind == "lookahead":
            self.count += 1
            if self.count % AHEAD == 0:
                live = [p.detach() for p in self.live]
                torch._foreach_lerp_(self.shadow, live, 1 - self.decay)
                torch._foreach_copy_(live, self.shadow)

    @torch.no_grad()
    def after_epoch(self, epoch: int, epochs: int) -> None:
        """Add the end of an epoch to the plain mean."""
        if self.kind == "swa" and epoch + 1 > self.start * epochs:
            self.count += 1
            torch._foreach_lerp_(self.shadow, [p.detach() for p in self.live], 1 / self.count)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange live weights and average; call again to undo."""
        if self.count >= (AHEAD if self.kind == "lookahead" else 1):
            for live, shadow in zip(self.live, self.shadow, strict=True):
                kept = live.detach().clone()
                live.copy_(shadow)
                shadow.copy_(kept)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return {"shadow": self.shadow, "count": self.count}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up a saved average."""
        for mine, saved in zip(self.shadow, state["shadow"], strict=True):
            mine.copy_(saved)
        self.count = int(state["count"])


def build_average(kind: Any, parameters: Sequence[Tensor]) -> Average | None:
    """Return the average that ``Training.average`` names, with or without its decay."""
    if kind is None:
        return None
    name, decay = kind if isinstance(kind, tuple) and len(kind) == 2 else (kind, None)
    usual = {"ema": 0.999, "lookahead": 0.5, "swa": None}
    fits = decay is None or (isinstance(decay, float) and 0 < decay < 1 and name != "swa")
    if not isinstance(name, str) or name not in usual or not fits:
        raise InvalidParameter(
            "Training: `average` must be None, 'ema', 'swa', 'lookahead', ('ema', decay) or "
            f"('lookahead', decay); got {kind!r}."
        )
    return Average(name, parameters, decay=decay or usual[name] or 0.0)
