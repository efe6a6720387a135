"""The kinds of data that the method takes: what is particular to each, in one object a kind."""

from __future__ import annotations

import os
from typing import Any

from castalia.data import datasets
from castalia.data.images import available_images
from castalia.data.shards import hold_images, shard_files
from castalia.data.tables.joined_source import table_files
from castalia.data.text.text_datasets import available_texts
from castalia.errors import InvalidData
from castalia.method.fit_plan import FitPlan
from castalia.method.kinds.forecast_kind import SeriesForecast
from castalia.method.kinds.graph_set_kind import GraphSets
from castalia.method.kinds.image_kind import LabelledImages
from castalia.method.kinds.kind import Asked, Kind, NewRows
from castalia.method.kinds.labelled_sequences_kind import LabelledSequences
from castalia.method.kinds.labelled_texts_kind import LabelledTexts
from castalia.method.kinds.link_kind import Links
from castalia.method.kinds.node_kind import Nodes
from castalia.method.kinds.parallel_texts import ParallelTexts
from castalia.method.kinds.prose import Prose
from castalia.method.kinds.table_kind import Table
from castalia.method.narrator import Narrator
from castalia.utils.text import did_you_mean

__all__ = [
    "KINDS",
    "Asked",
    "GraphSets",
    "Kind",
    "LabelledSequences",
    "LabelledTexts",
    "Links",
    "NewRows",
    "Nodes",
    "ParallelTexts",
    "LabelledImages",
    "Prose",
    "SeriesForecast",
    "Table",
    "kind_of",
    "open_data",
]

# The first that holds, reads.
KINDS: tuple[type[Kind], ...] = (
    Links,
    GraphSets,
    Nodes,
    ParallelTexts,
    LabelledSequences,
    Prose,
    LabelledImages,
    SeriesForecast,
    LabelledTexts,
    Table,
)
TABLES = KINDS[-3:]  # of rows with named columns


def open_data(plan: FitPlan, narrator: Narrator | None = None) -> Kind:
    """Read what a plan names, as what it is."""
    shards = shard_files(plan.data)
    many = table_files(plan.data) is not None or (shards is not None and not hold_images(shards))
    several = plan.nodes is None and not plan.links and many
    if not several and shards is None:
        _check_folder(plan.data)
    kinds = TABLES if several else KINDS if shards is None else (LabelledImages,)
    kind = next(kind for kind in kinds if kind.holds(plan))
    if narrator is not None and kind.slow:
        narrator.reading(plan.name)
    return kind(plan)


def _check_folder(data: Any) -> None:
    """Refuse a name without an ending that is neither there nor known: probably a folder."""
    if not isinstance(data, str | os.PathLike) or os.path.exists(data):
        return
    name = os.fspath(data)
    known = [*datasets.available(), *available_images(), *available_texts()]
    if os.path.splitext(name.rstrip("/"))[1] and not name.endswith("/") or name in known:
        return
    here = os.path.dirname(name.rstrip("/")) or "."
    near = [*known, *(os.listdir(here) if os.path.isdir(here) else [])]
    raise InvalidData(
        f"fit: `{name}` must be a folder, a file or a known name; it does not exist."
        f"{did_you_mean(os.path.basename(name.rstrip('/')), near)}"
    )


def kind_of(model: Any) -> type[Kind]:
    """Return the kind of data that a fitted model takes."""
    if hasattr(model, "sample_blocks") and not hasattr(model, "predict"):
        raise InvalidData(
            f"predict: a {type(model).__name__} draws rows and predicts none; `castalia sample` "
            "draws with it."
        )
    found = next((kind for kind in KINDS if kind.answered_by(model)), None)
    if found is None:
        raise InvalidData(
            f"predict: a {type(model).__name__} answers nothing that a file can hold. Load it with "
            "`castalia.load` and use it in Python."
        )
    return found
