"""Word vectors from the first 30 MB of text8 (5.1 million words), judged by people's judgements.

Spearman's correlation on WordSim-353, MEN and SimLex-999, and the share of word2vec's analogies
(lower case) answered right among all known words. Settings are the usual ones (dim 100, window 5,
five noise words, five epochs); nothing is chosen on the judgements.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from castalia.data.text.text_datasets import load_text
from castalia.data.word_vectors import read_analogies, read_similarities
from castalia.models.language import FastText, GloVe, Word2Vec
from evidence.rows import folder, print_table

SETTINGS: dict[str, tuple[type, dict[str, Any]]] = {
    "skip-gram, negative sampling": (Word2Vec, {}),
    "skip-gram, hierarchical softmax": (Word2Vec, {"output": "hierarchical"}),
    "CBOW, negative sampling": (Word2Vec, {"model": "cbow"}),
    "FastText, skip-gram": (FastText, {}),
    "GloVe": (GloVe, {}),
}
JUDGED = {
    "WordSim-353": "EN-WS-353-ALL.txt",
    "MEN": "EN-MEN-TR-3k.txt",
    "SimLex-999": "EN-SIMLEX-999.txt",
}


def run(quick: bool = False) -> None:
    """Fit every kind on the CPU and, where there is one, on the GPU."""
    words = load_text("text8").split()
    words = words[: len(words) // 20] if quick else words
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    rows = [
        measure(name, cls, {**settings, **({"epochs": 1} if quick else {})}, device, words)
        for device in devices
        for name, (cls, settings) in SETTINGS.items()
    ]
    columns = ["vectors", "device", *JUDGED, "analogies", "asked", "fit", "words/s"]
    print_table(f"word vectors: {len(words):,} words of text8", columns, rows)


def measure(
    name: str, cls: type, settings: dict[str, Any], device: str, words: list[str]
) -> list[str]:
    """Fit one kind and judge it."""
    texts = [words[i : i + 1000] for i in range(0, len(words), 1000)]
    start = time.perf_counter()
    model = cls(device=device, random_state=0, **settings).fit(texts)
    seconds = time.perf_counter() - start
    data = folder() / "word-vectors"
    scores = [
        model.evaluate_similarity(read_similarities(data / file))["correlation"]
        for file in JUDGED.values()
    ]
    asked = model.evaluate_analogies(read_analogies(data / "questions-words.txt.gz"))
    speed = len(words) * model.epochs / seconds
    return [
        name,
        device,
        *(f"{score:.3f}" for score in scores),
        f"{asked['total']:.1%}",
        f"{asked['questions']:,.0f}",
        f"{seconds:.1f} s",
        f"{speed:,.0f}",
    ]
