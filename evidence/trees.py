"""The Stanford Sentiment Treebank by recursive networks: every phrase of a parsed sentence judged.

Trained on the classes of all nodes from random vectors; accuracy on the roots of the 2,210 test
sentences in five steps, and of the 1,821 that are not neutral in two, from a second network that
was given no neutral node. Weights are averaged over the steps; nothing is chosen by the test.

Published without pretrained vectors: RNTN 45.7 and 85.4, plain recursive network 43.2 and 82.4
(2013, Socher et al., EMNLP); with pretrained vectors: Tree-LSTM 51.0 and 88.0 (2015, Tai et al.).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from castalia.data import Tree
from castalia.data.text.text_datasets import load_text
from castalia.models.sequence import RecursiveNetwork
from castalia.train import Training
from evidence.rows import keep, print_table, spread

NEUTRAL = 2
SETTINGS: dict[str, dict[str, Any]] = {
    "lstm": {"hidden": 50, "dim": 50, "dropout": 0.5, "lr": 3e-3},
    "tanh": {"hidden": 50, "dim": 50, "dropout": 0.3, "lr": 2e-3},
}


def load(part: str, binary: bool) -> tuple[list[Tree], list[np.ndarray]]:
    """Trees and the classes of their nodes; in two steps, neutral ones have none."""
    trees = [Tree.parse(line.lower()) for line in load_text("sst-trees", part).split("\n")]
    if not binary:
        return trees, [tree.labels for tree in trees]
    judged = [tree for tree in trees if tree.label != NEUTRAL]
    return judged, [_sides(tree.labels) for tree in judged]


def _sides(labels: np.ndarray) -> np.ndarray:
    return np.array([None if x == NEUTRAL else int(x > NEUTRAL) for x in labels], dtype=object)


def accuracy(composition: str, binary: bool, seed: int, quick: bool) -> float:
    """Train on one seed and judge the test sentences, in percent."""
    train, held, test = (load(part, binary) for part in ("train", "validation", "test"))
    train = (train[0][::50], train[1][::50]) if quick else train
    model = RecursiveNetwork(
        **SETTINGS[composition],
        composition=composition,
        rare=2,
        epochs=1 if quick else 5,
        batch_size=32,
        random_state=seed,
        training=Training(
            optimizer="adamw",
            weight_decay=0.05,
            schedule="cosine",
            average="ema",
            validation=held,
            clip=1.0,
            verbose=False,
        ),
    )
    model.fit(*train)
    found = 100 * model.score(test[0], [labels[0] for labels in test[1]])
    losses = [round(line["val_loss"], 4) for line in model.history_]
    keep("trees", network=composition, steps=2 if binary else 5, seed=seed, right=found, val=losses)
    return found


def run(quick: bool = False) -> None:
    """Train both compositions in five and in two steps, with three seeds."""
    seeds = range(1 if quick else 3)
    rows = []
    for composition in SETTINGS:
        row = [f"RecursiveNetwork, {composition}"]
        for binary in (False, True):
            found = [accuracy(composition, binary, seed, quick) for seed in seeds]
            row.append(f"{spread(found, 2)} %")
        rows.append(row)
    rows.append(["plain recursive network, published", "43.2 %", "82.4 %"])
    rows.append(["RNTN, published", "45.7 %", "85.4 %"])
    print_table("Sentiment Treebank, trees", ["network", "five steps", "two steps"], rows)
