"""Saved pipelines: a folder a step, ours as ``castalia.save`` writes them, others by skops.

Neither is pickle. Every type that a skops file holds is compared with what scikit-learn itself is
made of before anything is built.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from castalia import __version__
from castalia.base.skops_files import strange_types, unpacked_model
from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.utils.imports import require
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import listing, shorten

__all__ = ["PIPELINE", "is_pipeline", "read_pipeline", "write_pipeline"]

FORMAT, PIPELINE = 1, "pipeline.json"
# Parts of fitted transformers and models of scikit-learn that skops does not trust by itself; none
# of them runs code that a file could choose.
_TRUSTED = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "scipy.sparse._csr.csr_array",
        "scipy.sparse._csr.csr_matrix",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils.validation.check_array",
    }
)
_NEEDED = {
    "passthrough": ("name",),
    "pipeline": ("name", "place"),
    "castalia": ("name", "place"),
    "skops": ("name", "place", "sha256"),
}
_NAME = re.compile(r"[^\w.-]+")

Lookup = Callable[[type], Any]


def write_pipeline(
    pipeline: Pipeline, folder: Path, ours: Lookup, write: Callable[[Any, Path], Any]
) -> None:
    """Write the steps of a pipeline into an empty folder.

    Parameters
    ----------
    pipeline
        Fitted or not.
    folder
        Where to write.
    ours
        Whether a class is of the catalogue.
    write
        Saves an estimator of the catalogue as a folder.
    """
    steps = []
    for number, (name, step) in enumerate(pipeline.steps):
        place = f"{number}-{_NAME.sub('-', name)}"
        steps.append({"name": name, **_written(step, folder / place, ours, write)})
    head: dict[str, Any] = {"format": FORMAT, "castalia": __version__, "steps": steps}
    head["checksum"] = _checksum(head)
    (folder / PIPELINE).write_text(json.dumps(head, indent=1) + "\n", "utf-8")


def _written(
    step: Any, place: Path, ours: Lookup, write: Callable[[Any, Path], Any]
) -> dict[str, str]:
    if step is None or isinstance(step, str):  # "passthrough"
        return {"kind": "passthrough"}
    if isinstance(step, Pipeline):
        place.mkdir()
        write_pipeline(step, place, ours, write)
        return {"kind": "pipeline", "place": place.name}
    if ours(type(step)):
        write(step, place)
        return {"kind": "castalia", "place": place.name}
    io = require("skops.io", caller="castalia.save")
    _check_types(step)
    content = io.dumps(step)
    strange = strange_types(content, _TRUSTED, "castalia.save")
    if strange:
        raise InvalidParameter(
            f"castalia.save: step `{type(step).__name__}` must be made of scikit-learn's parts "
            f"alone; it holds {listing(strange, 'and', 4)}, which would not be loaded again."
        )
    file = place.with_name(f"{place.name}.skops")
    file.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"kind": "skops", "place": file.name, "sha256": digest}


def _check_types(step: Any) -> None:
    module = type(step).__module__.split(".")[0]
    if module != "sklearn" or not isinstance(step, BaseEstimator):
        raise InvalidParameter(
            "castalia.save: the steps of a pipeline must be of scikit-learn or of Castalia's "
            f"catalogue; got {type(step).__module__}.{type(step).__name__}."
        )


def read_pipeline(folder: Path, read: Callable[[Path], Any]) -> Pipeline:
    """Make the pipeline of a folder; ``read`` loads a saved estimator of the catalogue."""
    steps = _head(folder)["steps"]
    if not all(_is_step(step) for step in steps):
        raise _altered(folder / PIPELINE)
    return Pipeline([(step["name"], _step(step, folder, read)) for step in steps])


def _is_step(step: Any) -> bool:
    if not isinstance(step, dict) or step.get("kind") not in list(_NEEDED):
        return False
    return all(isinstance(step.get(name), str) for name in _NEEDED[step["kind"]])


def is_pipeline(folder: Path, names: list[str]) -> bool:
    """Whether a folder holds a saved pipeline and nothing else."""
    if PIPELINE not in names:
        return False
    try:
        places = {step["place"] for step in _head(folder)["steps"] if "place" in step}
    except (DamagedFile, CheckpointMismatch, TypeError):
        return False
    return set(names) == {PIPELINE, *places}


def _head(folder: Path) -> dict[str, Any]:
    try:
        head: dict[str, Any] = parse_json(read_regular(folder / PIPELINE))
        if head["format"] > FORMAT:
            raise CheckpointMismatch(
                f"castalia.load: `{folder}` was written by Castalia {shorten(head['castalia'])}; "
                f"this is {__version__}. Upgrade Castalia."
            )
        whole = head["checksum"] == _checksum(head) and isinstance(head["steps"], list)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise _altered(folder / PIPELINE) from error
    if not whole:
        raise _altered(folder / PIPELINE)
    return head


def _checksum(head: dict[str, Any]) -> str:
    content = {key: value for key, value in head.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def _altered(path: Path) -> DamagedFile:
    return DamagedFile(
        f"castalia.load: `{path}` is truncated or was altered. Restore it from a copy."
    )


def _step(step: dict[str, str], folder: Path, read: Callable[[Path], Any]) -> Any:
    if step["kind"] == "passthrough":
        return "passthrough"
    place = folder / Path(step["place"]).name  # never outside the folder
    if step["kind"] == "pipeline":
        return read_pipeline(place, read)
    return read(place) if step["kind"] == "castalia" else _skops(place, step["sha256"])


def _skops(file: Path, digest: str) -> Any:
    try:
        content = read_regular(file)
    except OSError as error:
        raise _altered(file) from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise _altered(file)
    return unpacked_model(content, _TRUSTED, file, "castalia.load")
