"""Deep learning with scikit-learn's API, and a doctor for any PyTorch training.

Names are loaded when first used, so ``import castalia`` stays quick and torch comes in only when it
is needed.
"""

from importlib import import_module
from typing import Any

from castalia.catalog import SYSTEMS
from castalia.catalog.old_names import new_name

__version__ = "0.4.0"

_NAMES = {
    "Training": "castalia.train",
    "Callback": "castalia.train",
    "log": "castalia.train",
    "read": "castalia.data",
    "save": "castalia.base",
    "load": "castalia.base",
    "cluster": "castalia.utils.worker_cluster",
    "find": "castalia.catalog",
    "models_table": "castalia.catalog",
}
_PACKAGES = (
    "data",
    "autodiff",
    "nn",
    "nets",
    "objectives",
    "optim",
    "train",
    "base",
    "models",
    "evaluate",
    "diagnose",
    "method",
    "export",
    "serve",
)

__all__ = ["__version__", *_NAMES, *SYSTEMS]


def __getattr__(name: str) -> Any:
    old, name = name, new_name(name)
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in SYSTEMS:
        package, attribute = SYSTEMS[name].path.split(":")
        value = getattr(import_module(package), attribute)
    elif name in _PACKAGES:
        value = import_module(f"castalia.{name}")
    else:
        raise AttributeError(f"module 'castalia' has no attribute {name!r}")
    if old == name:  # an old name warns each time
        globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
