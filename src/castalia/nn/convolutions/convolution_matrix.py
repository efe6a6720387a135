"""Convolution written out as a sparse matrix.

A convolution is linear: flattened, z = W x with a row for each output and the kernel's weights in
it, shifted. Its transpose W' z is the transposed convolution: not the inverse of W, which need not
have one, but its adjoint, <W x, z> = <x, W' z>.

Shapes: C channels, O outputs, n positions in, m positions out, f taps (over all axes together).
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from castalia.errors import ShapeMismatch
from castalia.nn.convolutions.convolution_sizes import output_size

__all__ = ["convolution_matrix"]


def convolution_matrix(
    weight: Tensor,
    size: Sequence[int],
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
) -> Tensor:
    """Return the sparse matrix (O m, C n) of a cross-correlation with zeros around the border.

    Parameters
    ----------
    weight
        (O, C, f...), as ``torch.nn.Conv1d``, ``Conv2d`` and ``Conv3d`` have it.
    size
        Positions of the input along each axis.
    stride, padding, dilation
        Of the convolution, the same along each axis.

    Returns
    -------
    Tensor
        Sparse (COO). ``matrix @ x.flatten()`` is the convolution, ``matrix.T @ z.flatten()`` the
        transposed one. Gradients reach ``weight``.

    Examples
    --------
    A 2 x 2 kernel on a 3 x 3 image.

    >>> weight = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    >>> convolution_matrix(weight, (3, 3)).to_dense()
    tensor([[1., 2., 0., 3., 4., 0., 0., 0., 0.],
            [0., 1., 2., 0., 3., 4., 0., 0., 0.],
            [0., 0., 0., 1., 2., 0., 3., 4., 0.],
            [0., 0., 0., 0., 1., 2., 0., 3., 4.]])
    """
    if weight.ndim != len(size) + 2:
        raise ShapeMismatch(
            "convolution_matrix: `size` must name the positions of each axis of a weight "
            f"(O, C, f...); got {tuple(size)} for a weight {tuple(weight.shape)}."
        )
    outputs, channels, *kernel = weight.shape
    at, inside = _positions(size, kernel, stride, padding, dilation, weight.device)
    n, m = prod(size), len(at)
    rows, taps = inside.nonzero(as_tuple=True)  # (K,): an output position and a tap that it uses
    o, c = torch.meshgrid(
        torch.arange(outputs, device=weight.device),
        torch.arange(channels, device=weight.device),
        indexing="ij",
    )
    # (O, C, K): the kernel once at every output position
    row = o[..., None] * m + rows
    column = c[..., None] * n + at[rows, taps]
    values = weight.flatten(2)[..., taps]
    index = torch.stack([row.flatten(), column.flatten()])
    shape = (outputs * m, channels * n)
    matrix = torch.sparse_coo_tensor(index, values.flatten(), shape, check_invariants=False)
    return matrix.coalesce()


def _positions(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: int,
    padding: int,
    dilation: int,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """Return where each tap of each output looks, (m, f), and whether that is inside the input."""
    at = torch.zeros(1, 1, dtype=torch.long, device=device)
    inside = torch.ones(1, 1, dtype=torch.bool, device=device)
    for n, f in zip(size, kernel, strict=True):
        starts = torch.arange(output_size(n, f, stride, padding, dilation), device=device) * stride
        taps = torch.arange(f, device=device) * dilation
        along = starts[:, None] + taps - padding  # (m, f) of this axis
        held = (along >= 0) & (along < n)
        at = (at[:, None, :, None] * n + along[None, :, None, :]).flatten(2).flatten(0, 1)
        inside = (inside[:, None, :, None] & held[None, :, None, :]).flatten(2).flatten(0, 1)
    return at, inside
