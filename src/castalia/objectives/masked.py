"""Masked language model: tokens are hidden, and guessed from both sides.

Of each row a share of the real tokens is chosen; of these 80 % become the mask, 10 % a random token
and 10 % stay. Minimised is the mean of -log p(token | damaged row) over the chosen places.
Shapes: B batch, T tokens, K places to guess, V vocabulary.
References: 2019, Devlin, Chang, Lee, Toutanova, BERT, arXiv 1810.04805; 2019, Liu et al., RoBERTa,
arXiv 1907.11692 (masks drawn again each time a row is seen, as here).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import chance, ranks, row_means, token_losses
from castalia.protocols import Batch

__all__ = ["Masked", "MaskedLM"]


class Masked(NamedTuple):
    """A damaged batch.

    Attributes
    ----------
    ids
        Tokens with the damage, (B, T).
    places, targets
        Where to guess and what stood there, (B, K).
    counted
        Which of these places are real, (B, K).
    """

    ids: Tensor
    places: Tensor
    targets: Tensor
    counted: Tensor


class MaskedLM(Objective):
    """Guess hidden tokens; the network gives ``features(ids, keep=…)`` and ``head``.

    Parameters
    ----------
    vocabulary
        Number of tokens.
    mask, pad
        Ids of the mask and of padding.
    special
        Ids that are never chosen and never put in: begin, end, unknown …
    rate
        Share of a row's real tokens that are chosen, rounded to whole tokens, at least one.
    masked, random
        Shares of the chosen tokens that become the mask, and a random token; the rest stays.

    Examples
    --------
    >>> objective = MaskedLM(9, mask=4, pad=0, special=(0, 1, 2, 3, 4), rate=0.5, masked=1.0)
    Traceback (most recent call last):
    ...
    castalia.errors.InvalidParameter: MaskedLM: `masked` + `random` must be at most 1; got 1.1.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        mask: int,
        pad: int,
        special: Collection[int] = (),
        rate: float = 0.15,
        masked: float = 0.8,
        random: float = 0.1,
    ) -> None:
        if not 0 < rate <= 1:
            raise InvalidParameter(f"MaskedLM: `rate` must be above 0 and at most 1; got {rate!r}.")
        if masked + random > 1:
            raise InvalidParameter(
                f"MaskedLM: `masked` + `random` must be at most 1; got {masked + random:g}."
            )
        self.mask, self.pad, self.rate, self.masked, self.random = mask, pad, rate, masked, random
        ordinary = torch.ones(vocabulary, dtype=torch.bool)
        ordinary[[pad, mask, *special]] = False
        self.ordinary = {torch.device("cpu"): ordinary}  # by device: a copy there is made once
        self.words = {torch.device("cpu"): ordinary.nonzero().flatten()}

    def damage(self, ids: Tensor, source: torch.Generator | None = None) -> Masked:
        """Choose tokens of rows (B, T) and hide them."""
        eligible = _on(self.ordinary, ids.device)[ids]
        most = max(1, round(self.rate * ids.shape[1]))
        count = (self.rate * eligible.sum(dim=1, keepdim=True)).round().clamp(1, most)  # (B, 1)
        order = ranks(eligible, source)
        places = order.argsort(dim=1)[:, :most]  # (B, K)
        counted = eligible.gather(1, places) & (torch.arange(most, device=ids.device) < count)
        targets = ids.gather(1, places)
        fate = torch.rand(places.shape, device=ids.device, generator=source)
        words = _on(self.words, ids.device)
        drawn = words[torch.randint(len(words), places.shape, device=ids.device, generator=source)]
        put = torch.where(fate < self.masked, self.mask, targets)
        put = torch.where((fate >= self.masked) & (fate < self.masked + self.random), drawn, put)
        return Masked(
            ids.scatter(1, places, torch.where(counted, put, targets)), places, targets, counted
        )

    def rows(self, net: nn.Module, h: Tensor, found: Masked) -> Tensor:  # (B, T, dim)
        """Return the loss of each row, (B,), from the vectors of the damaged rows."""
        chosen = h.gather(1, found.places[..., None].expand(-1, -1, h.shape[-1]))  # (B, K, dim)
        logits = net.head(chosen)  # type: ignore[operator]
        return row_means(token_losses(logits, found.targets), found.counted)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the mean over their chosen tokens."""
        found = self.damage(batch.x, chance(net, batch.x.device))
        h = net.features(found.ids, keep=batch.x != self.pad)  # type: ignore[operator]
        return {"loss": weighted_mean(self.rows(net, h, found), batch.weight)}


def _on(kept: dict[torch.device, Tensor], device: torch.device) -> Tensor:
    if device not in kept:
        kept[device] = kept[torch.device("cpu")].to(device)
    return kept[device]
