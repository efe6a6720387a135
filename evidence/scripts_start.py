"""One run of a script in a process of its own: random numbers, stand-ins, a fault.

``python -m evidence.scripts_start`` imports torch once and then forks a process for every line of
JSON that it reads; each becomes ``python script.py`` or ``castalia doctor script.py``.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import json
import os
import random
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from typing import Any

READY = (
    "torch.utils.data",
    "torch._dynamo",  # which torch imports when the first optimizer is made
    "torchvision.datasets",
    "matplotlib.pyplot",
    "sklearn.datasets",
    "castalia",
)


def serve() -> None:
    """Fork a process for every order, wait for it, and answer with its exit code and seconds."""
    for name in READY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        sys.stdout.flush()
        child = os.fork()
        if not child:
            sys.exit(Run(order).run())
        print(json.dumps(_waited(child, order["limit"])), flush=True)  # noqa: T201


def _waited(child: int, limit: float) -> dict[str, float]:
    """Wait for a process, but not for ever."""
    begun = time.monotonic()
    killed = False
    while True:
        done, status, use = os.wait4(child, os.WNOHANG)
        wall = time.monotonic() - begun
        if done:
            code = os.waitstatus_to_exitcode(status)
            return {"code": code, "wall": wall, "cpu": use.ru_utime + use.ru_stime}
        if wall > limit and not killed:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            killed = True
        time.sleep(0.02)


class Run:
    """One run of a script.

    Parameters
    ----------
    order
        ``command`` (the script and its arguments), ``at``, ``path``, ``environment``, ``out`` and
        ``err`` (files for what is printed), ``seed``, ``stand_ins``, ``fault``, ``diagnosis`` (the
        doctor's folder; empty where the script is not watched), ``scan`` (whether what the script
        calls is noted), ``records`` (the file for what the doctor saw) and ``result`` (the file
        for the rest).
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.order = order
        self.optimizers: list[Any] = []
        self.traits: set[str] = set()
        self.losses: list[float] = []

    def run(self) -> int:
        """Be the script; return its exit code."""
        self._move_in()
        from evidence.scripts_packages import install

        install(self.order["stand_ins"])
        after_import("torch", self._with_torch)
        if self.order["fault"] and self.order["diagnosis"]:
            after_import("castalia.diagnose.script.script_session", self._with_doctor)
        if self.order["diagnosis"]:
            from evidence.scripts_records import keep

            after_import(
                "castalia.diagnose.monitor.loop_doctor", lambda: keep(self.order["records"])
            )
        script, *args = self.order["command"]
        try:
            if self.order["diagnosis"]:
                from castalia.cli.app import app

                options = ["--quiet", "--out", self.order["diagnosis"]]
                app(["doctor", *options, script, *args], prog_name="castalia")
            else:
                sys.argv, sys.path[0] = [script, *args], os.path.dirname(os.path.realpath(script))
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    def _move_in(self) -> None:
        """Take the place, the files and the variables that a new process would have."""
        os.setsid()
        os.chdir(self.order["at"])
        os.environ.update(self.order["environment"])
        sys.path[:] = [self.order["at"], *self.order["path"], *sys.path[1:]]
        with open(self.order["out"], "wb") as out, open(self.order["err"], "wb") as err:
            for file, number in ((out, 1), (err, 2)):
                os.dup2(file.fileno(), number)
        with open(os.devnull, "rb") as nothing:
            os.dup2(nothing.fileno(), 0)

    def _with_torch(self) -> None:
        """Start all random numbers and note what is made."""
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

            scan(self.traits)
        if self.order["scan"] or self.order["fault"]:
            from evidence.scripts_traits import note_losses

            note_losses(self.losses)
        atexit.register(self._write)

    def _with_doctor(self) -> None:
        """Plant a fault over the doctor's wrappers, where a script would have it."""
        from castalia.diagnose.script.script_session import Session
        from evidence.scripts_faults import FAULTS

        start, plant = Session.start, FAULTS[self.order["fault"]].plant

        def start_and_plant(session: Session) -> None:
            start(session)
            plant()

        Session.start = start_and_plant

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
            "losses": [float(f"{loss:.6g}") for loss in self.losses],
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
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(wrapper(original)))


def after_import(name: str, act: Callable[[], None]) -> None:
    """Act once, when a module has been imported; at once where it is there already."""
    if name in sys.modules:
        act()
    else:
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


if __name__ == "__main__":
    serve()
