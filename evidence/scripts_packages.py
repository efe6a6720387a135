"""Packages and data sets that stand in for what a script cannot have here.

Data sets that would be downloaded are replaced in any case, torchvision's own code and that of the
Hugging Face libraries only where they are not installed. Packages that only draw or log are
replaced by objects that accept everything.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

from evidence.scripts_start import after_import


def install(names: Iterable[str]) -> None:
    """Put stand-ins in place; ``mock:name`` is a package that nothing of the training needs."""
    for name in names:
        if name.startswith("mock:"):
            _mock(name.removeprefix("mock:"))
        else:
            PACKAGES[name]()


def module(name: str, **content: Any) -> ModuleType:
    """Make a module that can be imported, and its parents."""
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    made.__path__ = []
    made.__dict__.update(content)
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], last, made)
    return made


def _mock(name: str) -> None:
    made = MagicMock(name=name)
    made.__spec__, made.__path__ = ModuleSpec(name, None), []
    sys.modules[name] = made


def pictures() -> None:
    """Let the data sets of torchvision be the digits of scikit-learn."""
    if importlib.util.find_spec("torchvision") is None:
        after_import("torch", _small_torchvision)
    else:
        after_import("torchvision.datasets", _digits_for_all)


def _small_torchvision() -> None:
    from evidence import scripts_torchvision as small

    small.install(module)


def _digits_for_all() -> None:
    from evidence.scripts_pictures import DATA_SETS

    for name, kind in DATA_SETS.items():
        setattr(sys.modules["torchvision.datasets"], name, kind)
        for place in ("mnist", "cifar"):
            if hasattr(sys.modules[f"torchvision.datasets.{place}"], name):
                setattr(sys.modules[f"torchvision.datasets.{place}"], name, kind)


def feeds() -> None:
    """Let TensorFlow's first tutorials give the digits by batches."""
    from evidence.scripts_pictures import Feeds

    for name in ("tensorflow", "tensorflow.examples", "tensorflow.examples.tutorials"):
        module(name)
    made = module("tensorflow.examples.tutorials.mnist")
    made.input_data = module("tensorflow.examples.tutorials.mnist.input_data", read_data_sets=Feeds)


def lightning() -> None:
    """Let Lightning's demonstrations have the digits, and both its names be one package."""
    if importlib.util.find_spec("lightning") is None:
        _alias("lightning", "pytorch_lightning")
    for name in ("lightning.pytorch", "pytorch_lightning"):
        after_import(f"{name}.demos.mnist_datamodule", lambda name=name: _demo(name))


def _demo(name: str) -> None:
    from evidence.scripts_pictures import DATA_SETS

    sys.modules[f"{name}.demos.mnist_datamodule"].MNIST = DATA_SETS["MNIST"]


def _alias(name: str, other: str) -> None:
    """Let ``lightning`` mean the packages that it bundles."""

    class Finder:
        def find_spec(self, full: str, path: Any, target: Any = None) -> ModuleSpec | None:
            real = full.replace("lightning.fabric", "lightning_fabric", 1)
            real = real.replace("lightning.pytorch", other, 1) if real == full else real
            real = other if real == name else real
            return None if real == full else ModuleSpec(full, _Alias(real))

    sys.meta_path.insert(0, Finder())


class _Alias:
    def __init__(self, real: str) -> None:
        self.real = real

    def create_module(self, spec: Any) -> Any:
        return importlib.import_module(self.real)

    def exec_module(self, module: Any) -> None:
        """Nothing is left to do."""


def gym() -> None:
    """Let ``gym`` and ``gymnasium`` hold a cart with a pole and a pendulum."""
    from evidence import scripts_gym

    scripts_gym.install(module)


def old_gym() -> None:
    """Let them hold the same with the interface that ``gym`` had until 2022."""
    from evidence import scripts_gym

    scripts_gym.install(module, old=True)


def hub() -> None:
    """Let names of pretrained models mean small new ones, and those of data sets small new ones."""
    from evidence import scripts_hub

    scripts_hub.install(module)


def sounds() -> None:
    """Let ``torchaudio`` read tones for sound files, and give their mel spectrograms."""
    from evidence import scripts_sounds

    after_import("torch", lambda: scripts_sounds.install(module))


def graphs() -> None:
    """Let ``Planetoid`` of PyTorch Geometric be a small graph of papers."""

    def replace() -> None:
        from evidence.scripts_graphs import Papers

        sys.modules["torch_geometric.datasets"].Planetoid = Papers

    after_import("torch_geometric.datasets", replace)


PACKAGES: dict[str, Callable[[], None]] = {
    one.__name__: one for one in (pictures, feeds, lightning, gym, old_gym, hub, sounds, graphs)
}
