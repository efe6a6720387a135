"""Positional encodings: what sinusoids make equal, and what a network makes of each kind.

A shift by m turns every pair (sin, cos) of a sinusoidal code by the angle m w_i, wherever it
begins; so codes m apart are alike to the same degree everywhere. Learned vectors know nothing of
that. One layer of causal attention is asked for the token some places back in texts of up to 32
tokens, and then reads longer ones: a bias or a rotation by distance goes on; vectors never trained
do not.

References: 2017, Vaswani et al., Attention is all you need, arXiv 1706.03762; 2021, Su et al.,
RoFormer, arXiv 2104.09864.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nn.attention import (
    LearnedPositions,
    MultiHeadAttention,
    RelativeBias,
    Rotary,
    SinusoidalPositions,
    causal,
)
from castalia.objectives import CrossEntropy
from castalia.testing import train_tensors
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption, signed
from castalia.utils.seeds import seed_scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LooksBack", "run", "turned", "write"]

BACK, WORDS = 3, 12  # how far back the token stands that is asked for; tokens there are
SEEN, LENGTH, DIM = 32, 64, 64  # tokens of a text in training and after it; width of the codes
KINDS = ("learned", "sinusoidal", "relative", "rotary")


def turned(codes: Tensor, m: int, frequencies: Tensor) -> Tensor:  # (T, dim)
    """Return sinusoidal codes of the positions m further on, by rotation alone.

    >>> code = SinusoidalPositions(8)
    >>> torch.allclose(turned(code(torch.arange(4)), 5, code.frequencies), code(torch.arange(5, 9)))
    True
    """
    sin, cos = codes[:, 0::2], codes[:, 1::2]
    a = m * frequencies
    pairs = [sin * a.cos() + cos * a.sin(), cos * a.cos() - sin * a.sin()]
    return torch.stack(pairs, dim=-1).flatten(1)


class LooksBack(nn.Module):
    """One layer of causal attention that knows positions in one of four ways."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.tokens = nn.Linear(WORDS, DIM, bias=False)  # of tokens as unit vectors
        self.positions: nn.Module | None = None
        if kind == "learned":
            self.positions = LearnedPositions(LENGTH, DIM)
        elif kind == "sinusoidal":
            self.positions = SinusoidalPositions(DIM)
        self.bias = (
            RelativeBias(2, buckets=16, furthest=16, both_ways=False)
            if kind == "relative"
            else None
        )
        turn = Rotary(DIM // 2) if kind == "rotary" else None
        self.attention = MultiHeadAttention(DIM, heads=2, rotary=turn)
        self.output = nn.Linear(DIM, WORDS)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, WORDS)
        """Return scores of the token that is asked for, (B, WORDS, T)."""
        places = torch.arange(x.shape[1], device=x.device)
        h = self.tokens(x) + (0 if self.positions is None else self.positions(places))
        bias = None if self.bias is None else self.bias(places, places)
        return self.output(self.attention(h, mask=causal(), bias=bias)).transpose(1, 2)


def write(n: int, length: int, seed: int) -> tuple[Tensor, Tensor]:
    """Write texts, (N, T, WORDS); asked for is the token ``BACK`` before, or the first, (N, T)."""
    made = torch.Generator().manual_seed(seed)
    ids = torch.randint(WORDS, (n, length), generator=made)
    return one_hot(ids, WORDS).float(), ids[:, (torch.arange(length) - BACK).clamp_min(0)]


def right_by_place(kind: str, texts: int, epochs: int) -> tuple[LooksBack, np.ndarray]:
    """Train on short texts; return the network and its share of right answers at every place."""
    with seed_scope(0):
        net = LooksBack(kind)
    training = Training(validation=0, verbose=False)
    data = write(texts, SEEN, seed=0)
    train_tensors(
        net, CrossEntropy(), *data, training=training, epochs=epochs, batch_size=32, lr=1e-2
    )
    x, asked = write(200, LENGTH, seed=1)
    with torch.no_grad():
        right = net.eval()(x).argmax(dim=1) == asked
    share: np.ndarray = right.double().mean(dim=0).numpy()
    return net, share


def alike(codes: Tensor) -> Tensor:  # (T, dim)
    """Return the cosines of all pairs of codes, (T, T)."""
    unit = codes / codes.norm(dim=1, keepdim=True)
    return unit @ unit.T


def by_distance(cosines: Tensor, furthest: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest cosine of pairs m apart, for m from 0."""
    found = [cosines.diagonal(m) for m in range(furthest + 1)]
    low, high = (torch.stack([ends(c) for c in found]).numpy() for ends in (torch.amin, torch.amax))
    return low, high


def run(*, quick: bool = False) -> Outcome:
    """Draw the codes, what a shift does to them, and how four kinds carry on in longer texts."""
    code = SinusoidalPositions(DIM)
    codes = code(torch.arange(LENGTH))
    later = code(torch.arange(LENGTH) + BACK)
    figure, axes = panels(2, (9.6, 7.2), rows=2)
    _draw_codes(axes[0], codes.numpy())
    _draw_turns(axes[1], float(code.frequencies[2]))
    trained = {kind: right_by_place(kind, *((160, 15) if quick else (500, 20))) for kind in KINDS}
    learned: Any = trained["learned"][0].positions
    learnt = learned.weight.detach()[:SEEN]
    tables = {"learned": learnt, "sinusoidal": codes[:SEEN]}
    spread: dict[str, float] = {}
    for i, (kind, table) in enumerate(tables.items()):
        low, high = by_distance(alike(table), SEEN - 6)
        axes[2].fill_between(range(len(low)), low, high, color=COLOURS[i], alpha=0.3, lw=0)
        axes[2].plot((low + high) / 2, color=COLOURS[i], label=kind)
        spread[kind] = float((high - low).max())
    axes[2].set(xlabel="distance of two positions", ylabel="cosine of their codes")
    for i, (kind, (_, share)) in enumerate(trained.items()):
        look = (0, (4, 3)) if kind == "rotary" else "-"  # the relative one is seen below it
        axes[3].plot(share, color=COLOURS[i], label=kind, ls=look)
    axes[3].axvspan(0, SEEN, color=INK, alpha=0.12, lw=0)
    axes[3].set(xlabel="place in the text; grey: trained", ylabel=f"right {BACK} places back")
    axes[3].set(ylim=(0, 1.03), xlim=(0, LENGTH))
    caption(axes[2])
    caption(axes[3], across=4)
    numbers = {
        "error of the rotation": float((turned(codes, BACK, code.frequencies) - later).abs().max()),
        **{f"{kind}: spread of cosines": value for kind, value in spread.items()},
        **{
            f"{kind}: right in training": float(s[:SEEN].mean()) for kind, (_, s) in trained.items()
        },
        **{f"{kind}: right beyond": float(s[SEEN:].mean()) for kind, (_, s) in trained.items()},
    }
    beyond = {kind: numbers[f"{kind}: right beyond"] for kind in KINDS}
    said = (
        f"A shift is a rotation to {numbers['error of the rotation']:.0e}; beyond the {SEEN} places"
        f" of training a look {BACK} places back is right in {beyond['rotary']:.0%} of cases with "
        f"rotary positions, {beyond['relative']:.0%} with relative, {beyond['sinusoidal']:.0%} "
        f"with sinusoidal and {beyond['learned']:.0%} with learned ones."
    )
    return Outcome(figure, numbers, said)


def _draw_codes(ax: Axes, codes: np.ndarray) -> None:
    sines = codes[:, 0::2].T
    ax.imshow(sines, cmap=signed(), vmin=-1, vmax=1, aspect="auto", origin="lower")
    ax.set(xlabel="position k", ylabel="pair i", title="sin(w$_i$ k)")
    ax.grid(False)


def _draw_turns(ax: Axes, frequency: float) -> None:
    """Draw one pair of coordinates: shifts from two positions turn by one angle."""
    around = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(around), np.sin(around), color=INK, lw=0.8, alpha=0.5)
    for k, colour in ((0, COLOURS[0]), (5, COLOURS[2])):
        begin, end = frequency * k, frequency * (k + BACK)
        arc = np.linspace(begin, end, 30)
        ax.plot(np.cos(arc), np.sin(arc), color=colour, lw=3, alpha=0.6)
        for place in (k, k + BACK):
            at = np.cos(frequency * place), np.sin(frequency * place)
            ax.plot([0, at[0]], [0, at[1]], color=colour, lw=0.9)
            ax.plot(*at, "o", ms=5, color=colour)
            ax.text(1.2 * at[0], 1.2 * at[1], str(place), color=colour, ha="center", va="center")
    ax.set(xlabel="cos(w k)", ylabel="sin(w k)", xlim=(-1.35, 1.35), ylim=(-1.35, 1.35))
    ax.set_title(f"{BACK} places on: a turn by {BACK} w")
    ax.set_aspect("equal")
