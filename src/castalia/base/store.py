"""Saved models: a folder with ``model.json`` and ``weights.safetensors``, checked, never run.

The class is found through the catalogue only: the file gives a public name, the catalogue gives the
path. Everything else goes through ``castalia.base.saved_values``, which imports nothing either.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline
from torch import Tensor

from castalia import __version__
from castalia.base.pipeline_store import PIPELINE, is_pipeline, read_pipeline, write_pipeline
from castalia.base.saved_network import rebuilt
from castalia.base.saved_values import Record, decode, encode, restored
from castalia.catalog import SYSTEMS
from castalia.errors import (
    CastaliaWarning,
    CheckpointMismatch,
    DamagedFile,
    InvalidData,
    InvalidParameter,
)
from castalia.train import Training
from castalia.train.tensorfile import pack, unpack
from castalia.utils.atomic_files import atomic_folder, writing
from castalia.utils.process_ranks import is_first
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import did_you_mean, listing, shorten

__all__ = ["load", "save"]

FORMAT = 1
_MODEL, _WEIGHTS = "model.json", "weights.safetensors"


def save(est: Any, path: str | os.PathLike[str]) -> Path:
    """Save an estimator, fitted or not, as a folder; under ``torchrun`` the first process does.

    Parameters
    ----------
    est
        An estimator of the catalogue, or a scikit-learn ``Pipeline`` of such and of scikit-learn's.
    path
        The folder to make. A saved model that is already there is replaced once the new one is
        whole on disk; anything else there is left alone and refused.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    InvalidParameter
        When the estimator is not of the catalogue, or holds something that cannot be saved.
    InvalidData
        When something that is not a saved model lies at the path.
    WriteFailed
        When the disk is full or the path cannot be written; an older model there is untouched.

    Examples
    --------
    >>> import castalia, tempfile
    >>> path = save(castalia.MLPClassifier(hidden=(8,)), tempfile.mkdtemp() + "/model")
    >>> load(path).hidden
    (8,)
    """
    if not is_first():
        return Path(path)
    if isinstance(est, Pipeline):
        return _save_pipeline(est, Path(path))
    record = _lookup(type(est))
    if record is None:
        raise InvalidParameter(
            "castalia.save: `est` must be an estimator of Castalia's catalogue; got "
            f"{type(est).__module__}.{type(est).__name__}. "
            + (
                "Save its `best_estimator_`."
                if hasattr(est, "best_estimator_")
                else "Save the network itself with `torch.save(est.module_.state_dict(), …)`."
            )
        )
    path = Path(path)
    target = path.resolve()  # a link stays a link to the new model
    _check_target(target)
    tree, tensors = encode(record.state(est), lookup=_lookup)
    weights = pack(tensors, {"format": f"castalia-model-{FORMAT}"})
    head = {"format": FORMAT, "castalia": __version__, "class": record.name, **tree}
    head["files"] = {_WEIGHTS: hashlib.sha256(weights).hexdigest()}
    head["checksum"] = _checksum(head)
    text = _readable(json.dumps(head, indent=1, allow_nan=False) + "\n", record.name)
    with writing("castalia.save", path), atomic_folder(target) as folder:
        (folder / _WEIGHTS).write_bytes(weights)
        (folder / _MODEL).write_text(text, "ascii")
        _share(folder)
    return path


def _save_pipeline(pipeline: Pipeline, path: Path) -> Path:
    """Save a pipeline, whole or not at all."""
    target = path.resolve()
    _check_target(target)
    with writing("castalia.save", path), atomic_folder(target) as folder:
        write_pipeline(pipeline, folder, _lookup, save)
        _share(folder)
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator or a pipeline saved with ``save``.

    Loading reads data only: no name in the files is imported and nothing in them is executed.

    Returns
    -------
    object
        The estimator, its network on the CPU and in evaluation mode.

    Raises
    ------
    InvalidData
        When there is no folder at the path.
    DamagedFile
        When a file is missing, truncated or altered.
    CheckpointMismatch
        When a newer version wrote it, or this version does not know its class or its records.
    """
    path = Path(path)
    if (path / PIPELINE).is_file():
        return read_pipeline(path, load)
    head = _read_head(path)
    tensors = _read_weights(path, head)
    record = _named_class(head["class"], path)
    parts = {key: head[key] for key in ("parameters", "fitted", "module_") if key in head}
    with _naming(path):
        return restored(record, decode(parts, tensors, lookup=_lookup))


# -- estimators -------------------------------------------------------------------------------


def _lookup(key: type | str) -> Record | None:
    """Find a system of the catalogue by its class or public name."""
    name = key if isinstance(key, str) else key.__name__
    if name not in SYSTEMS:
        return None
    package, attribute = SYSTEMS[name].path.split(":")
    cls = getattr(import_module(package), attribute)
    if isinstance(key, type) and cls is not key:
        return None
    return Record(name, cls, _state, lambda state: _restore(cls, state))


def _state(est: Any) -> dict[str, Any]:
    """Return what makes an estimator: parameters, fitted attributes and the network's tensors."""
    parameters = est.get_params(deep=False)
    state: dict[str, Any] = {
        "parameters": {
            name: _without_run(_without_callbacks(value)) for name, value in parameters.items()
        },
        "fitted": {name: value for name, value in _fitted(est).items() if name != "module_"},
    }
    if "run_" in state["fitted"]:
        state["fitted"]["run_"] = None  # a folder of the machine it was trained on
    module = _fitted(est).get("module_")
    if module is not None:
        if not hasattr(est, "spec_"):
            raise InvalidParameter(
                f"castalia.save: `{type(est).__name__}` has a `module_` but no `spec_` to build it "
                "from again."
            )
        state["module_"] = dict(
            getattr(module, "_orig_mod", module).state_dict()
        )  # out of torch.compile
    return state


def _fitted(est: Any) -> dict[str, Any]:
    left_out = getattr(est, "_unsaved", ())
    return {
        name: value
        for name, value in vars(est).items()
        if name.endswith("_") and not name.startswith("_") and name not in left_out
    }


def _without_callbacks(value: Any) -> Any:
    """Return a training record without its callbacks, which are code and cannot be saved."""
    callbacks = getattr(value, "callbacks", None)
    if not callbacks or isinstance(value, type):
        return value
    names = [type(callback).__name__ for callback in callbacks]
    warnings.warn(
        "castalia.save: callbacks are code and are left out of the saved model: "
        f"{listing(names, 'and')}. "
        "Set them again after loading.",
        CastaliaWarning,
        stacklevel=4,
    )
    value = copy.copy(value)
    object.__setattr__(value, "callbacks", type(callbacks)())
    return value


def _without_run(value: Any) -> Any:
    """Return a training record that writes nowhere: no file chooses where its reader writes."""
    return replace(value, run=None) if isinstance(value, Training) and value.run else value


def _restore(cls: type, state: Mapping[str, Any]) -> Any:
    """Make an estimator again; a file cannot set anything but parameters and fitted attributes."""
    est = cls(**{name: _without_run(value) for name, value in state["parameters"].items()})
    for name, value in state["fitted"].items():
        if not (name.isidentifier() and name.endswith("_") and not name.startswith("_")):
            raise DamagedFile(f"castalia.load: {shorten(repr(name))} is not a fitted attribute.")
        setattr(est, name, value)
    if "module_" in state:
        module = rebuilt(lambda: est._network(est.spec_), state["module_"], cls.__name__)
        est.module_ = module.eval()
    return est


# -- files ------------------------------------------------------------------------------------


def _checksum(head: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a ``model.json``'s content, whatever its spacing."""
    content = {key: value for key, value in head.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def _readable(text: str, owner: str) -> str:
    """Return the text, unless it is too long or too deep to be loaded again."""
    try:
        parse_json(text)
    except ValueError as error:
        raise InvalidParameter(
            f"castalia.save: what `{owner}` has learnt must fit into a JSON file that can be "
            f"loaded; got one that is {error}. Keep numbers in arrays."
        ) from error
    return text


def _share(folder: Path) -> None:
    """Give the folder, private while unfinished, the reading rights that new files get."""
    file = next(f for f in (folder / _MODEL, folder / PIPELINE) if f.is_file())
    mode = file.stat().st_mode & 0o777
    folder.chmod(mode | 0o700 | (mode & 0o044) >> 2)


def _check_target(path: Path) -> None:
    """Refuse to replace anything but a saved model; an empty folder may be filled."""
    if not path.exists():
        return
    names = sorted(entry.name for entry in path.iterdir()) if path.is_dir() else None
    if names == [] or (names is not None and set(names) <= {_MODEL, _WEIGHTS} and _is_model(path)):
        return
    if names is not None and is_pipeline(path, names):
        return
    found = "a file" if names is None else f"a folder with {listing(names, 'and', most=3)}"
    raise InvalidData(
        f"castalia.save: `path` must be new, an empty folder or a saved model; got '{path}', "
        f"{found}. "
        "Choose another path."
    )


def _is_model(path: Path) -> bool:
    try:
        head = parse_json(read_regular(path / _MODEL))
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and {"format", "castalia", "class"} <= set(head)


def _read(path: Path) -> bytes:
    try:
        return read_regular(path)
    except FileNotFoundError:
        raise DamagedFile(
            f"castalia.load: `{path.parent}` has no `{path.name}`; it is not a saved model, or "
            "part of it is lost."
        ) from None
    except OSError as error:
        raise DamagedFile(f"castalia.load: `{path}` cannot be read ({error.strerror}).") from error


def _altered(path: Path) -> DamagedFile:
    return DamagedFile(
        f"castalia.load: `{path}` is truncated or was altered. Restore it from a copy."
    )


def _read_head(path: Path) -> dict[str, Any]:
    """Read and check ``model.json``."""
    _check_source(path)
    raw = _read(path / _MODEL)
    try:
        head = parse_json(raw)
    except ValueError as error:
        raise _altered(path / _MODEL) from error
    if not isinstance(head, dict) or type(head.get("format")) is not int or head["format"] < 1:
        raise DamagedFile(
            f"castalia.load: `{path / _MODEL}` is not the description of a Castalia model."
        )
    if head["format"] > FORMAT:
        raise CheckpointMismatch(
            f"castalia.load: `{path}` was written by Castalia {shorten(head.get('castalia'))} "
            f"in format {head['format']}; this is {__version__}, which reads up to format "
            f"{FORMAT}. Upgrade Castalia."
        )
    needed = {"class": str, "parameters": dict, "fitted": dict, "files": dict, "checksum": str}
    if not all(isinstance(head.get(key), kind) for key, kind in needed.items()):
        raise _altered(path / _MODEL)
    if _checksum(head) != head["checksum"]:
        raise _altered(path / _MODEL)
    return head


def _check_source(path: Path) -> None:
    if path.is_dir():
        return
    if path.exists():
        raise InvalidData(
            f"castalia.load: `path` must be the folder of a saved model; got '{path}', which is a "
            "file."
        )
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = did_you_mean(path.name, [name for name in siblings if not name.startswith(".")])
    aside = [name for name in siblings if name.startswith(f".{path.name}.")]
    if aside:
        hint = f" A save was interrupted there; `{path.parent / min(aside)}` may hold the model."
    raise InvalidData(
        f"castalia.load: `path` must be the folder of a saved model; got '{path}', which does not "
        f"exist.{hint}"
    )


def _read_weights(path: Path, head: Mapping[str, Any]) -> dict[str, Tensor]:
    """Read the tensors, after comparing the bytes read with the checksum."""
    if set(head["files"]) != {_WEIGHTS}:
        raise _altered(path / _MODEL)
    raw = _read(path / _WEIGHTS)
    if hashlib.sha256(raw).hexdigest() != head["files"][_WEIGHTS]:
        raise _altered(path / _WEIGHTS)
    try:
        return unpack(raw)[0]
    except ValueError as error:
        raise _altered(path / _WEIGHTS) from error


def _named_class(name: str, path: Path) -> Record:
    """Find the class by the catalogue; the name in the file is only looked up, never imported."""
    record = _lookup(name)
    if record is None:
        raise CheckpointMismatch(
            f"castalia.load: `{path}` holds a {shorten(repr(name))}, which is not in this "
            f"Castalia's catalogue; nothing was imported.{did_you_mean(name, SYSTEMS)}"
        )
    return record


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path to what the codec says about a file."""
    try:
        yield
    except (DamagedFile, CheckpointMismatch) as error:
        said = str(error).removeprefix("castalia.load: ").removeprefix("castalia: ")
        raise type(error)(f"castalia.load: in `{path}`, {said}") from error
