"""What a run does before its script: random numbers, stand-ins, a fault. Python loads it itself.

``scripts.py`` puts a ``sitecustomize.py`` on the path that calls ``begin``, so that the command is
``python script.py`` without the doctor and ``python -m castalia.doctor script.py`` with it.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import json
import os
import random
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from typing import Any

ORDER = "CASTALIA_SCRIPT_ORDER"


def begin() -> None:
    """Read what is asked, and wait for torch."""
    order = json.loads(os.environ.pop(ORDER, "{}"))
    if not order:
        return
    from evidence.scripts_packages import install

    install(order["stand_ins"])
    run = Run(order)
    after_import("torch", run.with_torch)
    if order["fault"] and order["doctor"]:
        after_import("castalia.diagnose.script.script_session", run.with_doctor)


class Run:
    """One run of a script.

    Parameters
    ----------
    order
        ``seed``, ``fault``, ``doctor`` (whether it is watched), ``scan`` (whether what the script
        calls is noted) and ``result`` (the file to write).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.optimizers: list[Any] = []
        self.traits: set[str] = set()
        self.losses: list[float] = []

    def with_torch(self) -> None:
        """Torch is there: start all random numbers and note what is made."""
        import numpy
        import torch
        from torch.optim import Optimizer
        from torch.utils.data import DataLoader

        seed = self.order["seed"]
        random.seed(seed)
        numpy.random.seed(seed)
        torch.manual_seed(seed)
        wrap(Optimizer, "__init__", self._made)
        wrap(DataLoader, "__init__", _without_workers)
        if self.order["scan"]:
            from evidence.scripts_traits import scan

            scan(self.traits, self.losses)
        if self.order["fault"] and not self.order["doctor"]:
            self._plant()
        atexit.register(self._write)

    def with_doctor(self) -> None:
        """The doctor is there: a fault is planted over its wrappers, where a script has it."""
        from castalia.diagnose.script.script_session import Session

        start = Session.start

        def start_and_plant(session: Session) -> None:
            start(session)
            self._plant()

        Session.start = start_and_plant

    def _plant(self) -> None:
        from evidence.scripts_faults import FAULTS

        FAULTS[self.order["fault"]].plant()

    def _made(self, original: Callable[..., None]) -> Callable[..., None]:
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(optimizer, *args, **kwargs)
            self.optimizers.append(optimizer)

        return __init__

    def _write(self) -> None:
        groups = [group for one in self.optimizers for group in one.param_groups]
        result = {
            "weights": _digest(p for group in groups for p in group["params"]),
            "rates": [float(group["lr"]) for group in groups if "lr" in group],
            "traits": sorted(self.traits),
            "losses": self.losses,
        }
        with open(self.order["result"], "w") as file:
            json.dump(result, file)


def _digest(parameters: Any) -> str:
    """Return a hash of all numbers that were trained."""
    found = hashlib.sha256()
    for p in parameters:
        found.update(p.detach().cpu().contiguous().float().numpy().tobytes())
    return found.hexdigest()


def _without_workers(original: Callable[..., None]) -> Callable[..., None]:
    """A run has one core, so that data are read where they are used."""

    def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        for name in ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory"):
            kwargs.pop(name, None)
        original(loader, *args, **kwargs)

    return __init__


def wrap(owner: Any, name: str, wrapper: Callable[[Any], Any]) -> None:
    """Put ``wrapper(original)`` in the place of an attribute."""
    import functools

    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrapper(original)))


def after_import(name: str, act: Callable[[], None]) -> None:
    """Act once, when a module has been imported."""
    sys.meta_path.insert(0, _Finder(name, act))


class _Finder(MetaPathFinder):
    def __init__(self, name: str, act: Callable[[], None]) -> None:
        self.name, self.act = name, act

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.act)
        return spec


class _Loader(Loader):
    """Loads as another does, and acts afterwards."""

    def __init__(self, loader: Any, act: Callable[[], None]) -> None:
        self._loader, self._act = loader, act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._act()
