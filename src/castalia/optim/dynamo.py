"""Optimizers without loading torch's compiler.

The first call of ``Optimizer.add_param_group`` (and of ``state_dict``) imports ``torch._dynamo``,
only to exclude the method from compilation. That costs seconds at the start of every process that
compiles nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch.optim import Optimizer

__all__ = ["without_dynamo"]

METHODS = (Optimizer.add_param_group, Optimizer.state_dict, Optimizer.load_state_dict)
MARK = "__dynamo_disable"  # where torch keeps the excluded version once it has made it


@contextmanager
def without_dynamo() -> Iterator[None]:
    """Call these methods as they are while the compiler is not loaded; leave no trace behind."""
    plain = [getattr(method, "__wrapped__", None) for method in METHODS]
    idle = "torch._dynamo" not in sys.modules
    marked = [f for f in plain if idle and f is not None and not hasattr(f, MARK)]
    for function in marked:
        setattr(function, MARK, function)
    try:
        yield
    finally:
        for function in marked:
            delattr(function, MARK)
