"""What a layer costs when its connections are shared, only sparse, or all there."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from castalia.errors import ShapeMismatch
from castalia.nn.convolutions.convolution_sizes import output_size

__all__ = ["Connectivity", "compare_connectivity"]


@dataclass(frozen=True)
class Connectivity:
    """Numbers stored for a layer of one channel, and operations to apply it.

    Attributes
    ----------
    weights
        Numbers to store; for the sparse matrix its entries that are not zero.
    operations
        Multiplications and additions.
    """

    weights: int
    operations: int


def compare_connectivity(size: Sequence[int], kernel: Sequence[int]) -> dict[str, Connectivity]:
    """Compare a convolution of one channel with the matrices that compute the same.

    Parameters
    ----------
    size
        Positions of the input along each axis.
    kernel
        Taps along each axis; only full overlaps are computed.

    Returns
    -------
    dict
        ``"convolution"`` stores the taps once; ``"sparse"`` (which is also a locally connected
        layer) stores them for every output; ``"dense"`` stores a weight for every pair. An output
        of f taps takes f multiplications and f - 1 additions; a dense matrix is counted, as is
        usual, with two operations a weight.

    Examples
    --------
    Differences of neighbouring pixels of a 320 x 280 image: two weights, not 8,003,072,000.

    >>> found = compare_connectivity((320, 280), (2, 1))
    >>> found["convolution"], found["dense"].weights
    (Connectivity(weights=2, operations=267960), 8003072000)
    """
    if len(size) != len(kernel):
        raise ShapeMismatch(
            "compare_connectivity: `size` and `kernel` must have as many axes; got "
            f"{tuple(size)} and {tuple(kernel)}."
        )
    taps, inputs = prod(kernel), prod(size)
    outputs = prod(output_size(n, f) for n, f in zip(size, kernel, strict=True))
    operations = outputs * (2 * taps - 1)
    return {
        "convolution": Connectivity(taps, operations),
        "sparse": Connectivity(taps * outputs, operations),
        "dense": Connectivity(inputs * outputs, 2 * inputs * outputs),
    }
