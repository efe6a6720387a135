"""A step recorded once as a CUDA graph and replayed: the bare loop that ours is held against."""

from __future__ import annotations

from collections.abc import Callable

import torch

WARM_UP = 3  # eager steps before recording, as torch asks for


def replay(step: Callable[[], None], index: torch.Tensor, rows: int, epochs: int) -> None:
    """Take a step for every batch of epochs; ``index`` (B,) holds the numbers of its rows.

    A short last batch is dropped.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            step()
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        step()
    for _ in range(epochs):
        for batch in torch.randperm(rows, device="cuda").split(len(index)):
            if len(batch) == len(index):
                index.copy_(batch)
                recorded.replay()
