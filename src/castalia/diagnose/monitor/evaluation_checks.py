"""Checks of a trained network in evaluation mode: does it see the future, is it random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from castalia.diagnose.monitor.module_facts import first_tensor, has_dropout, note
from castalia.diagnose.record import Record
from castalia.diagnose.rules.case import Case
from castalia.nn.network_modes import evaluating

__all__ = ["ask", "future_change", "random_change"]

ROWS = 4
UNASKED = {
    "future": "Whether the model sees later tokens (CST505) could not be checked: called with "
    "tokens alone, it does not return an answer for each of them.",
    "random_evaluation": "Whether answers are random in evaluation mode (CST116) could not be "
    "checked: the module wants more than its first input.",
}
Question = Callable[[nn.Module, np.ndarray], float | None]


def ask(module: nn.Module, record: Record) -> None:
    """Ask a network what a record leaves open, and note the answers in it."""
    for name, question, rows in _open_questions(module, record):
        try:
            answer = question(module, rows)
        except Exception:  # a module that wants other arguments cannot be asked
            answer = None
        if answer is not None:
            record.final[name] = answer
        else:
            note(record, UNASKED[name])


def _open_questions(
    module: nn.Module, record: Record
) -> Iterator[tuple[str, Question, np.ndarray]]:
    """Yield the questions worth asking, each with its rows."""
    kept = [x for x in record.train.inputs if x is not None and len(x)]
    tokens = next((x for x in reversed(kept) if x.dtype.kind in "iu"), None)
    if tokens is not None and tokens.ndim == 2 and tokens.shape[1] >= 4 and Case(record).shifted:
        yield "future", future_change, tokens
    shape, by_function = record.input_shape, record.dropped and not has_dropout(module)
    if by_function and kept and kept[-1][0].size == math.prod(shape):
        yield "random_evaluation", random_change, kept[-1].reshape(-1, *shape)


def future_change(module: nn.Module, tokens: np.ndarray) -> float | None:
    """Change the second half of some sequences and return how much the first half's outputs change.

    The change is relative to the largest of all outputs; None where the outputs have no
    place for each token. The module is called in evaluation mode and left as it was.

    Examples
    --------
    >>> class Last(nn.Module):
    ...     def forward(self, x):
    ...         return nn.functional.one_hot(x.flip(1), 9).float()
    >>> future_change(Last(), np.arange(8).reshape(1, 8)) > 0.5
    True
    """
    length = tokens.shape[1]
    place = next((p.device for p in module.parameters()), torch.device("cpu"))
    before = torch.as_tensor(tokens[:ROWS]).to(place)
    after = before.clone()
    half = length // 2
    after[:, half:] = before[:, half:].flip(1).roll(1, dims=0)
    if torch.equal(before, after):
        after[:, half:] = before[:, :1]
    with _quietly(module):
        first, second = (_outputs(module, x) for x in (before, after))
    if first is None or second is None or first.shape != second.shape or first.shape[1] != length:
        return None
    change = (first - second).float().abs().flatten(2).amax(dim=2)  # (rows, length)
    moved = float(change.max())
    return float(change[:, :half].max()) / moved if moved > 0 else None


def random_change(module: nn.Module, inputs: np.ndarray) -> float:
    """Return how far two answers to the same rows differ, relative to their size.

    Examples
    --------
    >>> random_change(nn.Dropout(0.5), np.ones((8, 4), np.float32))
    0.0
    """
    place = next((p for p in module.parameters()), torch.zeros(0))
    x = torch.as_tensor(inputs).to(place.device)
    x = x.to(place.dtype) if x.is_floating_point() else x
    with _quietly(module):
        first, second = first_tensor(module(x)), first_tensor(module(x))
    if first is None or second is None or not first.is_floating_point():
        return 0.0
    size = float(first.abs().max())
    return float((first - second).abs().max()) / size if size > 0 else 0.0


def _outputs(module: nn.Module, tokens: Tensor) -> Tensor | None:
    """Outputs as (rows, length, …)."""
    found = first_tensor(module(tokens))
    if found is None:
        return None
    if found.ndim == 2 and found.shape[0] == tokens.numel():
        found = found.reshape(*tokens.shape, -1)
    if found.ndim < 3:
        return None
    if found.shape[0] != tokens.shape[0]:
        found = found.transpose(0, 1)
    length = tokens.shape[1]
    # Classes may stand before the places, as a cross-entropy wants them: (rows, classes, length).
    return found.movedim(-1, 1) if found.shape[1] != length == found.shape[-1] else found


@contextmanager
def _quietly(module: nn.Module) -> Iterator[None]:
    """Run in evaluation mode without gradients, and put every flag and random state back after."""
    devices = list({p.device.index or 0 for p in module.parameters() if p.is_cuda})
    with torch.random.fork_rng(devices=devices), evaluating(module), torch.no_grad():
        yield
