"""Baum–Welch: expectation–maximisation of a hidden Markov model.

Each step computes p(states | x) under the model so far and takes the model that is likeliest for
them; the likelihood never falls. Shapes: B sequences, T steps, K states.
Reference: 1970, Baum, Petrie, Soules, Weiss, A maximization technique occurring in the statistical
analysis of probabilistic functions of Markov chains, Ann. Math. Statist. 41.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from castalia.models.sequence.direct_sequences import Bucket
from castalia.models.sequence.hidden_markov_emissions import Emission, Observations
from castalia.models.sequence.hidden_markov_recursion import posterior
from castalia.models.sequence.hidden_markov_scan import Lanes, possible, scan

__all__ = ["ChainModel", "Expectation", "Fitted", "Laid", "expectation", "maximise"]

RAREST = 1e-20  # of a move that never happens, unless it was impossible from the beginning


class ChainModel(NamedTuple):
    """First state (K,), moves (K, K) and emissions."""

    start: Tensor
    move: Tensor
    emission: Emission


class Laid:
    """A bucket of sequences laid out in the lanes of the scan, once for all steps of EM.

    Attributes
    ----------
    weight
        How often each sequence counts, (B,).
    inside
        The weight of each step, 0 for padding, (S, N).
    """

    def __init__(self, bucket: Bucket, weight: Tensor | None = None) -> None:
        b, t, d = bucket.values.shape
        self.lanes = Lanes.of(b, t, bucket.values.device)
        self.rows = Observations(self.lanes.spread(bucket.values, torch.nan).view(-1, d))
        self.weight = torch.ones_like(bucket.values[:, 0, 0]) if weight is None else weight
        self.inside = self.lanes.spread(bucket.mask * self.weight[:, None], 0.0)


@dataclass(frozen=True)
class Expectation:
    """log p(x), (B,); p(state | x) in lanes, (S, N, K); expected moves, (K, K)."""

    log_likelihood: Tensor
    states: Tensor
    moves: Tensor


def expectation(model: ChainModel, laid: Laid) -> Expectation:
    """Return the posterior of one bucket, by the scan where it is exact and else step by step."""
    lanes, inside = laid.lanes, laid.inside
    log_seen = model.emission.log_density(laid.rows).view(*inside.shape, -1)
    if possible(model.move):
        found = scan(model.start, model.move, log_seen, lanes)
        if bool(found.log_likelihood.isfinite().all()):
            moves = found.moves(model.move, inside, lanes)
            return Expectation(found.log_likelihood, found.states(), moves)
    rows, mask = lanes.gather(log_seen), lanes.gather(inside)
    log_likelihood, states, moves = posterior(model.start.log(), model.move.log(), rows, mask)
    return Expectation(log_likelihood, lanes.spread(states, 0.0), moves)


class Fitted(NamedTuple):
    """Where EM ended: the model, log-likelihoods of its steps, and whether it converged."""

    model: ChainModel
    log_likelihoods: list[float]
    converged: bool


def maximise(
    model: ChainModel, data: Sequence[Laid], *, floor: Tensor, tol: float, steps: int
) -> Fitted:
    """Run EM until a step gains less than ``tol`` a time step in log-likelihood."""
    total = float(sum(laid.inside.sum() for laid in data))
    found: list[float] = []
    for _ in range(steps):
        log_likelihood, model_next = _step(model, data, floor)
        found.append(log_likelihood / total)
        if len(found) > 1 and found[-1] - found[-2] < tol:
            return Fitted(model, found, True)
        model = model_next
    return Fitted(model, found, False)


def _step(model: ChainModel, data: Sequence[Laid], floor: Tensor) -> tuple[float, ChainModel]:
    start, moves = torch.zeros_like(model.start), torch.zeros_like(model.move)
    log_likelihood, sums = 0.0, None
    for laid in data:
        found = expectation(model, laid)
        states = found.states * laid.inside[..., None]
        log_likelihood += float(found.log_likelihood @ laid.weight)
        start = start + laid.lanes.gather(states[:1])[:, 0].sum(dim=0)
        moves = moves + found.moves
        mine = model.emission.sums(laid.rows, states.reshape(-1, len(start)))
        sums = mine if sums is None else tuple(a + b for a, b in zip(sums, mine, strict=True))
    emission = model.emission.maximised(sums or (), floor)
    return log_likelihood, ChainModel(start / start.sum(), _rows(moves, model.move), emission)


def _rows(moves: Tensor, before: Tensor) -> Tensor:
    """Return the moves as shares of their rows; a state never left keeps its row."""
    total = moves.sum(dim=1, keepdim=True)
    share = torch.where(total > 0, moves / total.clamp_min(1e-300), before)
    share = torch.where(before > 0, share.clamp_min(RAREST), 0.0)
    return share / share.sum(dim=1, keepdim=True)
