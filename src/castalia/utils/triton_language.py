"""Triton where it is installed, and stand-ins that leave kernels alone where it is not.

Builds of torch for the CPU come without Triton. A file of kernels can be imported there; only
calling a kernel needs the package, and ``has_triton`` says whether it is there.
"""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["tl", "triton"]

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = SimpleNamespace(jit=lambda kernel: kernel)
    tl = SimpleNamespace(constexpr=lambda value: value)
