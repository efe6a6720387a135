"""The networks for text: which one, how large, for how long."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from castalia.catalog import System
from castalia.data.text import TOKENIZERS
from castalia.data.tokenizers import BPETokenizer, WordPunctTokenizer
from castalia.method.fit_plan import FitPlan
from castalia.method.table_model import VALIDATION, built, loop
from castalia.method.texts.text_baselines import LETTERS
from castalia.train import Training
from castalia.utils.devices import resolve_device

__all__ = [
    "build_classifier",
    "build_language_model",
    "build_translator",
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
    if system.name == "NGramLanguageModel":  # which takes no name of a tokenizer
        own["order"] = LETTERS
        asked = plan.settings.get("tokenizer", "characters")
        if asked in TOKENIZERS:
            plan = replace(plan, settings={**plan.settings, "tokenizer": TOKENIZERS[asked]()})
    return built(system, own, plan)


class Size(NamedTuple):
    """Sizes of a classifier of texts; without blocks it is a bag of words."""

    texts: float  # up to so many
    depth: int
    dim: int
    dropout: float
    min_count: int
    batch: int
    lr: float


CLASSIFIERS = (
    Size(500, 0, 256, 0.5, 1, 16, 2e-3),  # none can be spared for validation
    Size(5_000, 0, 64, 0.5, 1, 32, 2e-3),
    Size(50_000, 0, 128, 0.5, 2, 64, 2e-3),
    Size(float("inf"), 0, 256, 0.3, 2, 128, 2e-3),
)
BLIND = 15  # epochs of a bag of words without validation
WITH_BLOCKS = Size(float("inf"), 4, 256, 0.3, 2, 64, 5e-4)  # on a GPU, for more than the third


def classifier_size(texts: int, gpu: bool) -> Size:
    """Return the sizes that suit so many texts.

    Words and their weights are hard to beat from scratch: blocks of attention, which read their
    order, come in where there is much text and a GPU.

    Examples
    --------
    >>> classifier_size(2_000, gpu=True).depth, classifier_size(100_000, gpu=True).depth
    (0, 4)
    """
    if gpu and texts > CLASSIFIERS[-2].texts:
        return WITH_BLOCKS
    return next(size for size in CLASSIFIERS if texts <= size.texts)


def build_classifier(plan: FitPlan, system: System, rows: int, words: int, seed: int = 0) -> Any:
    """Return an unfitted classifier of texts of so many words; the plan overrides its settings."""
    gpu = on_gpu(plan.device)
    size = classifier_size(rows, gpu)
    blocks = plan.settings.get("depth", size.depth)
    bag = not blocks and system.name == "TransformerClassifier"
    if not bag and not size.depth:  # another network was asked for
        size = size._replace(depth=2, dim=64, dropout=0.3)
    blind = bag and rows <= CLASSIFIERS[0].texts
    ending = {"validation": 0.0} if blind else {"validation": VALIDATION, "patience": 6}
    own = {
        "random_state": seed,
        "depth": size.depth,
        "dim": size.dim,
        "hidden": 2 * size.dim if system.name == "ELMoClassifier" else 64,  # projected to dim
        "heads": 4,
        "positions": "none" if bag else "sinusoidal",
        "pool": "sum" if bag else "mean",
        "dropout": size.dropout,
        "label_smoothing": 0.1,
        "context": int(np.clip(-(-words // 8) * 8, 16, 512 if gpu else 256)),
        "tokenizer": WordPunctTokenizer(min_count=size.min_count, normalise=("nfc", "lowercase")),
        "batch_size": size.batch,
        "lr": size.lr,
        "epochs": BLIND if blind else _epochs(rows, size.batch, gpu, 4, 40),
        "training": Training(**loop(plan) | ending, schedule="warmup_cosine", clip=1.0),
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
