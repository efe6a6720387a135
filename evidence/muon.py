"""Muon beside AdamW: tokens to a given loss, with a character transformer on tiny Shakespeare.

Both train the network of nanoGPT's README (6 blocks of 6 heads and 384 dimensions, here with
context 128) with weight decay 0.1, gradients clipped at 1 and a cosine after 100 steps of warm-up.
AdamW has 16 epochs and the best of its rates and memories; Muon has 12, with a cosine of its own,
and its two best rates (a wider search is in RESULTS.md). The first 90 % of the text are learnt, the
last 10 % validated on after every epoch; the loss is the lowest of a training.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch

from castalia import Training
from castalia.data.text.text_datasets import load_text
from castalia.data.tokenizers import CharTokenizer
from castalia.models.language import GPTLanguageModel
from castalia.optim.schedules import cosine, warmup
from evidence.rows import print_table

FULL = {"dim": 384, "depth": 6, "heads": 6, "context": 128, "stride": 128}
QUICK = {"dim": 32, "depth": 1, "heads": 2, "context": 64, "stride": 64}
# Optimizer, epochs, rate.
TRIALS: tuple[tuple[Any, int, float], ...] = (
    (("adamw", {"betas": (0.9, 0.99)}), 16, 2e-3),
    (("muon", {"betas": (0.9, 0.99)}), 12, 6e-3),
    (("muon", {"betas": (0.9, 0.99)}), 12, 9e-3),
)
SEEDS = (0, 1, 2, 3)


def run(quick: bool = False) -> None:
    """Lowest validation loss and tokens of each training, all at once."""
    jobs = [(trial, seed, quick) for seed in SEEDS[: 1 if quick else None] for trial in TRIALS]
    with ProcessPoolExecutor(1 if quick else 6, mp_context=get_context("spawn")) as pool:
        rows = list(pool.map(_row, jobs))
    columns = ["optimizer", "lr", "epochs", "seed", "million tokens", "loss", "s a fit"]
    print_table("Muon beside AdamW: tiny Shakespeare, 6 x 384 characters", columns, rows)


def _row(job: tuple[tuple[Any, int, float], int, bool]) -> list[str]:
    (optimizer, epochs, lr), seed, quick = job
    train, held = (load_text("tinyshakespeare", part) for part in ("train", "validation"))
    if quick:
        train, held = train[:20_000], held[:4_000]
    model = build(optimizer, 1 if quick else epochs, lr, held, quick).set_params(random_state=seed)
    start = time.perf_counter()
    model.fit([train])
    seconds = time.perf_counter() - start
    tokens = model.settings_["rows"] * model.context * len(model.history_)
    found = [optimizer[0], f"{lr:g}", str(epochs), str(seed), f"{tokens / 1e6:.1f}"]
    row = [*found, f"{model.best_['val_loss']:.4f}", f"{seconds:.0f}"]
    print(row, flush=True)
    return row


def build(optimizer: Any, epochs: int, lr: float, held: str, quick: bool) -> GPTLanguageModel:
    """Return the model; bf16 on CUDA."""
    return GPTLanguageModel(
        **(QUICK if quick else FULL),
        epochs=epochs,
        dropout=0.2,
        tokenizer=CharTokenizer(),
        batch_size=64,
        lr=lr,
        random_state=0,
        training=Training(
            optimizer=optimizer,
            weight_decay=0.1,
            schedule=warmup(cosine(floor=0.0), steps=100),
            clip=1.0,
            validation=([held], None),
            precision="bf16" if torch.cuda.is_available() else "float32",
            watch=False,
            verbose=False,
        ),
    )
