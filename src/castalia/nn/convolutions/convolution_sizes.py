"""Sizes of convolutions and poolings: what comes out, and how far back it sees.

Shapes: n positions of an axis, f taps, stride s, padding p on each side, dilation d.
"""

from collections.abc import Iterable

from castalia.errors import InvalidParameter

__all__ = ["output_size", "receptive_field", "transposed_size"]


def output_size(n: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Positions that a convolution or a pooling gives: floor((n + 2p - d(f-1) - 1) / s) + 1.

    Without dilation that is floor((n + 2p - f) / s) + 1. Where n + 2p - f is a multiple of s, the
    sizes n to n + s - 1 all give the same.

    Parameters
    ----------
    n
        Positions that go in.
    kernel
        Taps.
    stride
        Positions from one window to the next.
    padding
        Positions added on each side.
    dilation
        Positions from one tap to the next.

    Examples
    --------
    >>> [output_size(n, kernel=3, stride=2, padding=1) for n in (5, 6, 7, 8)]
    [3, 3, 4, 4]
    """
    _check("output_size", kernel=kernel, stride=stride, dilation=dilation)
    span = dilation * (kernel - 1) + 1
    if n + 2 * padding < span:
        raise InvalidParameter(
            f"output_size: the window must fit into the padded axis of {n + 2 * padding} "
            f"positions; got a window of {span}. Pad by {-(-(span - n) // 2)} or more, or take a "
            "smaller kernel."
        )
    return (n + 2 * padding - span) // stride + 1


def transposed_size(
    n: int,
    kernel: int,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    extra: int = 0,
) -> int:
    """Positions that a transposed convolution gives: (n - 1)s - 2p + d(f - 1) + 1, and some extra.

    It is the smallest size that the convolution with the same numbers turns into n. The other sizes
    that it turns into n, up to s - 1 more, are reached with ``extra``, torch's ``output_padding``.

    Parameters
    ----------
    n
        Positions that go in.
    kernel, stride, padding, dilation
        Of the convolution.
    extra
        Positions more at the end, fewer than the stride.

    Examples
    --------
    >>> transposed_size(2, kernel=2), transposed_size(4, kernel=3, stride=2, padding=1, extra=1)
    (3, 8)
    """
    _check("transposed_size", kernel=kernel, stride=stride, dilation=dilation)
    return (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 + extra


def receptive_field(layers: Iterable[tuple[int, ...]]) -> list[int]:
    """Input positions that one output of each layer of a stack sees, along an axis.

    r_l = r_{l-1} + d_l (f_l - 1) j_l, where the jump j_l is the product of the strides before it.
    For a network with branches, ask ``summary``.

    Parameters
    ----------
    layers
        (kernel,), (kernel, stride) or (kernel, stride, dilation) of every layer, pools included.

    Examples
    --------
    Three 3-tap layers, dilated by 1, 2 and 4; then two with a pooling between them.

    >>> receptive_field([(3, 1, 1), (3, 1, 2), (3, 1, 4)])
    [3, 7, 15]
    >>> receptive_field([(3,), (2, 2), (3,)])
    [3, 4, 8]
    """
    seen, jump, found = 1, 1, []
    for layer in layers:
        kernel, stride, dilation = (*layer, 1, 1)[:3] if len(layer) < 3 else layer
        _check("receptive_field", kernel=kernel, stride=stride, dilation=dilation)
        seen += dilation * (kernel - 1) * jump
        jump *= stride
        found.append(seen)
    return found


def _check(owner: str, **sizes: int) -> None:
    """Refuse a size below one."""
    for name, size in sizes.items():
        if size < 1:
            raise InvalidParameter(f"{owner}: `{name}` must be at least 1; got {size}.")
