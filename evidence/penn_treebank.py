"""An LSTM of Zaremba's medium size on the Penn Treebank, word by word.

Two layers of 650 units, dropout one half outside the recurrence, 35 steps of back-propagation,
gradient descent whose rate falls when the validation loss does; embeddings and output layer share
their weights. The text is one stream with <eos> at the line ends; perplexity is over its 82,430
test tokens, state carried throughout. Published: 82.7 for the medium size without shared weights
(2014, Zaremba, Sutskever, Vinyals, arXiv 1409.2329).
"""

from __future__ import annotations

import time

import numpy as np
import torch

from castalia import Training
from castalia.data.text.text_datasets import load_text
from castalia.data.tokenizers import WhitespaceTokenizer
from castalia.models.language import RNNLanguageModel
from castalia.optim import plateau
from evidence.rows import print_table

FULL = {"hidden": 650, "depth": 2, "dropout": 0.5, "context": 35, "batch_size": 20, "epochs": 24}
QUICK = {**FULL, "hidden": 32, "depth": 1, "epochs": 1}
PARTS = ("train", "validation", "test")


def run(quick: bool = False) -> None:
    """Train one model and score the validation and test texts."""
    texts = {part: stream(load_text("ptb", part), 400 if quick else None) for part in PARTS}
    model = build(texts["validation"], quick)
    start = time.perf_counter()
    model.fit([texts["train"]])
    seconds = time.perf_counter() - start
    found = [perplexity(model, texts[part]) for part in ("validation", "test")]
    size = sum(p.numel() for p in model.module_.parameters())
    columns = ["parameters", "validation perplexity", "test perplexity", "published", "fit"]
    row = [f"{size:,}", *(f"{p:.1f}" for p in found), "82.7"]
    row.append(f"{seconds:.0f} s, {model.n_iter_} epochs")
    print_table("Penn Treebank: LSTM of Zaremba's medium size", columns, [row])


def stream(text: str, lines: int | None = None) -> str:
    """Join lines to one text that marks their ends."""
    return " ".join(f"{line.strip()} <eos>" for line in text.split("\n")[:lines])


def perplexity(model: RNNLanguageModel, text: str) -> float:
    """Over the tokens of the data; the end that the library adds to a text is left out."""
    (logs,) = model.token_log_probabilities([text])
    return float(np.exp(-logs[:-1].mean()))


def build(validation: str, quick: bool = False) -> RNNLanguageModel:
    """Return the model; the loss is a mean over tokens, so the rate is larger than Zaremba's."""
    return RNNLanguageModel(
        **(QUICK if quick else FULL),
        tied=True,
        tokenizer=WhitespaceTokenizer(),
        lr=20.0,
        random_state=0,
        training=Training(
            optimizer="sgd",
            schedule=plateau(factor=0.25, patience=1, threshold=0.001),
            clip=0.25,
            patience=8,
            validation=([validation], None),
            precision="float32",
            compile=False,
            device="cuda" if torch.cuda.is_available() else "cpu",
            verbose=False,
        ),
    )
