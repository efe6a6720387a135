"""Omniglot: characters known by one drawing or five, by a prototypical network.

The split of Vinyals et al. (2016): 4,800 classes to train on and 1,692 to test with, where turns of
a character by 90 degrees are classes of their own. Accuracy over 1,000 episodes of 5 or 20 test
classes with 15 queries each. Published (2017, Snell, Swersky, Zemel, arXiv 1703.05175): 98.8 /
99.7 % with 1 / 5 shots of 5 classes, 96.0 % with 1 shot of 20.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import torch

from castalia.models.meta import ProtoNet
from castalia.models.meta.prototype_network import prototype_scores
from castalia.models.vision import ConvNetClassifier
from castalia.train import Training
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table

EPISODES, QUERIES = 1000, 15
PUBLISHED = {(5, 1): "98.8", (5, 5): "99.7", (20, 1): "96.0"}


def classes(part: str) -> np.ndarray:
    """Return the drawings of every class of a part of the split, (K, 20, 28, 28) bytes."""
    home = folder() / "omniglot"
    data = np.load(home / "omniglot28.npz")
    names = [str(name) for name in data["alphabet_names"]]
    marks = zip(data["alphabet"], data["character_in_alphabet"], strict=True)
    place: dict[tuple[str, int], list[int]] = {}
    for i, (alphabet, character) in enumerate(marks):
        place.setdefault((names[alphabet], int(character)), []).append(i)
    lines = gzip.decompress((home / f"vinyals_split_{part}.txt.gz").read_bytes()).decode().split()
    found = []
    for line in lines:
        alphabet, character, turn = line.split("/")
        rows = place[alphabet, int(character.removeprefix("character"))]
        found.append(np.rot90(data["images"][rows], int(turn[3:]) // 90, axes=(1, 2)))
    return (255 * np.stack(found)).astype(np.uint8)


def network(ways: int, shots: int, epochs: int, seed: int) -> ProtoNet:
    """Four convolutions of 64 channels, as in the paper; 60 classes an episode."""
    training = Training(schedule="cosine", validation=0)
    net = ConvNetClassifier(widths=(64, 64, 64, 64), convs=1, training=training)
    return ProtoNet(
        net, dim=64, ways=ways, shots=shots, queries=5, epochs=epochs, lr=1e-3, random_state=seed
    )


def accuracy(codes: torch.Tensor, ways: int, shots: int, seed: int = 0) -> tuple[float, float]:
    """Return percent right over episodes, and 95 % of its spread, from codes (K, 20, E)."""
    random, right = np.random.default_rng(seed), []
    for _ in range(EPISODES):
        drawn = random.choice(len(codes), ways, replace=False)
        order = random.permutation(20)[: shots + QUERIES]
        some = codes[drawn][:, order]
        scores = prototype_scores(some[:, shots:].flatten(0, 1), some[:, :shots].mean(dim=1))
        truth = torch.arange(ways).repeat_interleave(some.shape[1] - shots)
        right.append(float((scores.argmax(dim=1) == truth).double().mean()))
    return 100 * float(np.mean(right)), 196 * float(np.std(right)) / EPISODES**0.5


def run(quick: bool = False) -> None:
    """Train one network for one shot and one for five, and try both on classes never seen."""
    train, test = classes("trainval"), classes("test")
    if quick:
        train, test = train[:60], test[:40]
    kept, epochs, rows = Kept("few_shot"), 1 if quick else 120, []
    X, y = train.reshape(-1, 28, 28), np.repeat(np.arange(len(train)), 20)
    models: dict[int, Any] = {}
    for (ways, shots), said in PUBLISHED.items():

        def work(ways: int = ways, shots: int = shots) -> dict[str, Any]:
            if shots not in models:
                models[shots] = network(10 if quick else 60, shots, epochs, 0).fit(X, y)
            codes = models[shots].encode(test.reshape(-1, 28, 28))
            mean, error = accuracy(torch.from_numpy(codes).view(len(test), 20, -1), ways, shots)
            return {"accuracy": mean, "error": error}

        found = kept.find(f"{ways} ways, {shots} shots", work)
        figure = f"{found['accuracy']:.2f} ± {found['error']:.2f}"
        rows.append([str(ways), str(shots), figure, said, f"{found['seconds']:.0f}"])
    print_table("Omniglot, few shots", ["ways", "shots", "ProtoNet, %", "published", "s"], rows)
