"""Universal parts of speech of the English Web Treebank, by a BiLSTM over words and letters.

Accuracy on the test words, three seeds; no pretrained vectors. UDPipe 1.2 publishes 93.5 % for this
treebank with gold tokens [from memory of its release notes]; BiLSTMs with pretrained vectors reach
some 95 to 96 %.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from castalia.models.sequence import RNNTagger
from castalia.train import Training
from evidence.rows import folder, keep, print_table, spread

SETTINGS = {
    "letters": 20,
    "dim": 128,
    "hidden": 256,
    "depth": 2,
    "dropout": 0.2,
    "lr": 2e-3,
    "batch_size": 32,
}


def load(part: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words and tags of each sentence; ranges and empty nodes are left out."""
    path: Path = folder() / "ud-english-ewt" / f"en_ewt-ud-{part}.conllu.gz"
    X, y, words, tags = [], [], [], []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        fields = line.split("\t")
        if len(fields) == 10 and fields[0].isdigit():
            words.append(fields[1])
            tags.append(fields[3])
        elif not line and words:
            X.append(words)
            y.append(tags)
            words, tags = [], []
    return X, y


def run(quick: bool = False) -> None:
    """Train with and without letters."""
    train, dev, test = (load(part) for part in ("train", "dev", "test"))
    if quick:  # sentences with all tags
        train, test = (train[0][-500:], train[1][-500:]), (test[0][:50], test[1][:50])
        dev = test
    rows = []
    for letters in (SETTINGS["letters"], 0):
        found = []
        for seed in range(1 if quick else 3):
            training = Training(
                validation=dev, patience=4, clip=1.0, schedule="cosine", verbose=False
            )
            own = {**SETTINGS, "letters": letters, "epochs": 1 if quick else 15}
            model = RNNTagger(**own, random_state=seed, training=training).fit(*train)
            found.append(100 * model.score(*test))
            keep("parts_of_speech", letters=letters, seed=seed, accuracy=found[-1])
        rows.append(["words and letters" if letters else "words", f"{spread(found, 2)} %"])
    print_table("English Web Treebank, parts of speech", ["network reads", "test accuracy"], rows)
