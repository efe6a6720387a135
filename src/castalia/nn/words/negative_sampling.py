"""A word against noise: logistic regression instead of a distribution over all words.

loss = -log s(v'_o . h) - sum_k log s(-v'_nk . h), n_k drawn with p(n) ~ count(n)^(3/4). With all
freedom, v'_o . h becomes log p(o | h) - log(k p_noise(o)).  Shapes: B batch, D dim, K noise words.
Reference: 2013, Mikolov, Sutskever, Chen, Corrado, Dean, Distributed representations of words and
phrases and their compositionality, arXiv 1310.4546.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from castalia.errors import InvalidData

__all__ = ["NegativeSampling"]


class NegativeSampling(nn.Module):
    """Loss of word2vec: tell a word from a few drawn as noise.

    Parameters
    ----------
    counts
        How often each of V words occurs.
    dim
        D, the size of a vector.
    negative
        K, how many noise words are drawn for each word.
    power
        Exponent of the counts in the distribution of noise: 1 the words' own, 0 all alike.

    Examples
    --------
    >>> head = NegativeSampling([8, 1], 3, power=1.0)
    >>> head.noise
    tensor([0.8889, 0.1111], dtype=torch.float64)
    >>> head(torch.ones(1, 3), torch.tensor([0]))  # six coins: 6 log 2
    tensor([4.1589], grad_fn=<SubBackward0>)
    """

    cumulative: Tensor

    def __init__(
        self,
        counts: Sequence[float] | np.ndarray,
        dim: int,
        *,
        negative: int = 5,
        power: float = 0.75,
    ) -> None:
        super().__init__()
        found = np.asarray(counts, dtype=float)
        if found.ndim != 1 or not len(found) or not (found > 0).all():
            raise InvalidData(
                "NegativeSampling: `counts` must be numbers above 0, one a word; got "
                f"{found.size} of them, the smallest {found.min(initial=np.inf):g}."
            )
        self.negative = negative
        total = torch.from_numpy(found**power).cumsum(0)
        self.register_buffer("cumulative", total / total[-1])  # float64: rare words keep a share
        self.weight = nn.Parameter(torch.zeros(len(found), dim))

    @property
    def noise(self) -> Tensor:
        """The probability with which each word is drawn as noise, (V,)."""
        return self.cumulative.diff(prepend=self.cumulative.new_zeros(1))

    def draw(self, *shape: int, generator: torch.Generator | None = None) -> Tensor:
        """Draw noise words, an array of a shape."""
        at = torch.rand(
            shape, generator=generator, dtype=torch.float64, device=self.cumulative.device
        )
        return torch.searchsorted(self.cumulative, at).clamp_(max=len(self.cumulative) - 1)

    def forward(
        self, h: Tensor, target: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:  # (B, D), (B,)
        """Return the loss of each row, (B,)."""
        noise = self.weight[self.draw(len(h), self.negative, generator=generator)]  # (B, K, D)
        against = torch.einsum("bkd,bd->bk", noise, h)
        right = (self.weight[target] * h).sum(dim=1)
        return -logsigmoid(right) - logsigmoid(-against).sum(dim=1)
