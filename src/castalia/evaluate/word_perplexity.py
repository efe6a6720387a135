"""Perplexity: between how many equally likely words a language model hesitates."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import bool as bool_
from torch import float64

from castalia.errors import InvalidData, InvalidParameter

__all__ = ["perplexity"]


def perplexity(
    values: Any, *, kind: str = "log", base: float = np.e, mask: Any = None, first: bool = True
) -> float:
    """Return exp of the mean of -log p over all predicted words.

    It is the effective number of choices: k equally likely words give k, and random digits 10. All
    T factors count, the first word's p(x_1) included, and T of them divide.

    Parameters
    ----------
    values
        What the model gave to the words that came: log-probabilities or probabilities, in an array
        or a tensor of any shape, or a list of such, one a text.
    kind
        ``"log"``, ``"probability"``, or ``"loss"`` for -log p.
    base
        Base of the logarithms that ``values`` are; e, or 2 for bits. The perplexity itself does
        not depend on it.
    mask
        True where there is a word, False where there is padding; of the shape of ``values``.
    first
        False leaves the first word of every text out of both the product and the count: for
        models that predict from the first word on. ``values`` is then a list, one a text, or has a
        row a text.

    Examples
    --------
    >>> round(perplexity([0.2, 0.5, 0.1, 0.4], kind="probability"), 6)
    3.976354
    >>> round(perplexity([[0.2, 0.5, 0.1, 0.4]], kind="probability", first=False), 6)
    3.684031
    """
    if kind not in ("log", "probability", "loss"):
        raise InvalidParameter(
            f"perplexity: `kind` must be `log`, `probability` or `loss`; got {kind!r}."
        )
    if not isinstance(base, int | float) or not base > 0 or base == 1:
        raise InvalidParameter(
            f"perplexity: `base` must be a number above 0 other than 1; got {base!r}."
        )
    flat = _flat(values, mask, first)
    if not len(flat):
        raise InvalidData("perplexity: there must be at least one predicted word; got none.")
    if np.isnan(flat).any():
        raise InvalidData(
            f"perplexity: values must hold no NaN; got {int(np.isnan(flat).sum())} of {len(flat)}."
        )
    logs = _logs(flat, kind) * (1.0 if kind == "probability" else np.log(base))
    return float(np.exp(-logs.mean()))


def _logs(flat: np.ndarray, kind: str) -> np.ndarray:
    low, high = {"log": (-np.inf, 0.0), "probability": (0.0, 1.0), "loss": (0.0, np.inf)}[kind]
    wrong = (flat < low - 1e-6) | (flat > high + 1e-6)
    if wrong.any():
        rule = {"log": "at most 0", "probability": "from 0 to 1", "loss": "at least 0"}[kind]
        raise InvalidData(
            f"perplexity: values of kind `{kind}` must be {rule}; got {flat[wrong][0]:g}."
        )
    if kind == "probability":
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(flat))
    return flat if kind == "log" else -flat


def _flat(values: Any, mask: Any, first: bool) -> np.ndarray:
    """Return the values that count as one array."""
    ragged = isinstance(values, list | tuple) and any(np.ndim(text) for text in values)
    texts = [_array(text) for text in values] if ragged else [_array(values)]
    masks = [np.ones(t.shape, bool) for t in texts] if mask is None else _masks(mask, texts, ragged)
    if not first:
        for text, kept in zip(texts, masks, strict=True):
            rows = kept.reshape(-1, text.shape[-1]) if text.size else kept.reshape(0, 1)
            begins = rows.argmax(axis=1)
            rows[np.arange(len(rows)), begins] = False
    return np.concatenate([text[kept].ravel() for text, kept in zip(texts, masks, strict=True)])


def _masks(mask: Any, texts: list[np.ndarray], ragged: bool) -> list[np.ndarray]:
    masks = [_array(one, bool) for one in mask] if ragged else [_array(mask, bool)]
    shapes = [m.shape for m in masks], [t.shape for t in texts]
    if shapes[0] != shapes[1]:
        raise InvalidData(
            f"perplexity: `mask` must have the shape of the values, {shapes[1][0]}; got "
            f"{shapes[0][0]}."
        )
    return masks


def _array(values: Any, dtype: Any = np.float64) -> np.ndarray:
    if hasattr(values, "detach"):  # a tensor, on any device
        values = values.detach().cpu().to(bool_ if dtype is bool else float64).numpy()
    return np.array(values, dtype=dtype)
