"""Triton kernel of the loss of tokens: scores become their gradients where they lie.

Shapes: N tokens, V vocabulary, W width of a row of scores, V and what pads it.
"""

from __future__ import annotations

from castalia.utils.triton_language import tl, triton

__all__ = ["scores_to_gradients"]


@triton.jit
def scores_to_gradients(
    z, targets, share, losses, V: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the loss of a token and, over its scores, c (softmax(z) - e_target)."""
    row = tl.program_id(0).to(tl.int64)
    z += row * W
    target, c = tl.load(targets + row), tl.load(share + row)
    wanted = tl.load(z + target).to(tl.float32)  # before any thread writes there
    v = tl.arange(0, BLOCK)
    top, total = float("-inf"), 0.0
    for start in range(0, W, BLOCK):
        score = tl.load(z + start + v, mask=start + v < W, other=0.0).to(tl.float32)
        score = tl.where(start + v < V, score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(score - higher), 0)
        top = higher
    tl.store(losses + row, c * (tl.log(total) + top - wanted))
    for start in range(0, W, BLOCK):
        here = start + v
        score = tl.load(z + here, mask=here < W, other=0.0).to(tl.float32)
        part = tl.where(here < V, tl.exp(score - top) / total, 0.0)
        gradient = c * tl.where(here == target, part - 1.0, part)
        tl.store(z + here, gradient, mask=here < W)
