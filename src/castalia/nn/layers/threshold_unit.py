"""The McCulloch-Pitts unit: fires when its weighted input reaches a threshold."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["ThresholdUnit"]


class ThresholdUnit(nn.Module):
    """y = 1 if w x >= threshold, else 0 (or -1).

    The weights are set by hand and nothing is learnt: the step has no gradient. Units with weights
    and thresholds for AND, OR and NOT make any Boolean function in two layers.

    Parameters
    ----------
    weight
        Weights of one unit, (D,), or of several side by side, (H, D).
    threshold
        What w x must reach; one number, or one a unit.
    signed
        Whether a silent unit gives -1 instead of 0.

    References
    ----------
    1943, McCulloch, Pitts, A logical calculus of the ideas immanent in nervous activity, Bulletin
    of Mathematical Biophysics 5.

    Examples
    --------
    >>> both = ThresholdUnit([1.0, 1.0], 2.0)
    >>> both(torch.tensor([[0.0, 1.0], [1.0, 1.0]]))
    tensor([0., 1.])
    """

    weight: Tensor
    threshold: Tensor

    def __init__(
        self,
        weight: Sequence[float] | Sequence[Sequence[float]],
        threshold: float | Sequence[float],
        *,
        signed: bool = False,
    ) -> None:
        super().__init__()
        self.register_buffer("weight", torch.as_tensor(weight, dtype=torch.float32))
        self.register_buffer("threshold", torch.as_tensor(threshold, dtype=torch.float32))
        self.signed = signed

    def forward(self, x: Tensor) -> Tensor:  # (..., D)
        """Return what each unit answers, (...,) or (..., H)."""
        fires = (torch.inner(x, self.weight.to(x.dtype)) >= self.threshold).to(x.dtype)
        return 2 * fires - 1 if self.signed else fires
