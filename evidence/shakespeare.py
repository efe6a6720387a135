"""A character transformer on tiny Shakespeare, in the setting of nanoGPT's README.

6 blocks of 6 heads and 384 dimensions, context 256, dropout 0.2, about 5,000 steps of 64 blocks by
AdamW, rate 1e-3 falling to 1e-4 by a cosine after 100 steps of warm-up, weight decay
0.1, gradients clipped at 1. The first 90 % of the text are learnt, the last 10 % validated on after
every epoch. nanoGPT reports the best validation loss it saw, 1.4697 nats a character, on random
blocks of 256; ours is the best over epochs, on blocks that follow each other. Training blocks begin
every 32 characters: an epoch is nearly 500 steps and shows every character at 8 places of a block,
as nanoGPT's random blocks show it anywhere. `perplexity` reads the validation text in overlapping
windows, so that every character has at least half a context before it.
"""

from __future__ import annotations

import math
import time

import torch

from castalia import Training
from castalia.data.text.text_datasets import load_text
from castalia.data.tokenizers import CharTokenizer
from castalia.models.language import GPTLanguageModel
from castalia.optim.schedules import cosine, warmup
from evidence.rows import print_table

PUBLISHED = 1.4697
FULL = {"dim": 384, "depth": 6, "heads": 6, "context": 256, "stride": 32, "epochs": 10}
QUICK = {"dim": 32, "depth": 1, "heads": 2, "context": 64, "stride": 64, "epochs": 1}


def run(quick: bool = False) -> None:
    """Train one model and score the validation text."""
    train, held = (load_text("tinyshakespeare", part) for part in ("train", "validation"))
    if quick:
        train, held = train[:60_000], held[:6_000]
    model = build(held, quick)
    start = time.perf_counter()
    model.fit([train])
    seconds = time.perf_counter() - start
    best = model.best_["val_loss"]
    windows = math.log(model.perplexity([held]))
    steps = sum(1 for _ in model.history_) * math.ceil(model.settings_["rows"] / model.batch_size)
    columns = ["validation loss", "published", "overlapping windows", "steps", "fit"]
    row = [f"{best:.4f}", f"{PUBLISHED}", f"{windows:.4f}", f"{steps:,}", f"{seconds:.0f} s"]
    print_table("tiny Shakespeare: 6 x 384 character transformer", columns, [row])
    print(model.generate("\n", tokens=300, temperature=0.8, top_k=200, random_state=1))


def build(held: str, quick: bool = False) -> GPTLanguageModel:
    """Return the model of the README; bf16 and compiled on CUDA."""
    cuda = torch.cuda.is_available()
    return GPTLanguageModel(
        **(QUICK if quick else FULL),
        dropout=0.2,
        tokenizer=CharTokenizer(),
        batch_size=64,
        lr=1e-3,
        random_state=0,
        training=Training(
            optimizer="adamw",
            weight_decay=0.1,
            schedule=warmup(cosine(floor=0.1), steps=100),
            clip=1.0,
            patience=None if quick else 10,
            validation=([held], None),
            precision="bf16" if cuda else "float32",
            compile=cuda and not quick,
            verbose=False,
        ),
    )
