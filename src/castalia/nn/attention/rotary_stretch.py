"""Rotary frequencies stretched, so that a network reads longer texts than it was trained on.

linear   f / s
llama3   f of short waves, L f / 2 pi > h; f / s of long ones, L f / 2 pi < l; between them
         (1 - g) f / s + g f with g = (L f / 2 pi - l) / (h - l)

f is a frequency, s the factor, L the tokens of the first training, l and h its two limits.
References: 2023, Chen et al., Extending context window of large language models via positional
interpolation, arXiv 2306.15595; 2024, Grattafiori et al., The Llama 3 herd of models, arXiv
2407.21783.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["stretch"]


def _linear(f: Tensor, *, factor: float) -> Tensor:
    return f / factor


def _llama3(
    f: Tensor,
    *,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: float,
) -> Tensor:
    waves = original_max_position_embeddings * f / (2 * math.pi)  # in the first context
    g = ((waves - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0, 1)
    return (1 - g) * f / factor + g * f


LARGEST = 1e12  # of the numbers of a rule
KINDS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "linear": (_linear, ("factor",)),
    "llama3": (
        _llama3,
        ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    ),
}


def stretch(frequencies: Tensor, scaling: Mapping[str, Any] | None) -> Tensor:
    """Return frequencies as a rule stretches them.

    Parameters
    ----------
    frequencies
        Angles from a position to the next, (D / 2,).
    scaling
        ``rope_type``, ``"linear"`` or ``"llama3"``, and the numbers of its equation by the names
        that ``config.json`` of a Hugging Face folder has for them; None: no rule.

    Examples
    --------
    >>> import torch
    >>> stretch(torch.tensor([1.0, 0.5]), {"rope_type": "linear", "factor": 2.0})
    tensor([0.5000, 0.2500])
    """
    if scaling is None:
        return frequencies
    kind = scaling.get("rope_type")
    if kind not in KINDS:
        raise InvalidParameter(
            f"Rotary: `rope_type` of its scaling must be {listing(KINDS)}; got {kind!r}."
            f"{did_you_mean(str(kind), KINDS)}"
        )
    rule, names = KINDS[kind]
    given = {name: value for name, value in scaling.items() if name != "rope_type"}
    if set(given) != set(names) or not all(is_positive(value) for value in given.values()):
        raise InvalidParameter(
            f"Rotary: scaling by '{kind}' must have {listing(names, 'and')}, numbers above 0; got "
            f"{given!r}."
        )
    return rule(frequencies, **given)


def is_positive(value: Any) -> bool:
    """Say whether it is a number above 0 of a size that makes sense."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= LARGEST
