"""How the next token is chosen from the scores.

greedy        argmax_v z_v
temperature   p_v = exp(z_v / t) / sum; small t sharpens, large t flattens
top-k         the k most probable tokens only
nucleus       the fewest most probable tokens that hold the mass p together
penalty       scores of tokens used before are divided (or, if negative, multiplied) by it

References: 2019, Keskar et al., CTRL, arXiv 1909.05858; 2020, Holtzman et al., The curious case of
neural text degeneration, arXiv 1904.09751.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor

from castalia.errors import InvalidParameter

__all__ = ["Picker", "nucleus", "penalise", "top"]


def top(logits: Tensor, k: int) -> Tensor:
    """Put -inf in the place of all but the k largest scores.

    >>> top(torch.tensor([[1.0, 3.0, 2.0]]), 2)
    tensor([[-inf, 3., 2.]])
    """
    least = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < least, -torch.inf)


def nucleus(logits: Tensor, p: float) -> Tensor:
    """Put -inf in the place of what lies outside the smallest set of probability p.

    >>> nucleus(torch.tensor([[0.5, 0.3, 0.2]]).log(), 0.6).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    ordered, index = logits.sort(dim=-1, descending=True)
    share = ordered.softmax(dim=-1)
    before = share.cumsum(dim=-1) - share  # mass of what is more probable
    outside = torch.zeros_like(before, dtype=torch.bool).scatter(-1, index, before >= p)
    return logits.masked_fill(outside, -torch.inf)


def penalise(logits: Tensor, used: Tensor, penalty: float) -> Tensor:
    """Lower the scores of tokens used before; ``used`` holds truth values, (B, V).

    >>> penalise(torch.tensor([[2.0, -2.0, 2.0]]), torch.tensor([[True, True, False]]), 2.0)
    tensor([[ 1., -4.,  2.]])
    """
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(used, lowered, logits)


@dataclass(frozen=True)
class Picker:
    """Chooses the next token of each row.

    Parameters
    ----------
    temperature
        Divides the scores; 0 takes the best token.
    top_k
        How many tokens can be chosen; None: all.
    top_p
        Probability held by the tokens that can be chosen, from above 0 to 1.
    repetition_penalty
        Above 1, tokens used before become less probable.

    Examples
    --------
    >>> Picker()(torch.tensor([[0.1, 0.7, 0.2]]))
    tensor([1])
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if not _is_number(self.temperature) or not 0 <= self.temperature < math.inf:
            raise _wrong("temperature", "a number from 0", self.temperature, "0 is greedy")
        if self.top_k is not None and not (_is_number(self.top_k, Integral) and self.top_k >= 1):
            raise _wrong("top_k", "a whole number from 1, or None", self.top_k, "None keeps all")
        if not _is_number(self.top_p) or not 0 < self.top_p <= 1:
            remedy = "1 keeps every token; for the best one alone set temperature=0"
            raise _wrong("top_p", "above 0 and at most 1", self.top_p, remedy)
        penalty = self.repetition_penalty
        if not _is_number(penalty) or not 0 < penalty < math.inf:
            raise _wrong("repetition_penalty", "above 0", penalty, "1 is none")

    def scores(self, logits: Tensor, used: Tensor | None = None) -> Tensor:
        """Return the scores after penalty, temperature, top-k and nucleus, (B, V)."""
        if used is not None and self.repetition_penalty != 1:
            logits = penalise(logits, used, self.repetition_penalty)
        if self.temperature > 0:
            logits = logits / self.temperature
        if self.top_k is not None:
            logits = top(logits, self.top_k)
        return nucleus(logits, self.top_p) if self.top_p < 1 else logits

    def __call__(self, logits: Tensor, used: Tensor | None = None) -> Tensor:  # (B, V)
        """Return the chosen tokens, (B,)."""
        return self.choose(logits, used)[1]

    def choose(self, logits: Tensor, used: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return the score or share of the chosen tokens, and the tokens, (B,) each.

        The former is not finite where a score is NaN or +inf, or where all scores are -inf.
        """
        scores = self.scores(logits.to(torch.promote_types(logits.dtype, torch.float32)), used)
        if self.temperature == 0:
            score, chosen = scores.max(dim=-1)
            return score, chosen
        # A race of exponential clocks with rates p_v is won by v with probability p_v. Unlike
        # `multinomial` it needs no word from the device.
        shares = scores.softmax(dim=-1)
        chosen = (shares / torch.empty_like(shares).exponential_()).argmax(dim=-1)
        return shares.gather(-1, chosen[..., None])[..., 0], chosen


def _is_number(value: object, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _wrong(name: str, rule: str, value: object, remedy: str) -> InvalidParameter:
    return InvalidParameter(f"generate: `{name}` must be {rule}; got {value!r}. {remedy}.")
