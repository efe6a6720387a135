"""Writing a sequence that answers another: the mean of -log p of its tokens, truth fed back.

The decoder reads the start and the true tokens so far (teacher forcing), so that all places of an
answer are learnt at once.
A source is tokens, or an image to be captioned.
Shapes: B batch, S tokens of a source, T tokens of an answer.
References: 2014, Sutskever, Vinyals, Le, Sequence to sequence learning, arXiv 1409.3215; 2015,
Bengio, Vinyals, Jaitly, Shazeer, Scheduled sampling, arXiv 1506.03099.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.tokens import row_means, shift_right, token_losses
from castalia.protocols import Batch

__all__ = ["SequenceCrossEntropy"]


class SequenceCrossEntropy(Objective):
    """Cross-entropy of answers; the network is ``net(ids, decoder_ids, keep=…)``.

    Parameters
    ----------
    pad, start
        Ids of padding and of what an answer begins with.
    label_smoothing
        Share of each token's mass that is spread over the vocabulary.
    per
        A number that divides every row's sum, such as the usual length of an answer: then every
        token counts the same. None: the row's own length.
    sampled
        Share of the decoder's inputs that are its own guesses instead of the truth (scheduled
        sampling); the network must have an argument of that name.
    """

    def __init__(
        self,
        *,
        pad: int,
        start: int,
        label_smoothing: float = 0.0,
        per: float | None = None,
        sampled: float = 0.0,
    ) -> None:
        if not 0 <= label_smoothing < 1:
            raise InvalidParameter(
                "SequenceCrossEntropy: `label_smoothing` must be from 0 to below 1; got "
                f"{label_smoothing!r}."
            )
        self.pad, self.start, self.label_smoothing = pad, start, label_smoothing
        self.per, self.sampled = per, sampled

    def rows(self, net: nn.Module, source: Tensor, answer: Tensor) -> Tensor:  # (B, S), (B, T)
        """Return the loss of each row, (B,); it is smoothed in training only."""
        more: dict[str, Any] = {"sampled": self.sampled} if self.sampled and net.training else {}
        keep = None if source.is_floating_point() else source != self.pad  # images are all real
        logits = net(source, shift_right(answer, self.start), keep=keep, **more)
        smoothing = self.label_smoothing if net.training else 0.0
        return row_means(token_losses(logits, answer, smoothing), answer != self.pad, self.per)

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the weighted mean of the rows' losses."""
        return {"loss": weighted_mean(self.rows(net, batch.x, batch.y), batch.weight)}
