"""Images with a class each: folders of class folders, arrays, tables of paths."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from castalia.data.images import ImageAdapter
from castalia.data.row_splits import holdout
from castalia.data.url_files import without_password
from castalia.errors import InvalidData, InvalidParameter
from castalia.method.answer_scores import Answers
from castalia.method.blend import Blend
from castalia.method.classic_model import ClassicModel
from castalia.method.fit_plan import FitPlan
from castalia.method.images.duplicate_images import without_copies
from castalia.method.images.fit_images import (
    holds_images,
    names_of,
    read_labelled,
    read_unlabelled,
)
from castalia.method.images.image_model import (
    build_image_model,
    choose_model,
    choose_size,
    enlarged,
)
from castalia.method.images.pixel_baselines import (
    MOST_TRAINED,
    SIDE,
    CoarsePixels,
    coarse_pixels,
    pixel_model,
)
from castalia.method.images.thumbnails import examples, feature_maps, thumbnail
from castalia.method.kinds.kind import Asked, Kind, NewRows, refuse
from castalia.method.table_baselines import answer
from castalia.method.task import class_task
from castalia.method.train_test_split import LEAST_ROWS, REPEATS, Part, make_parts
from castalia.method.verdict import Verdict
from castalia.models.vision.image_recipe import augmentation_words
from castalia.utils.text import plural

__all__ = ["LabelledImages"]

FEW = 1_000  # images
MANY = 500  # images from which one training takes long enough


class LabelledImages(Kind):
    """Images, each of one class."""

    catalog = "image"
    other = "resnet"
    tries: ClassVar = {"image_size": (96, 128), "lr": (0.005, 0.001)}
    slow = True  # every file is decoded once
    mistakes = 12

    def __init__(self, plan: FitPlan) -> None:
        self.plan = plan
        _refuse(plan)
        images, self.target, notes = read_labelled(plan.data, plan.target, plan.skip_broken)
        self.images, copies = without_copies(images)
        if len(self.images) < LEAST_ROWS:
            raise InvalidData(
                f"fit: {plan.name} must have {LEAST_ROWS} different images at least to train and "
                f"test; got {len(self.images)}."
            )
        self.task = class_task(self.target, np.asarray(self.images.target), _WHY, "image")
        repeats = REPEATS if len(self.images) < MANY else 1
        self.parts, more = make_parts(self.images, self.task, plan, repeats=repeats)
        self.X, self.sizes = self.images.features(), self.images.sizes
        self.grey = self.images.channels == 1
        self.size = choose_size(self.sizes, len(self))
        if "image_size" not in plan.settings:
            channels, classes = self.images.channels, len(self.task.classes)
            self.size = enlarged(self.build(len(self)), self.size, channels, classes)
        self.notes = [*notes, *copies, *more, *self._choices()]

    @staticmethod
    def holds(plan: FitPlan) -> bool:
        """Whether a plan names images."""
        return holds_images(plan.data)

    def _choices(self) -> list[str]:
        """Say which choices were made for the user, and how to make others."""
        model = self.build(len(self))
        found = []
        if self.plan.model is None:
            why = choose_model(len(self), self.size, self.plan.device)[1]
            other = "convnet" if self.usual_model().startswith("ResNet") else "resnet"
            found.append(f"{self.usual_model()} is taken, as {why} (--model {other} for another).")
        if "image_size" not in self.plan.settings and (self.sizes != self.size).any():
            size = f"{self.size[0]} x {self.size[1]}"
            found.append(f"Images are brought to {size} pixels (--set image_size=N for another).")
        if "augment" not in self.plan.settings and getattr(model, "augment", None) is not None:
            kind = "Grey images" if self.grey else "Images"
            how = augmentation_words(len(self), self.images.channels)
            found.append(f"{kind} are {how}, in training (--set augment=none leaves them).")
        return found

    def fingerprint(self) -> str:
        """Return a mark of files, or pixels, and labels."""
        text = f"{self.images.fingerprint()} {self.task.y.tolist()}"
        return hashlib.sha256(text.encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Count images and say how large they are."""
        colour = "grey" if self.grey else "in colour"
        what = f"{plural(len(self), 'image')}, {_sizes_words(self.sizes)}, {colour}"
        return {"source": self._source, "what": what}

    @property
    def _source(self) -> str:
        data = self.plan.data
        named = not hasattr(data, "source")
        return str(without_password(data)) if named else self.images.source.text

    @cached_property
    def _names(self) -> np.ndarray:
        return names_of(self.images)

    @cached_property
    def _coarse(self) -> np.ndarray:
        return coarse_pixels(self.X)

    def baseline(self, key: str, part: Part) -> tuple[Any, Answers]:
        """Fit a baseline on images shrunk to a few pixels."""
        train, seed = part.train, self.plan.seed + part.seed
        if len(train) > MOST_TRAINED:
            share = MOST_TRAINED / len(train)
            train = train[holdout(len(train), share, seed=seed, labels=self.task.codes[train])[1]]
        model = pixel_model(key, self.plan.boosting_rounds, seed)
        coarse, y = self._coarse, self.task.y[train]
        return model, answer(model.estimator, coarse[train], y, coarse[part.test], self.task)

    def baseline_note(self, key: str) -> str:
        """Say what a baseline sees."""
        if key == "guess":
            return super().baseline_note(key)
        most = f", {MOST_TRAINED:,} of them" if len(self.parts[0].train) > MOST_TRAINED else ""
        return f"on images shrunk to {SIDE} x {SIDE} pixels{most}"

    def usual_model(self) -> str:
        """Return a network that suits how many images there are, and their size."""
        return choose_model(len(self), self.size, self.plan.device)[0]

    def build(self, rows: int, seed: int = 0) -> Any:
        """Return an unfitted network, sized for so many training images."""
        return build_image_model(
            self.plan, self.system, rows, self.size, self.images.channels, seed
        )

    @property
    def title(self) -> str:
        """Heading of the report."""
        return f"Images of {self.plan.name}"

    def advice(self, verdict: Verdict) -> list[str]:
        """Say what few and shrunk images suggest."""
        found, median = [], np.median(self.sizes, axis=0).max()
        if median >= 2 * max(self.size) and "image_size" not in self.plan.settings:
            more = min(2 * max(self.size), 224)
            found.append(
                f"Images were shrunk from some {median:.0f} pixels to {max(self.size)}; if "
                f"details matter, try --set image_size={more}, which takes longer."
            )
        if len(self) < FEW:
            found.append(
                f"There are only {plural(len(self), 'image')}: more of them, or a start from "
                "weights learnt on a large set (--model resnet --set start=FILE), change more than "
                "settings."
            )
        return found

    def described(self) -> dict[str, Any]:
        """Return sizes and colours."""
        return {
            "facts": {
                "Sizes": _sizes_words(self.sizes),
                "Colours": "grey" if self.grey else "red, green and blue",
                "Brought to": f"{self.size[0]} x {self.size[1]} pixels",
            }
        }

    def shown(self, rows: np.ndarray) -> list[dict[str, Any]]:
        """Return the name and the thumbnail of each image."""
        names = [name if isinstance(name, str) else f"image {name}" for name in self._names[rows]]
        return [
            {"row": {"path": name}, "image": thumbnail(self.X, row)}
            for name, row in zip(names, rows, strict=True)
        ]

    def sections(self, model: Any, tested: np.ndarray, answers: Answers) -> dict[str, Any]:
        """Show examples of the classes, and what the first layers make of one image."""
        return {
            "examples": examples(self.X, self.task, self.plan.seed),
            "feature_maps": feature_maps(model, self.X, int(tested[0])),
        }

    @staticmethod
    def answered_by(model: Any) -> bool:
        """Whether a model takes images."""
        model = model.first if isinstance(model, Blend) else model
        pixels = isinstance(model, ClassicModel) and isinstance(model.features, CoarsePixels)
        return pixels or isinstance(getattr(model, "adapter_", None), ImageAdapter)

    @staticmethod
    def new_rows(model: Any, data: Sequence[Any], asked: Asked) -> NewRows:
        """Read folders and files of images."""
        images, notes = read_unlabelled(data)
        return NewRows(images, {"path": names_of(images)}, notes)

    @staticmethod
    def known_rows(model: Any, data: Any, asked: Asked) -> NewRows:
        """Read images with their classes."""
        images, name, notes = read_labelled(data, asked.target)
        y = np.asarray(images.target)
        return NewRows(images.features(), {}, notes, [], name, y, "image")

    @staticmethod
    def answers(model: Any, X: Any) -> dict[str, np.ndarray]:
        """Return the label of each image and its probability."""
        probability = model.predict_proba(X)
        return {
            "label": model.classes_[probability.argmax(axis=1)],
            "probability": probability.max(axis=1).astype(np.float64),
        }


_WHY = "each image has one label"


def _refuse(plan: FitPlan) -> None:
    """Refuse what only a table can have."""
    if plan.task not in (None, "classification"):
        raise InvalidParameter(
            f"fit: `task` must be 'classification' for images; got {plan.task!r}."
        )
    refuse(plan, ("group", "time"), "images, which have no columns to split by")


def _sizes_words(sizes: np.ndarray) -> str:
    """Say the size, or the smallest and the largest."""
    order = np.argsort(sizes.prod(axis=1), kind="stable")
    small, large = (f"{h} x {w}" for h, w in (sizes[order[0]], sizes[order[-1]]))
    if bool((sizes == sizes[0]).all()):
        return f"{small} pixels"
    return f"{small} to {large} pixels"
