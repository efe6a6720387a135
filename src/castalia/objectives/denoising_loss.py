"""Denoising: a text is damaged, and written whole again.

Four kinds of damage, one after another: sentences change their order; stretches of random length
become one mask each (infilling; a stretch of length 0 inserts a mask); single tokens become masks;
single tokens are deleted. Minimised is the mean of -log p of the tokens of the whole text.
Shapes: B batch, T tokens.
Reference: 2020, Lewis et al., BART: denoising sequence-to-sequence pre-training, arXiv 1910.13461.
Departs from it: stretches of the infilling that meet become one.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.sequence_cross_entropy import SequenceCrossEntropy
from castalia.objectives.tokens import chance, compact
from castalia.protocols import Batch

__all__ = ["Denoising", "delete", "infill", "mask_some", "permute_sentences"]


class Denoising(Objective):
    """Write damaged rows whole again; the network is ``net(ids, decoder_ids, keep=…)``.

    Parameters
    ----------
    mask, pad, start
        Ids of the mask, of padding and of what an answer begins with.
    special
        Ids that are never damaged: begin, end.
    infilled
        Share of the tokens covered by stretches that become one mask.
    mean_span
        Mean length of such a stretch (Poisson).
    masked, deleted
        Shares of single tokens that become the mask, and that disappear.
    sentence_ends
        Ids after which a sentence is over; sentences are then put in a random order. Empty: they
        stay.
    """

    def __init__(
        self,
        *,
        mask: int,
        pad: int,
        start: int,
        special: Collection[int] = (),
        infilled: float = 0.3,
        mean_span: float = 3.0,
        masked: float = 0.0,
        deleted: float = 0.0,
        sentence_ends: Collection[int] = (),
    ) -> None:
        shares = {"infilled": infilled, "masked": masked, "deleted": deleted}
        for name, share in shares.items():
            if not 0 <= share < 1:
                raise InvalidParameter(
                    f"Denoising: `{name}` must be from 0 to below 1; got {share!r}."
                )
        if not any(shares.values()) and not sentence_ends:
            raise InvalidParameter(
                "Denoising: at least one damage must be above 0, or there is nothing to learn."
            )
        self.mask, self.pad, self.special = mask, pad, tuple({pad, *special})
        self.infilled, self.mean_span = infilled, mean_span
        self.masked, self.deleted, self.sentence_ends = masked, deleted, tuple(sentence_ends)
        self.loss = SequenceCrossEntropy(pad=pad, start=start)

    def corrupt(self, ids: Tensor, source: torch.Generator | None = None) -> Tensor:
        """Return damaged rows, padded to one width."""
        if self.sentence_ends:
            ids = permute_sentences(ids, self._ordinary(ids), self.sentence_ends, source=source)
        if self.infilled:
            ids = infill(
                ids,
                self._ordinary(ids),
                share=self.infilled,
                mean_span=self.mean_span,
                mask=self.mask,
                pad=self.pad,
                source=source,
            )
        if self.masked:
            ids = mask_some(ids, self._ordinary(ids), self.masked, self.mask, source)
        if self.deleted:
            ids = delete(ids, self._ordinary(ids), self.deleted, self.pad, source)
        return ids

    def _ordinary(self, ids: Tensor) -> Tensor:
        found = torch.ones_like(ids, dtype=torch.bool)
        for token in self.special:
            found &= ids != token
        return found

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the mean over rows of the mean over their tokens."""
        damaged = self.corrupt(batch.x, chance(net, batch.x.device))
        return {"loss": weighted_mean(self.loss.rows(net, damaged, batch.x), batch.weight)}


def mask_some(
    ids: Tensor, eligible: Tensor, share: float, mask: int, source: torch.Generator | None = None
) -> Tensor:
    """Replace single tokens by the mask, (B, T)."""
    hit = torch.rand(ids.shape, device=ids.device, generator=source) < share
    return torch.where(hit & eligible, mask, ids)


def delete(
    ids: Tensor, eligible: Tensor, share: float, pad: int, source: torch.Generator | None = None
) -> Tensor:
    """Remove single tokens; the rest moves up, (B, T)."""
    hit = torch.rand(ids.shape, device=ids.device, generator=source) < share
    return compact(ids, ~(hit & eligible) & (ids != pad), pad)


def infill(
    ids: Tensor,
    eligible: Tensor,
    *,
    share: float,
    mean_span: float,
    mask: int,
    pad: int,
    source: torch.Generator | None = None,
) -> Tensor:
    """Replace stretches by one mask each, (B, W); W is T and room for inserted masks.

    A stretch begins at a token with probability q and has a Poisson length; a token is spared with
    probability exp(-q mean_span), so q = -log(1 - share) / mean_span covers the wanted share.
    """
    length = ids.shape[1]
    q = -math.log1p(-share) / mean_span
    begins = (torch.rand(ids.shape, device=ids.device, generator=source) < q) & eligible
    spans = torch.poisson(torch.full(ids.shape, mean_span, device=ids.device), generator=source)
    place = torch.arange(length, device=ids.device)
    until = torch.where(begins, place + spans.long(), 0).cummax(dim=1).values  # where cover ends
    covered = (until > place) & eligible
    first = covered & ~F.pad(covered[:, :-1], (1, 0))
    inserted = begins & ~covered  # a stretch of length 0
    both = torch.stack([torch.full_like(ids, mask), ids], dim=2).flatten(1)
    wanted = torch.stack([first | inserted, ~covered & (ids != pad)], dim=2).flatten(1)
    return compact(both, wanted, pad, length + math.ceil(length * share / 2))


def permute_sentences(
    ids: Tensor,
    eligible: Tensor,
    ends: Collection[int],
    *,
    source: torch.Generator | None = None,
) -> Tensor:
    """Put the sentences of each row in a random order, (B, T); other tokens stay where they are."""
    over = torch.zeros_like(eligible)
    for token in ends:
        over |= ids == token
    sentence = F.pad((over & eligible).long().cumsum(dim=1)[:, :-1], (1, 0))  # (B, T)
    keys = torch.rand(ids.shape, device=ids.device, generator=source).gather(1, sentence)
    # Slots of eligible tokens are filled, in order, by eligible tokens sorted by sentence.
    order = torch.where(eligible, keys, 2.0).argsort(dim=1, stable=True)
    slots = (~eligible).to(torch.uint8).argsort(dim=1, stable=True)
    return ids.scatter(1, slots, ids.gather(1, order))
