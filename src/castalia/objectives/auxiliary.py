"""A task and the next token at once: L = L2 + lambda L1.

L2 is the task's loss, L1 the mean of -log p of each token of the task's own texts given those
before it. The second keeps a pretrained network close to the language it knows.
Shapes: B batch, R sequences of a row, T tokens.
Reference: 2018, Radford et al., Improving language understanding by generative pre-training, 3.2.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.objectives.objective import Objective, weighted_mean
from castalia.objectives.supervised import Supervised
from castalia.objectives.tokens import row_means, token_losses
from castalia.protocols import Batch

__all__ = ["AuxiliaryLM"]


class AuxiliaryLM(Objective):
    """A task's loss plus a share of the language model's, in one pass of the network.

    The network gives ``features`` (B R, T, dim) of ids (B, T) or (B, R, T), and from these the
    scores of the task by ``classify`` and of the next tokens by ``logits``.

    Parameters
    ----------
    task
        The loss of the scores, L2.
    weight
        The factor lambda.
    pad
        Id of padding, which is never a target.

    Examples
    --------
    >>> from castalia.nets.language import GPT, CausalClassifier
    >>> from castalia.objectives import CrossEntropy
    >>> import torch
    >>> net = CausalClassifier(GPT(9, context=4, dim=8, depth=1, heads=2), 2, padding=8)
    >>> batch = Batch(torch.tensor([[1, 2, 3, 8]]), torch.tensor([0]))
    >>> terms = AuxiliaryLM(CrossEntropy(), 0.5, pad=8).terms(net, batch, "train")
    >>> bool(terms["loss"] == terms["task"] + 0.5 * terms["language"])
    True
    """

    def __init__(self, task: Supervised, weight: float = 0.5, *, pad: int) -> None:
        if weight < 0:
            raise InvalidParameter(f"AuxiliaryLM: `weight` must be at least 0; got {weight!r}.")
        self.task, self.weight, self.pad = task, weight, pad

    def terms(self, net: Any, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the sum, and both parts."""
        h = net.features(batch.x)
        task = self.task.rows(net.classify(h, batch.x), batch.y)
        ids = batch.x.flatten(0, -2)  # (B R, T)
        losses = token_losses(net.logits(h[:, :-1]), ids[:, 1:])
        language = row_means(losses, ids[:, 1:] != self.pad).view(len(task), -1).mean(dim=1)
        parts = {
            "task": weighted_mean(task, batch.weight),
            "language": weighted_mean(language, batch.weight),
        }
        return {"loss": parts["task"] + self.weight * parts["language"], **parts}
