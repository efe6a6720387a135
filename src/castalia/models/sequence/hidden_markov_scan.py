"""Forward–backward and Viterbi as parallel scans over time.

A sequence is cut into chunks. What a chunk does to a message is one (K, K) matrix, the product of
its steps, so three short loops replace a long one: all chunks multiply up their steps at the same
time; messages pass over the chunks; all chunks fill in their steps at the same time. The loop over
chunks is cut into chunks again where it is long.

Messages are probabilities that are rescaled before they leave the range of float64. With every
transition at least ``POSSIBLE``, no state's share of a message falls below it, and what underflows
is that much smaller than what is kept; so this is as exact as logarithms and several times as fast.
Where a transition is impossible, ``hidden_markov_recursion`` is used.
Shapes: B sequences, T steps, C chunks of S steps, N = B C lanes, K states.
Reference: 2021, Hassan, Särkkä, García-Fernández, Temporal parallelization of inference in hidden
Markov models, IEEE TSP 69.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["Lanes", "Messages", "possible", "scan", "viterbi_scan"]

POSSIBLE = 1e-100  # smallest transition with which probabilities stay in range
LANES = {"cpu": 1024}  # lanes that keep a CPU's vector units busy
DEVICE_LANES = 1 << 14
SHORTEST = 64  # steps of a chunk
LOOP = 32  # chunks that are visited one by one


class Lanes(NamedTuple):
    """How steps of B sequences lie in memory: (S, N, …), lane n = b C + c."""

    sequences: int
    steps: int
    chunks: int
    size: int

    @classmethod
    def of(cls, sequences: int, steps: int, device: torch.device) -> Lanes:
        """Choose the number of chunks."""
        wanted = LANES.get(device.type, DEVICE_LANES) // sequences
        chunks = max(1, min(wanted, steps // SHORTEST))
        size = math.ceil(steps / chunks)
        return cls(sequences, steps, math.ceil(steps / size), size)

    def spread(self, values: Tensor, fill: float) -> Tensor:
        """Return (B, T, …) as (S, N, …), padded."""
        missing = self.chunks * self.size - self.steps
        if missing:
            padding = values.new_full((self.sequences, missing, *values.shape[2:]), fill)
            values = torch.cat([values, padding], dim=1)
        lanes = values.reshape(self.sequences * self.chunks, self.size, *values.shape[2:])
        return lanes.transpose(0, 1).contiguous()

    def gather(self, values: Tensor) -> Tensor:
        """Return (S, N, …) as (B, T, …)."""
        rows = values.transpose(0, 1).reshape(self.sequences, -1, *values.shape[2:])
        return rows[:, : self.steps]


class Messages(NamedTuple):
    """What the scan finds, each step up to a factor of its own; states lie outermost, (K, S, N).

    ``predicted`` is p(state at t | x before t); ``ahead`` the same after x_t; ``future`` is
    p(x_t, x_{t+1} … | state at t).
    """

    log_likelihood: Tensor  # (B,)
    predicted: Tensor  # (K, S, N)
    ahead: Tensor
    future: Tensor

    def states(self) -> Tensor:
        """Return p(state | x), (S, N, K)."""
        joint = self.predicted * self.future
        return joint.div_(joint.sum(dim=0)).permute(1, 2, 0)

    def moves(self, move: Tensor, inside: Tensor, lanes: Lanes) -> Tensor:
        """Return the expected number of moves, (K, K); ``inside`` (S, N) is 0 for padding."""
        joint = (self.predicted * self.future).sum(dim=0)
        arriving, k = self.future * (inside / joint), len(move)
        counts = self.ahead[:, :-1].reshape(k, -1) @ arriving[:, 1:].reshape(k, -1).T
        if lanes.chunks > 1:  # from the end of a chunk to the beginning of the next
            shape = k, lanes.sequences, lanes.chunks
            last, first = self.ahead[:, -1].reshape(shape), arriving[:, 0].reshape(shape)
            counts = counts + last[..., :-1].reshape(k, -1) @ first[..., 1:].reshape(k, -1).T
        return move * counts


def possible(move: Tensor) -> bool:
    """Whether the scan of probabilities is exact for these transitions."""
    return bool(move.min() >= POSSIBLE)


def scan(start: Tensor, move: Tensor, log_seen: Tensor, lanes: Lanes) -> Messages:
    """Return the messages for log b in lanes, (S, N, K); NaN where even they leave the range."""
    seen = log_seen.permute(2, 0, 1).contiguous()  # (K, S, N): reductions over K are quick
    top = seen.amax(dim=0)
    seen = (seen - top).exp_()
    every = max(1, int(math.log(POSSIBLE) / math.log(min(0.5, float(move.min())))))
    matrices = _products(move, seen, every, lanes) if lanes.chunks > 1 else None
    k, b = len(move), lanes.sequences
    first = start.expand(b, k)
    if matrices is not None:
        first = prefix(first, matrices)  # (B, C, K)
    predicted, ahead, logs = _fill_forward(first.reshape(-1, k).T, move, seen, every)
    last = torch.ones_like(first)
    if matrices is not None:
        flipped = matrices.flip(1).transpose(-1, -2)
        last = prefix(torch.ones_like(last[:, 0]), flipped).flip(1)
    future = _fill_backward(last.reshape(-1, k).T, move, seen, every)
    log_likelihood = (top.sum(dim=0) + logs).reshape(b, -1).sum(dim=1)
    return Messages(log_likelihood, predicted, ahead, future)


def _products(move: Tensor, seen: Tensor, every: int, lanes: Lanes) -> Tensor:
    """Return prod_s diag(b_s) A of each chunk, up to a factor, (B, C, K, K)."""
    k, size, n = seen.shape
    back = move.T.contiguous()
    product = torch.eye(k, dtype=move.dtype, device=move.device)[:, :, None].repeat(1, 1, n)
    scratch = torch.empty_like(product)  # (K after, K before, N)
    for s in range(size):
        torch.mul(product, seen[:, s, None], out=scratch)
        torch.mm(back, scratch.view(k, -1), out=product.view(k, -1))
        if s % every == every - 1 or s == size - 1:
            product.div_(product.sum(dim=(0, 1)))
    return product.permute(2, 1, 0).reshape(lanes.sequences, lanes.chunks, k, k)


def prefix(first: Tensor, matrices: Tensor) -> Tensor:
    """Return v_0, v_0 M_0, v_0 M_0 M_1 …, each scaled to sum 1: (B, C, K) of (B, C, K, K)."""
    b, c, k, _ = matrices.shape
    if c <= LOOP:
        return _each_prefix(first, matrices)
    size = math.ceil(math.sqrt(c))
    groups = math.ceil(c / size)
    unit = torch.eye(k, dtype=matrices.dtype, device=matrices.device)
    padded = torch.cat([matrices, unit.expand(b, groups * size - c, k, k)], dim=1)
    parts = padded.view(b * groups, size, k, k)
    product = parts[:, 0]
    for i in range(1, size):
        product = product @ parts[:, i]
        product = product / product.sum(dim=(1, 2), keepdim=True)
    starts = prefix(first, product.view(b, groups, k, k)).reshape(b * groups, k)
    return _each_prefix(starts, parts).view(b, groups * size, k)[:, :c]


def _each_prefix(first: Tensor, matrices: Tensor) -> Tensor:
    found = torch.empty_like(matrices[:, :, 0])  # (B, C, K)
    message = (first / first.sum(dim=-1, keepdim=True))[:, None]
    for c in range(matrices.shape[1]):
        found[:, c] = message[:, 0]
        message = message @ matrices[:, c]
        message = message / message.sum(dim=-1, keepdim=True)
    return found


def _fill_forward(
    first: Tensor, move: Tensor, seen: Tensor, every: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return predictions before and states after each observation, and sums of logs, (N,)."""
    predicted, ahead = torch.empty_like(seen), torch.empty_like(seen)
    back, logs, size = move.T.contiguous(), torch.zeros_like(seen[0, 0]), seen.shape[1]
    predicted[:, 0] = first
    for s in range(size):
        torch.mul(predicted[:, s], seen[:, s], out=ahead[:, s])
        if s % every == 0 or s == size - 1:
            norm = ahead[:, s].sum(dim=0)
            ahead[:, s] /= norm
            logs += norm.log()
        if s + 1 < size:
            torch.mm(back, ahead[:, s], out=predicted[:, s + 1])
    return predicted, ahead, logs


def _fill_backward(last: Tensor, move: Tensor, seen: Tensor, every: int) -> Tensor:
    future, message = torch.empty_like(seen), last
    for s in range(seen.shape[1] - 1, -1, -1):
        message = move @ message
        if s % every == 0:
            message /= message.sum(dim=0)
        torch.mul(message, seen[:, s], out=future[:, s])
        message = future[:, s]
    return future


def viterbi_scan(
    log_start: Tensor, log_move: Tensor, log_seen: Tensor, lanes: Lanes, lengths: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the likeliest paths, (B, T), and their log-probabilities, (B,), from log b (B, T, K).

    The same three loops, with sums for products and the largest for sums. Paths are those of the
    first ``lengths`` steps, (B,), and stay in their last state after them.
    """
    k, b = log_move.shape[0], lanes.sequences
    seen = lanes.spread(log_seen, 0.0)  # (S, N, K)
    message = log_start.expand(b, k)
    if lanes.chunks > 1:
        product = seen[0][:, :, None] + log_move
        for s in range(1, lanes.size):
            product = _best(product + seen[s][:, None, :], log_move)
        chunks = product.view(b, lanes.chunks, k, k)
        starts = [message]
        for c in range(lanes.chunks - 1):
            starts.append((starts[-1][:, :, None] + chunks[:, c]).amax(dim=1))
        message = torch.stack(starts, dim=1).reshape(-1, k)
    reached = torch.empty_like(seen)
    for s in range(lanes.size):
        reached[s] = message + seen[s]
        message = _best(reached[s], log_move)
    rows = lanes.gather(reached)  # (B, T, K)
    ends = lengths.to(rows.device) - 1
    log_path, last = rows[torch.arange(b, device=rows.device), ends].max(dim=1)
    return _traced(rows, log_move, last, ends), log_path


def _best(message: Tensor, log_move: Tensor) -> Tensor:
    """Return max_i (m_i + log A_ij), (..., K); a loop over i keeps tables small."""
    best = message[..., :1] + log_move[0]
    for i in range(1, len(log_move)):
        best = torch.maximum(best, message[..., i : i + 1] + log_move[i])
    return best


def _traced(reached: Tensor, log_move: Tensor, last: Tensor, ends: Tensor) -> Tensor:
    """Go back from the last states along the best predecessors, (B, T)."""
    before = (reached[:, :-1, :, None] + log_move).argmax(dim=2).cpu().numpy()  # (B, T - 1, K)
    path = np.empty(reached.shape[:2], dtype=np.int64)
    state, end, rows = last.cpu().numpy(), ends.cpu().numpy(), np.arange(len(path))
    path[:, -1] = state
    for t in range(before.shape[1] - 1, -1, -1):
        state = np.where(t < end, before[rows, t, state], state)
        path[:, t] = state
    return torch.from_numpy(path).to(last.device)
