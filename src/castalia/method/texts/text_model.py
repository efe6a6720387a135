"""The networks for text: which one, how large, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from castalia.catalog import System
from castalia.data.text import TOKENIZERS
from castalia.data.tokenizers import BPETokenizer, WordPunctTokenizer
from castalia.method.fit_plan import FitPlan
from castalia.method.table_model import VALIDATION, built, loop
from castalia.method.texts.text_baselines import LETTERS
from castalia.models.language import FastTextClassifier, TransformerClassifier
from castalia.train import Training
from castalia.utils.devices import resolve_device

__all__ = [
    "build_classifier",
    "build_language_model",
    "build_translator",
    "choose_classifier",
    "choose_language_model",
    "classifier_size",
    "on_gpu",
]

FEW = 100_000  # tokens up to which batches are small
MUCH = 1_000_000  # characters from which attention pays, on a GPU
STEPS = {False: 2_500, True: 10_000}  # most steps of a training without and with a GPU


def on_gpu(device: str) -> bool:
    """Whether a training takes place on a GPU."""
    return bool(resolve_device(device).type != "cpu")


def choose_language_model(characters: int, device: str) -> tuple[str, str]:
    """Return the language model that suits a text, and why.

    Examples
    --------
    >>> choose_language_model(20_000, "cpu")
    ('RNNLanguageModel', 'the text has fewer than 1,000,000 characters')
    """
    if characters < MUCH:
        return "RNNLanguageModel", f"the text has fewer than {MUCH:,} characters"
    if not on_gpu(device):
        return "RNNLanguageModel", "attention takes long without a GPU"
    return "GPTLanguageModel", f"the text has {MUCH:,} characters or more"


def _epochs(tokens: int, step: int, gpu: bool, least: int, most: int) -> int:
    steps = max(1, tokens // step)
    return int(np.clip(STEPS[gpu] // steps, least, most))


class Reader(NamedTuple):
    """Sizes of a language model."""

    dim: int
    depth: int
    heads: int
    context: int
    batch: int
    dropout: float
    lr: float


SMALL = Reader(128, 2, 4, 64, 32, 0.1, 3e-3)
LARGE = Reader(384, 6, 6, 256, 64, 0.2, 1e-3)  # nanoGPT's for a million characters


def build_language_model(plan: FitPlan, system: System, tokens: int, seed: int = 0) -> Any:
    """Return an unfitted language model for so many tokens; the plan overrides its settings."""
    gpu, recurrent = on_gpu(plan.device), system.name == "RNNLanguageModel"
    size = LARGE if gpu and not recurrent else SMALL
    size = size._replace(batch=16) if tokens < FEW else size
    hidden = 512 if gpu else 192
    own = {
        "random_state": seed,
        "hidden": hidden if recurrent else 4 * size.dim,
        "dim": None if recurrent else size.dim,
        "depth": 1 if recurrent else size.depth,
        "heads": size.heads,
        "context": size.context,
        "dropout": size.dropout,
        "batch_size": size.batch,
        "lr": size.lr,
        "epochs": _epochs(tokens, size.context * size.batch, gpu, 3, 100),
        "training": Training(
            **loop(plan) | {"validation": 0.1},
            schedule="warmup_cosine",
            clip=1.0,
            patience=10,
        ),
    }
    if system.name == "LlamaLanguageModel":
        own["hidden"] = None  # its own rule, for networks of three matrices
    if system.name == "NGramLanguageModel":  # which takes no name of a tokenizer
        own["order"] = LETTERS
        asked = plan.settings.get("tokenizer", "characters")
        if asked in TOKENIZERS:
            plan = replace(plan, settings={**plan.settings, "tokenizer": TOKENIZERS[asked]()})
    return built(system, own, plan)


class Size(NamedTuple):
    """Sizes of a classifier that reads texts in order."""

    texts: float  # up to so many
    depth: int
    dim: int
    min_count: int
    batch: int
    lr: float


CLASSIFIERS = (
    Size(500, 2, 64, 1, 16, 2e-3),
    Size(5_000, 2, 64, 1, 32, 2e-3),
    Size(50_000, 2, 64, 2, 64, 2e-3),
    Size(float("inf"), 2, 64, 2, 128, 2e-3),
)
WITH_BLOCKS = Size(float("inf"), 4, 256, 2, 64, 5e-4)  # on a GPU, for more than the third
BAG_STEPS = {5_000: (10, 32), float("inf"): (5, 64)}  # epochs and texts of a step, by texts


def choose_classifier(texts: int, device: str, settings: Mapping[str, Any]) -> str:
    """Return the classifier that suits so many texts and the settings asked for.

    Weighted n-grams are hard to beat from scratch: blocks of attention, which read their order,
    come in where there is much text and a GPU, or where their settings are asked for.

    Examples
    --------
    >>> choose_classifier(2_000, "cpu", {}), choose_classifier(2_000, "cpu", {"heads": 2})
    ('FastTextClassifier', 'TransformerClassifier')
    """
    bag, reader = (
        {field.name for field in fields(kind)}
        for kind in (FastTextClassifier, TransformerClassifier)
    )
    if (texts > CLASSIFIERS[-2].texts and on_gpu(device)) or set(settings) & (reader - bag):
        return "TransformerClassifier"
    return "FastTextClassifier"


def classifier_size(texts: int, gpu: bool) -> Size:
    """Return the sizes of a network that reads so many texts.

    Examples
    --------
    >>> classifier_size(2_000, gpu=True).depth, classifier_size(100_000, gpu=True).depth
    (2, 4)
    """
    if gpu and texts > CLASSIFIERS[-2].texts:
        return WITH_BLOCKS
    return next(size for size in CLASSIFIERS if texts <= size.texts)


def build_classifier(plan: FitPlan, system: System, rows: int, words: int, seed: int = 0) -> Any:
    """Return an unfitted classifier of texts of so many words; the plan overrides its settings."""
    if system.name == "FastTextClassifier":
        epochs, batch = next(steps for most, steps in BAG_STEPS.items() if rows <= most)
        free = {"validation": 0.0, "optimizer": "adam", "weight_decay": 0.0}
        training = Training(**loop(plan) | free, schedule="cosine")
        own = {"epochs": epochs, "batch_size": batch, "random_state": seed, "training": training}
        return built(system, own, plan)
    gpu = on_gpu(plan.device)
    size = classifier_size(rows, gpu)
    bag = not plan.settings.get("depth", size.depth) and system.name == "TransformerClassifier"
    own = {
        "random_state": seed,
        "depth": size.depth,
        "dim": size.dim,
        "hidden": 2 * size.dim if system.name == "ELMoClassifier" else 64,  # projected to dim
        "heads": 4,
        "positions": "none" if bag else "sinusoidal",
        "pool": "sum" if bag else "mean",
        "dropout": 0.3,
        "label_smoothing": 0.1,
        "context": int(np.clip(-(-words // 8) * 8, 16, 512 if gpu else 256)),
        "tokenizer": WordPunctTokenizer(min_count=size.min_count, normalise=("nfc", "lowercase")),
        "batch_size": size.batch,
        "lr": size.lr,
        "epochs": _epochs(rows, size.batch, gpu, 4, 40),
        "training": Training(
            **loop(plan) | {"validation": VALIDATION},
            schedule="warmup_cosine",
            clip=1.0,
            patience=6,
        ),
    }
    return built(system, own, plan)


def build_translator(
    plan: FitPlan, system: System, rows: int, words: int, characters: int, seed: int = 0
) -> Any:
    """Return an unfitted translator with sensible settings."""
    gpu = on_gpu(plan.device)
    pieces = int(np.clip(characters // 300, 500, 10_000 if gpu else 6_000))
    batch = 32 if rows <= 5_000 else 64 if not gpu else 128
    own = {
        "random_state": seed,
        "dim": 256 if gpu else 128,
        "hidden": 1024 if gpu else 256,
        "depth": 3 if gpu else 2,
        "heads": 4,
        "dropout": 0.3 if gpu else 0.1,
        "pre_norm": True,
        "beams": 4 if gpu else 1,
        "context": int(np.clip(2 * words, 16, 256 if gpu else 128)),
        "tokenizer": BPETokenizer(vocabulary_size=pieces, min_count=2),
        "batch_size": batch,
        "lr": 1e-3,
        "epochs": _epochs(rows, batch, gpu, 3, 60),
        "training": Training(
            **loop(plan) | {"validation": 0.05}, schedule="warmup_cosine", clip=1.0, patience=6
        ),
    }
    return built(system, own, plan)
