"""Log-probabilities of the tokens of texts, whatever their length.

A text longer than the context is read in windows that overlap by half, and a token is scored in
the first window that holds it: every token has at least half a context before it, or all there is.
Shapes: B rows, W tokens of a window, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from castalia.utils.devices import cpu_scope

__all__ = ["token_log_probabilities"]

TOKENS, LOGITS = 1 << 16, 1 << 25  # of a batch, and of its scores held at once


class Window(NamedTuple):
    """Some ids of a stream, and from which on their log-probabilities count."""

    stream: int
    start: int
    fresh: int
    ids: np.ndarray


def token_log_probabilities(
    net: Any, streams: Sequence[np.ndarray], context: int | None
) -> list[np.ndarray]:
    """Return log p of every id but the first of each stream, given those before it.

    Parameters
    ----------
    net
        A causal network with ``features`` and ``head``.
    streams
        Ids, one array a stream.
    context
        The most tokens the network reads at once; None: any number.
    """
    device = next(net.parameters()).device
    found = [np.zeros(max(len(stream) - 1, 0)) for stream in streams]
    windows = [w for i, stream in enumerate(streams) for w in _windows(i, stream, context)]
    work = float(sum(p.numel() for p in net.parameters())) * TOKENS
    net.eval()
    with torch.inference_mode(), cpu_scope(device, work, wait=False):
        for batch in _batches(sorted(windows, key=lambda window: len(window.ids))):
            width = len(batch[-1].ids)
            ids = np.zeros((len(batch), width), dtype=np.int64)  # padding behind is never seen
            for row, window in zip(ids, batch, strict=True):
                row[: len(window.ids)] = window.ids
            logs = _scores(net, torch.from_numpy(ids).to(device)).double().cpu().numpy()
            for row, (stream, start, fresh, own) in zip(logs, batch, strict=True):
                found[stream][start + fresh : start + len(own) - 1] = row[fresh : len(own) - 1]
    return found


def _windows(number: int, stream: np.ndarray, context: int | None) -> Iterator[Window]:
    """Yield windows of at most ``context`` inputs and one more."""
    if context is None or len(stream) <= context + 1:
        if len(stream) > 1:
            yield Window(number, 0, 0, stream)
        return
    last, step = len(stream) - context - 1, max(1, context // 2)
    done = 0
    for start in [*range(0, last, step), last]:
        yield Window(number, start, done - start, stream[start : start + context + 1])
        done = start + context


def _batches(windows: list[Window]) -> Iterator[list[Window]]:
    """Yield windows together, as many as a batch of tokens holds."""
    batch: list[Window] = []
    for window in windows:
        if batch and (len(batch) + 1) * len(window.ids) > TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def _scores(net: Any, ids: Tensor) -> Tensor:  # (B, W + 1)
    """Return log p of ids 1 … W, (B, W), with few logits at a time."""
    h = net.features(ids[:, :-1]).flatten(0, 1)
    targets = ids[:, 1:].flatten()
    step = max(1, LOGITS // net.vocabulary)
    parts = []
    for some, wanted in zip(h.split(step), targets.split(step), strict=True):
        logits = net.head(some)
        logits = logits if logits.dtype == torch.float64 else logits.float()
        parts.append(logits.log_softmax(dim=-1).gather(1, wanted[:, None])[:, 0])
    return torch.cat(parts).view(len(ids), -1)
