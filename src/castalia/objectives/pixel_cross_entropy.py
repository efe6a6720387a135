"""Cross-entropy of a label for every pixel, with weights of classes and pixels that do not count.

l_b = (1 / |P_b|) sum over p in P_b of  w_{y_p} (- log softmax(z_p)_{y_p}),  P_b the counted pixels
of image b.  Shapes: B batch, K classes, H height, W width.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.objectives.supervised import Supervised

__all__ = ["PixelCrossEntropy"]


class PixelCrossEntropy(Supervised):
    """-w_y log softmax(z)_y, a mean over the counted pixels of each image.

    The mean divides by the number of counted pixels, not by their weights: an image full of a rare
    class pulls harder than an image without it, as it would with one mean over all pixels of the
    data. An image of which no pixel counts costs nothing, and remains one row of the batch.

    Parameters
    ----------
    class_weight
        One weight a class, or None for all ones.
    void
        Class code of pixels that do not count, or None.
    label_smoothing
        Mass taken from the true class and spread over all, at least 0 and below 1.

    Examples
    --------
    >>> scores, masks = torch.zeros(1, 4, 1, 3), torch.tensor([[[0, 3, 9]]])
    >>> PixelCrossEntropy(void=9).rows(scores, masks).exp()
    tensor([4.])
    """

    def __init__(
        self,
        *,
        class_weight: Sequence[float] | None = None,
        void: int | None = None,
        label_smoothing: float = 0.0,
    ) -> None:
        if not 0 <= label_smoothing < 1:
            raise InvalidParameter(
                "PixelCrossEntropy: `label_smoothing` must be at least 0 and below 1; got "
                f"{label_smoothing}."
            )
        self.void, self.label_smoothing = void, label_smoothing
        self.class_weight = None if class_weight is None else torch.tensor(tuple(class_weight))

    def rows(self, outputs: Tensor, targets: Tensor) -> Tensor:  # (B, K, H, W), (B, H, W)
        """Return the mean over the counted pixels of each image, (B,)."""
        outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        loss = F.cross_entropy(
            outputs,
            targets.long(),
            weight=self._weight(outputs),
            ignore_index=-100 if self.void is None else self.void,
            reduction="none",
            label_smoothing=self.label_smoothing,
        ).flatten(1)  # (B, H W), 0 where void
        if self.void is None:
            return loss.mean(dim=1)
        counted = (targets != self.void).flatten(1).sum(dim=1).clamp_min(1)
        return loss.sum(dim=1) / counted

    def _weight(self, outputs: Tensor) -> Tensor | None:
        """Return the weights where the outputs are; they move there once."""
        if self.class_weight is not None:
            self.class_weight = self.class_weight.to(outputs)
        return self.class_weight
