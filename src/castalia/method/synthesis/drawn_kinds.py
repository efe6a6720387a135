"""What a model is to draw more of: rows of a table, or images; read, and some held out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from castalia.base import check_parameters
from castalia.catalog import matches, system
from castalia.data.row_splits import holdout
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.fit_plan import FitPlan
from castalia.method.fit_table import load_table, usable_columns
from castalia.method.images.fit_images import holds_images, read_labelled, read_unlabelled
from castalia.method.images.image_model import choose_size
from castalia.method.kinds.table_kind import column_row
from castalia.method.model_settings import apply_settings
from castalia.method.table_model import made
from castalia.method.train_test_split import LEAST_ROWS
from castalia.method.training_run import SMALL_BATCH
from castalia.train import check_training
from castalia.utils.devices import resolve_device
from castalia.utils.text import listing, plural

__all__ = ["DrawnImages", "DrawnRows", "DrawnTable", "open_rows"]

MODELS = (
    "DiffusionModel",
    "VariationalAutoencoder",
    "NormalizingFlow",
    "GenerativeAdversarialNetwork",
    "MomentMatching",
    "DRAW",
)
STEPS, MOST_EPOCHS = 6000, 1000  # of a training on a table at least, and its epochs at most
LONGEST = 64  # pixels of the longer side of an image that is learnt
# Settings of a plan that predict something.
_OTHER = ("target", "nodes", "text", "task", "metric", "goal", "cv", "group", "time", "horizon")


class DrawnRows:
    """Rows to learn from and rows held out.

    Attributes
    ----------
    plan
        What was asked for.
    X, held
        The rows that are learnt from, and the others, as models take them.
    y
        A class for each row of X, for conditional models; else None.
    unit
        What one of them is called.
    usual
        The model that is taken where none is asked for, and why.
    notes
        Remarks.
    """

    plan: FitPlan
    X: Any
    held: Any
    y: np.ndarray | None = None
    unit: str
    usual: tuple[str, str]
    notes: list[str]

    def build(self) -> Any:
        """Return the unfitted model."""
        model = made(_system(self.plan.model or self.usual[0]))
        training = replace(model.usual_training, device=self.plan.device, verbose=False)
        model.set_params(random_state=self.plan.seed, training=training, **self.amounts(model))
        apply_settings(model, self.plan.settings)
        check_parameters(model)
        check_training(model.training)
        if getattr(model, "conditional", False) and self.y is None:
            raise InvalidData(
                f"fit: conditional=true needs images in folders of classes; {self.plan.name} has "
                "no labels. Leave the setting out."
            )
        return model

    def amounts(self, model: Any) -> dict[str, int]:
        """Return how long to train, where the model's own default will not do."""
        return {}

    def _chosen(self) -> list[str]:
        """Say which model is taken, and why, where nobody named one."""
        if self.plan.model is not None:
            return []
        name, why = self.usual
        return [f"{name} is taken, as {why} (--model vae, gan, … for another)."]

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"{self.unit.capitalize()}s like those of {self.plan.name}"

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        raise NotImplementedError

    def facts(self) -> dict[str, Any]:
        """Return what is shown before the training."""
        raise NotImplementedError

    def described(self) -> dict[str, Any]:
        """Return what the report says of the data."""
        return {}

    def shuffled(self) -> Any:
        """Return training rows whose columns are drawn each by itself."""
        raise NotImplementedError

    def _facts(self, source: str, what: str) -> dict[str, Any]:
        share = f"{100 * self.plan.test:.0f} % of the {self.unit}s held out to judge by"
        held = len(self.held)
        return {"source": source, "what": what, "unit": self.unit, "split": share, "tested": held}


def open_rows(plan: FitPlan) -> DrawnRows:
    """Read what a plan names, to draw more of it."""
    for name in _OTHER:
        if getattr(plan, name) is not None:
            raise InvalidParameter(
                f"fit: `{name}` must be left out with --generate, which predicts nothing; got "
                f"{getattr(plan, name)!r}."
            )
    return DrawnImages(plan) if holds_images(plan.data) else DrawnTable(plan)


class DrawnTable(DrawnRows):
    """Rows of a table; all columns are drawn together."""

    unit = "row"
    usual = ("DiffusionModel", "it draws columns of all kinds")

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        data, notes = load_table(plan.data, header=plan.header, encoding=plan.encoding)
        used, remarks = usable_columns(data.schema, plan.drop)
        remarks = [words.replace("Not used:", "Not drawn:") for words in remarks]
        _check_count(len(data), data.source, self.unit)
        self.data, self.used, self.notes = data, used, [*notes, *remarks]
        kept, held = holdout(len(data), plan.test, seed=plan.seed)
        rows = data.select(used)
        self.X, self.held = rows.take(kept), rows.take(held)
        self.notes += self._chosen()

    def amounts(self, model: Any) -> dict[str, int]:
        """Take some steps at least: a small table has few of them in an epoch."""
        epoch = max(1, len(self.X) // (model.batch_size or SMALL_BATCH))
        return {"epochs": max(model.epochs, min(MOST_EPOCHS, STEPS // epoch))}

    def fingerprint(self) -> str:
        """Return a mark of the content."""
        return self.data.fingerprint()

    def facts(self) -> dict[str, Any]:
        """Count rows and columns."""
        columns = f"{len(self.used)} of {plural(len(self.data.columns), 'column')} drawn"
        return self._facts(self.data.source, f"{plural(len(self.data), 'row')}, {columns}")

    def described(self) -> dict[str, Any]:
        """Return the columns."""
        return {"rows": len(self.data), "columns": [column_row(c) for c in self.data.schema]}

    def shuffled(self) -> pa.Table:
        """Return training rows whose columns are shuffled, each by itself."""
        random, table = np.random.default_rng(self.plan.seed), self.X.table()
        order = {name: random.permutation(len(table)) for name in table.column_names}
        return pa.table({name: table[name].take(pa.array(rows)) for name, rows in order.items()})


class DrawnImages(DrawnRows):
    """Images, brought to one size."""

    unit = "image"

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        labels = None
        if plan.settings.get("conditional"):
            images, _, self.notes = read_labelled(plan.data, None)
            labels = np.asarray(images.target)
        else:
            images, self.notes = read_unlabelled([plan.data])
        _check_count(len(images), plan.name, self.unit)
        self.images, size = images, _smaller(choose_size(images.sizes, len(images)))
        if (images.sizes != size).any():
            self.notes.append(f"Images are brought to {size[0]} x {size[1]} pixels.")
        kept, held = holdout(len(images), plan.test, seed=plan.seed, labels=labels)
        self.X, self.held = (self._pixels(index, size) for index in (kept, held))
        self.y = None if labels is None else labels[kept]
        self.usual = _usual(plan.device)
        self.notes += self._chosen()

    def _pixels(self, index: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """Return bytes or shares of white, (N, H, W) or (N, H, W, C)."""
        found = self.images.pixels(index, size, 1 if self.images.channels == 1 else 3)
        array: np.ndarray = found.permute(0, 2, 3, 1).numpy()
        return np.ascontiguousarray(array[..., 0] if array.shape[-1] == 1 else array)

    def fingerprint(self) -> str:
        """Return a mark of files, or pixels."""
        return self.images.fingerprint()

    def facts(self) -> dict[str, Any]:
        """Count images and say how large they are."""
        height, width = self.X.shape[1:3]
        colour = "grey" if self.X.ndim == 3 else "in colour"
        what = f"{plural(len(self.images), 'image')}, {height} x {width} pixels, {colour}"
        return self._facts(str(self.plan.name), what)

    def described(self) -> dict[str, Any]:
        """Return how many there are."""
        return {"rows": len(self.images)}

    def shuffled(self) -> np.ndarray:
        """Return images whose pixels are drawn each by itself."""
        flat = self.X.reshape(len(self.X), -1)
        random = np.random.default_rng(self.plan.seed)
        return random.permuted(flat, axis=0).reshape(self.X.shape)


def _usual(device: str) -> tuple[str, str]:
    if resolve_device(device).type == "cpu":
        return "VariationalAutoencoder", "there is no GPU, and diffusion is slow without"
    return "DiffusionModel", "it draws the sharpest images"


def _smaller(size: tuple[int, int]) -> tuple[int, int]:
    """Return a size whose longer side is at most `LONGEST`."""
    scale = min(1.0, LONGEST / max(size))
    return max(4, round(size[0] * scale)), max(4, round(size[1] * scale))


def _check_count(count: int, source: str, unit: str) -> None:
    if count < LEAST_ROWS:
        raise InvalidData(
            f"fit: {source} must have {LEAST_ROWS} {unit}s at least to learn from and to judge by; "
            f"got {count}."
        )


def _system(name: str) -> Any:
    """Return the record of a model that draws, by its name or a short form."""
    able = [record for record in matches(name) if record.name in MODELS]
    if not able:
        raise InvalidParameter(
            f"fit: `model` must draw rows or images with --generate: {listing(MODELS)}; got "
            f"{name!r}."
        )
    return system(able[0].name)
