"""What belongs to the user stays as it was: random states, weights, gradients, modes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["own_randomness", "seed_torch", "untouched"]


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed Python, NumPy and torch inside the scope; put all of them back afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    cpu = torch.random.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    seed_torch(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
        torch.random.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def seed_torch(seed: int) -> None:
    """Seed torch where it is in use; on a CUDA that nobody has begun to use, a seed would stay."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


@contextmanager
def untouched(modules: Iterable[nn.Module]) -> Iterator[None]:
    """Undo what a loss that closes over the user's own module did to it.

    Trials run on copies, but a penalty such as ``sum(p.square().sum() for p in net.parameters())``
    inside ``loss_fn`` reaches the original: its gradients are set aside, its tensors compared.
    """
    found = list(modules)
    tensors = list({id(t): t for m in found for t in (*m.parameters(), *m.buffers())}.values())
    values = [t.detach().clone() for t in tensors]
    gradients = [t.grad for t in tensors]
    modes = [(part, part.training) for module in found for part in module.modules()]
    for tensor in tensors:
        tensor.grad = None
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
        for tensor, value, gradient in zip(tensors, values, gradients, strict=True):
            _put_back(tensor, value)
            tensor.grad = gradient


@torch.no_grad()
def _put_back(tensor: Tensor, value: Tensor) -> None:
    """Copy only where something changed: a copy would look like a change to autograd."""
    same = tensor.shape == value.shape and torch.equal(
        torch.nan_to_num(tensor.detach()), torch.nan_to_num(value)
    )
    if not same:
        tensor.data = value
