"""Residual block: what a function adds to its input.

H = g(f(x) + lambda S(x)), where the shortcut S and the last activation g do nothing by default.
Then dH/dx = J_f + lambda I: the gradient has a way past f. Over a stack of blocks with lambda = 1,
x_T = x_t + sum_i f_i(x_i).
References: 2016, He, Zhang, Ren, Sun, Deep residual learning for image recognition, arXiv
1512.03385; 2016, the same, Identity mappings in deep residual networks, arXiv 1603.05027.
"""

from torch import Tensor, nn

from castalia.errors import InvalidParameter, ShapeMismatch

__all__ = ["Residual", "residual_block"]


class Residual(nn.Module):
    """f(x) + scale * x.

    Parameters
    ----------
    fn
        The module f; its output has the shape of its input, or of the shortcut's output.
    scale
        Factor lambda of the skip connection; 0 leaves f alone. Below 1, a stack of L blocks lets
        lambda^L of the gradient past.
    shortcut
        Module that gives the input the shape of f's output, such as a 1 x 1 convolution; None is
        the identity.
    after
        Activation of the sum: ReLU in the first version of residual networks, None in the second.

    Examples
    --------
    >>> import torch
    >>> Residual(nn.ReLU())(torch.tensor([[-1.0, 2.0]]))
    tensor([[-1.,  4.]])
    """

    def __init__(
        self,
        fn: nn.Module,
        scale: float = 1.0,
        *,
        shortcut: nn.Module | None = None,
        after: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.fn, self.scale = fn, scale
        self.shortcut, self.after = shortcut, after

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x) + scale * x."""
        out: Tensor = self.fn(x)
        skip: Tensor = x if self.shortcut is None else self.shortcut(x)
        if out.shape != skip.shape:
            given = "its input" if self.shortcut is None else "the shortcut"
            raise ShapeMismatch(
                f"Residual: `fn` must keep the shape of {given}, {tuple(skip.shape)}; got "
                f"{tuple(out.shape)}. Project the input to that shape first."
            )
        out = out + (skip if self.scale == 1 else self.scale * skip)
        return out if self.after is None else self.after(out)


def residual_block(
    inputs: int, outputs: int, *, stride: int = 1, version: int = 1, scale: float = 1.0
) -> Residual:
    """Build a residual block of two 3 x 3 convolutions on images.

    Parameters
    ----------
    inputs, outputs
        Channels that go in and come out; where they differ, or the stride is not 1, the shortcut
        is a 1 x 1 convolution.
    stride
        Of the first convolution.
    version
        1: convolution, normalisation, ReLU, twice, the last ReLU after the sum (2015). 2:
        normalisation and ReLU before each convolution and nothing after the sum (2016), so the
        input goes through a stack unchanged.
    scale
        Factor of the shortcut.

    Examples
    --------
    >>> import torch
    >>> residual_block(3, 8, stride=2)(torch.zeros(1, 3, 9, 9)).shape
    torch.Size([1, 8, 5, 5])
    """
    if version not in (1, 2):
        raise InvalidParameter(f"residual_block: `version` must be 1 or 2; got {version!r}.")
    first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
    second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
    shortcut: nn.Module | None = None
    if stride != 1 or inputs != outputs:
        shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    norm, relu = nn.BatchNorm2d, nn.ReLU
    if version == 2:
        layers = [norm(inputs), relu(), first, norm(outputs), relu(), second]
        return Residual(nn.Sequential(*layers), scale, shortcut=shortcut)
    if shortcut is not None:
        shortcut = nn.Sequential(shortcut, norm(outputs))
    layers = [first, norm(outputs), relu(), second, norm(outputs)]
    return Residual(nn.Sequential(*layers), scale, shortcut=shortcut, after=relu())
