"""Continuing texts with a language model."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.nets.language.decoding.decode_loop import Loop
from castalia.nets.language.decoding.prompt_tensors import Reader, as_prompt
from castalia.nets.language.decoding.recordings import recorded_loop
from castalia.nets.language.decoding.token_picker import Picker
from castalia.nn.network_modes import evaluating
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["generate"]


@torch.no_grad()
def generate(
    net: nn.Module,
    ids: Any,
    *,
    tokens: int = 20,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    stop: int | Collection[int] = (),
    start: int | None = None,
    pad: int = 0,
    keep: Tensor | None = None,
    cached: bool = True,
    slide: bool = False,
    random_state: Any = None,
) -> Tensor:
    """Return the tokens that a network writes after each prompt, (B, N).

    A network of one part (``features``, ``head``, ``cache``) continues the prompt; one of two parts
    (``encode``, ``decode``, ``head``, ``cache``) answers it. On CUDA a decode step is recorded once
    and replayed; the recording and its cache are kept for the next call of the same sizes. No
    global random state is read or changed.

    Parameters
    ----------
    net
        ``GPT``, ``T5``, ``BART``, ``Transformer``, or a module with the same methods.
    ids
        Prompts: a tensor (B, P), or one list of tokens a row, of any lengths.
    tokens
        How many tokens to write at most.
    temperature
        0 takes the most probable token; otherwise tokens are drawn, from a flatter distribution
        the larger it is.
    top_k
        Draw among the k most probable tokens; None: among all.
    top_p
        Draw among the fewest tokens that hold this much probability.
    repetition_penalty
        Above 1, tokens that occurred become less probable.
    stop
        Token or tokens that end a row; what follows them is ``pad``.
    start
        The token an answer begins with, for a network of two parts.
    pad
        What stands after the end of a row; any number.
    keep
        Which tokens of a tensor of prompts are real, (B, P); None: all.
    cached
        Whether keys and values of earlier tokens are kept; without, the tokens are the same and
        take longer.
    slide
        Whether a text that grows longer than the network's context loses its oldest tokens;
        otherwise it is an error.
    random_state
        Seed of the draws.

    Examples
    --------
    >>> from castalia.nets.language import GPT
    >>> net = GPT(50, context=16, dim=8, depth=1, heads=2)
    >>> generate(net, [[3, 1], [4, 1, 5]], tokens=4).shape
    torch.Size([2, 4])
    """
    if not isinstance(tokens, Integral) or tokens < 1:
        raise InvalidParameter(f"generate: `tokens` must be a whole number from 1; got {tokens!r}.")
    pick = Picker(temperature, top_k, top_p, repetition_penalty)
    device = next(net.parameters()).device
    with evaluating(net), seed_scope(seed_from(random_state), device):
        read = Reader(net, as_prompt(ids, keep, device), start)
        stops = (stop,) if isinstance(stop, int) else tuple(stop)
        if _slides(net, read, tokens, slide) or not cached:
            context = getattr(net, "context", None)
            loop = Loop(read, pick, room=tokens, stop=stops, cache=None, context=context)
            return loop.run(tokens, pad)
        with recorded_loop(read, pick, tokens, stops) as loop:
            return loop.run(tokens, pad)


def _slides(net: Any, read: Reader, tokens: int, slide: bool) -> bool:
    """Say whether the text outgrows the context, which must be allowed."""
    context = getattr(net, "context", None)
    longest = read.first.ids.shape[1]
    if context is None or longest + tokens - 1 <= context:
        return False
    if not slide:
        raise InvalidData(
            f"generate: prompt and new tokens must fit the context of {context}; got "
            f"{longest} + {tokens}. Ask for {max(context - longest + 1, 0)} tokens at most, or set "
            "slide=True to let the oldest ones fall out."
        )
    return True
