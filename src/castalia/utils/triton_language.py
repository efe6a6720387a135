"""Triton where it is installed, and stand-ins that leave kernels alone where it is not.

Builds of torch for the CPU come without Triton. A file of kernels can be imported there; only
calling a kernel needs the package, and ``has_triton`` says whether it is there.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

__all__ = ["tl", "triton"]

try:
    triton: Any = import_module("triton")
    tl: Any = import_module("triton.language")
except ImportError:
    triton = SimpleNamespace(jit=lambda kernel: kernel)
    tl = SimpleNamespace(constexpr=lambda value: value)
