"""Forward, backward and Viterbi recursions of a hidden Markov model in log space, step by step.

forward    a_t(j) = log sum_i exp(a_{t-1}(i) + log A_ij) + log b_j(x_t),   a_0 = log pi + log b(x_0)
backward   b_t(i) = log sum_j exp(log A_ij + log b_j(x_{t+1}) + b_{t+1}(j)),   b_last = 0
Viterbi    as forward, with the largest in place of the sum

These are the definition; ``hidden_markov_scan`` computes the same for many steps at once. A missing
step has log b = 0 in every state, and so has padding: it changes neither likelihood nor posterior.
Shapes: B sequences, T steps, K states.
Reference: 1989, Rabiner, A tutorial on hidden Markov models, Proc. IEEE 77.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Posterior", "backward", "forward", "posterior", "viterbi"]


class Posterior(NamedTuple):
    """log p(x) of each sequence, (B,); p(state | x), (B, T, K); expected moves, (K, K)."""

    log_likelihood: Tensor
    states: Tensor
    moves: Tensor


def forward(log_start: Tensor, log_move: Tensor, log_seen: Tensor) -> Tensor:
    """Return log p(x_0 … x_t, state at t), (B, T, K), from log b, (B, T, K)."""
    message = log_start + log_seen[:, 0]
    found = [message]
    for t in range(1, log_seen.shape[1]):
        message = (message[:, :, None] + log_move).logsumexp(dim=1) + log_seen[:, t]
        found.append(message)
    return torch.stack(found, dim=1)


def backward(log_move: Tensor, log_seen: Tensor) -> Tensor:
    """Return log p(x_{t+1} … | state at t), (B, T, K)."""
    message = torch.zeros_like(log_seen[:, 0])
    found = [message]
    for t in range(log_seen.shape[1] - 1, 0, -1):
        message = (log_move + (log_seen[:, t] + message)[:, None, :]).logsumexp(dim=2)
        found.append(message)
    return torch.stack(found[::-1], dim=1)


def posterior(log_start: Tensor, log_move: Tensor, log_seen: Tensor, inside: Tensor) -> Posterior:
    """Return what Baum–Welch needs; ``inside`` marks steps that are no padding, (B, T)."""
    ahead, behind = forward(log_start, log_move, log_seen), backward(log_move, log_seen)
    log_likelihood = ahead[:, -1].logsumexp(dim=1)
    states = (ahead + behind - log_likelihood[:, None, None]).exp()
    arriving = (log_seen + behind)[:, 1:] - log_likelihood[:, None, None]
    moves = torch.zeros_like(log_move)
    for t in range(arriving.shape[1]):
        log_pair = ahead[:, t, :, None] + log_move + arriving[:, t, None, :]
        moves = moves + (log_pair.exp() * inside[:, t + 1, None, None]).sum(dim=0)
    return Posterior(log_likelihood, states, moves)


def viterbi(log_start: Tensor, log_move: Tensor, log_seen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the likeliest path of each sequence, (B, T), and its log-probability, (B,)."""
    message, pointers = log_start + log_seen[:, 0], []
    for t in range(1, log_seen.shape[1]):
        best, pointer = (message[:, :, None] + log_move).max(dim=1)
        message = best + log_seen[:, t]
        pointers.append(pointer)
    log_path, state = message.max(dim=1)
    path = [state]
    for pointer in reversed(pointers):
        state = pointer.gather(1, state[:, None])[:, 0]
        path.append(state)
    return torch.stack(path[::-1], dim=1), log_path
