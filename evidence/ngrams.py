"""n-gram language models on the Penn Treebank and WikiText-2, every line a text.

Perplexity is over all words and one end sign a line, unknown words included as the data write them:
82,430 predictions in the test set of the Penn Treebank, 245,569 in that of WikiText-2. Weights of
the linear interpolation are fitted on a tenth of the training lines; nothing is chosen on the
validation sets.
"""

from __future__ import annotations

import time

from castalia.data.text.text_datasets import load_text
from castalia.models.language import NGramLanguageModel
from evidence.rows import print_table

SETTINGS = {
    "Kneser–Ney, modified": {"smoothing": "kneser-ney"},
    "Kneser–Ney, one discount": {"smoothing": "kneser-ney", "modified": False},
    "linear, fitted weights": {"smoothing": "linear"},
    "Katz": {"smoothing": "katz"},
    "stupid, normalised": {"smoothing": "stupid"},
    "add 0.01": {"smoothing": "additive", "alpha": 0.01},
}


def run(quick: bool = False) -> None:
    """Fit orders 1 to 5 with every smoothing."""
    for name, title in (("ptb", "Penn Treebank"), ("wikitext-2", "WikiText-2")):
        train, test = (load_text(name, part).split("\n") for part in ("train", "test"))
        train = train[::20] if quick else train
        rows = []
        for smoothing, settings in SETTINGS.items():
            for order in (1, 2, 3, 5) if smoothing == next(iter(SETTINGS)) else (5,):
                rows.append(measure(smoothing, order, settings, train, test))
        columns = ["smoothing", "order", "n-grams", "test perplexity", "fit", "score the test set"]
        print_table(f"n-grams: {title}", columns, rows)


def measure(
    smoothing: str, order: int, settings: dict, train: list[str], test: list[str]
) -> list[str]:
    """Fit one model and score the test set."""
    start = time.perf_counter()
    model = NGramLanguageModel(order=order, **settings).fit(train)
    fitted = time.perf_counter()
    perplexity = model.perplexity(test)
    scored = time.perf_counter()
    counts = f"{int(model.n_ngrams_.sum()):,}"
    times = f"{fitted - start:.1f} s", f"{scored - fitted:.1f} s"
    return [smoothing, str(order), counts, f"{perplexity:.1f}", *times]
