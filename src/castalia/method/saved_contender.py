"""Contenders on disk: ours as `castalia.save` writes them, scikit-learn's through skops.

Neither is pickle. What a skops file holds is checked against the types that we write before any of
it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from castalia.base import load, save
from castalia.base.skops_files import unpacked_model
from castalia.errors import DamagedFile, InvalidData
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_result import CONTENDERS, MODEL
from castalia.method.graphs.graph_baselines import ColourCounts, GraphSummaries
from castalia.method.graphs.node_baselines import KnownLabels, NodeColumns
from castalia.method.graphs.pair_baselines import SharedNeighbours
from castalia.method.images.pixel_baselines import CoarsePixels
from castalia.method.report.plain_values import from_text, to_text
from castalia.method.series.lag_model import LagModel, LagWindows
from castalia.method.series.sequence_baselines import RandomConvolutions, StepSummaries
from castalia.method.table_matrix import Matrix
from castalia.method.texts.text_baselines import PlainTexts
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import read_regular

__all__ = ["RECORD", "load_contender", "save_blend", "save_contender"]

RECORD, ESTIMATOR = "contender.json", "estimator.skops"
_FORMAT = 1
_FEATURES: dict[str, Any] = {
    "table": Matrix,
    "images": CoarsePixels,
    "texts": PlainTexts,
    "nodes": NodeColumns,
    "labels": KnownLabels,
    "pairs": SharedNeighbours,
    "colours": ColourCounts,
    "graph summaries": GraphSummaries,
    "lags": LagWindows,
    "convolutions": RandomConvolutions,
    "summaries": StepSummaries,
}
# Parts of the models that we save and that skops does not trust by itself; none of them runs code.
_OURS = frozenset(
    {
        "functools.partial",
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.utils.validation.check_array",
    }
)


def save_contender(model: Any, folder: Path) -> None:
    """Save a fitted contender into a folder of its own."""
    if not isinstance(model, ClassicModel):
        save(model, folder)
        return
    from skops import io

    kind = next(name for name, made in _FEATURES.items() if isinstance(model.features, made))
    record = {"format": _FORMAT, "features": kind, "state": model.features.state()}
    with writing("fit", folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / ESTIMATOR, io.dumps(model.estimator))
        atomic_write(folder / RECORD, to_text(record))


def save_blend(weights: Mapping[str, float], folder: Path) -> None:
    """Save the weights of a blend; its members lie beside it in the run."""
    with writing("fit", folder):
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / RECORD, to_text({"format": _FORMAT, "weights": dict(weights)}))


def load_contender(folder: Path) -> Any:
    """Load what `save_contender` or `save_blend` saved."""
    if not (folder / RECORD).is_file():
        return load(folder)
    try:
        record = from_text(read_regular(folder / RECORD))
        if "weights" in record:
            return _blend(record["weights"], folder)
        features = _FEATURES[record["features"]].from_state(record["state"])
        content = read_regular(folder / ESTIMATOR)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"load: `{folder}` is truncated or was altered. Run `castalia fit` again to write a "
            "new one."
        ) from error
    made = LagModel if isinstance(features, LagWindows) else ClassicModel
    return made(unpacked_model(content, _OURS, folder / ESTIMATOR, "load"), features)


def _blend(weights: Mapping[str, float], folder: Path) -> Blend:
    """Load the members of a blend from the run it lies in."""
    run, members = folder.parent.parent, dict[str, Any]()
    for key in weights:
        place = run / MODEL if key == MODEL else run / CONTENDERS / Path(key).name
        if not place.is_dir():
            raise InvalidData(
                f"load: `{folder}` must lie in its run, beside the models it blends; {place} is "
                "not there."
            )
        members[key] = load_contender(place)
    return Blend(members, weights)
