"""Residual block: what a function adds to its input.

H = f(x) + lambda x, so dH/dx = J_f + lambda I: the gradient has a way past f.
Reference: 2016, He, Zhang, Ren, Sun, Deep residual learning for image recognition, arXiv
1512.03385.
"""

from torch import Tensor, nn

from castalia.errors import ShapeMismatch

__all__ = ["Residual"]


class Residual(nn.Module):
    """f(x) + scale * x.

    Parameters
    ----------
    fn
        The module f; its output has the shape of its input.
    scale
        Factor lambda of the skip connection; 0 leaves f alone.

    Examples
    --------
    >>> import torch
    >>> Residual(nn.ReLU())(torch.tensor([[-1.0, 2.0]]))
    tensor([[-1.,  4.]])
    """

    def __init__(self, fn: nn.Module, scale: float = 1.0) -> None:
        super().__init__()
        self.fn, self.scale = fn, scale

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x) + scale * x."""
        out: Tensor = self.fn(x)
        if out.shape != x.shape:
            raise ShapeMismatch(
                f"Residual: `fn` must keep the shape of its input, {tuple(x.shape)}; got "
                f"{tuple(out.shape)}. Project the input to that shape first."
            )
        return out + (x if self.scale == 1 else self.scale * x)
