"""Translation of Multi30k, English to German, by a small transformer; sacreBLEU on test 2016.

29,000 pairs of captions, as they are written (capitals and punctuation stay), one vocabulary of
byte pairs for both languages. The epoch is chosen by the validation loss, weights are averaged,
translations are found by beam search. Nothing is chosen on the test set.
"""

from __future__ import annotations

import time

from castalia import Training
from castalia.data.text.text_datasets import load_text
from castalia.data.tokenizers import BPETokenizer
from castalia.models.language import Transformer
from castalia.optim import inverse_sqrt, warmup
from evidence.rows import print_table

SETTINGS = {
    "dim": 256,
    "depth": 4,
    "heads": 4,
    "hidden": 1024,
    "dropout": 0.3,
    "pre_norm": True,
    "label_smoothing": 0.1,
    "context": 96,
    "beams": 5,
    "length_penalty": 1.0,
    "epochs": 50,
    "batch_size": 256,
    "lr": 1.5e-3,
}
QUICK = {**SETTINGS, "dim": 32, "depth": 1, "heads": 2, "hidden": 64, "epochs": 1, "beams": 2}
PIECES = 8_000
SEEDS = (0, 1, 2)


def run(quick: bool = False) -> None:
    """Fit once a seed and print BLEU on the validation and test sentences."""
    source, target = ({p: _lines(f"multi30k-{c}", p) for p in PARTS} for c in ("en", "de"))
    if quick:
        source, target = ({p: lines[:400] for p, lines in s.items()} for s in (source, target))
    rows = [measure(seed, source, target, quick) for seed in (SEEDS[:1] if quick else SEEDS)]
    columns = ["seed", "parameters", "validation BLEU", "test 2016 BLEU", "fit", "translate test"]
    print_table("Multi30k: English to German", columns, rows)


PARTS = ("train", "validation", "test")


def _lines(name: str, part: str) -> list[str]:
    return [line.strip() for line in load_text(name, part).split("\n")]


def measure(
    seed: int, source: dict[str, list[str]], target: dict[str, list[str]], quick: bool
) -> list[str]:
    """Fit, translate and score."""
    training = Training(
        schedule=warmup(inverse_sqrt(0.08), 0.08),
        weight_decay=1e-4,
        clip=1.0,
        average=("ema", 0.999),
        validation=(source["validation"], target["validation"]),
        patience=10,
    )
    model = Transformer(
        tokenizer=BPETokenizer(vocabulary_size=500 if quick else PIECES, min_count=2),
        training=training,
        random_state=seed,
        **(QUICK if quick else SETTINGS),
    )
    start = time.perf_counter()
    model.fit(source["train"], target["train"])
    fitted = time.perf_counter() - start
    start = time.perf_counter()
    test = model.score(source["test"], target["test"])
    translated = time.perf_counter() - start
    held = model.score(source["validation"], target["validation"])
    size = sum(p.numel() for p in model.module_.parameters())
    return [
        str(seed),
        f"{size:,}",
        f"{held:.2f}",
        f"{test:.2f}",
        f"{fitted:.0f} s, {model.n_iter_} epochs",
        f"{translated:.1f} s",
    ]
