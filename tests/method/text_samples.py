"""Small texts, tables of texts and parallel files, and plans that take a second."""

import csv

from castalia.method import FitPlan
from castalia.testing.toys import chain, reversal, reviews

TINY_READER = {"hidden": 8, "context": 16, "epochs": 1, "batch_size": 8}
TINY_CLASSIFIER = {"dim": 8, "depth": 1, "heads": 2, "epochs": 2}
TINY_TRANSLATOR = {"dim": 8, "hidden": 8, "depth": 1, "heads": 2, "epochs": 1}


def write_book(path, sentences=150):
    """Write a running text of the six letters of a chain."""
    path.write_text("\n".join(chain(sentences)[0]) + "\n")
    return path


def write_reviews(path, n=60, **columns):
    """Write a table of short documents, their labels, and columns that are functions of a row."""
    texts, y = reviews(n)
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["review", *columns, "label"])
        for i, (text, label) in enumerate(zip(texts, y, strict=True)):
            # numbered, so that no two texts are the same
            own = [make(i) for make in columns.values()]
            out.writerow([f"{text} number {i}", *own, "praise" if label else "blame"])
    return path


def write_pairs(folder, n=60):
    """Write texts and the same texts backwards."""
    X, y = reversal(n)
    (folder / "train.en").write_text("\n".join(X) + "\n")
    (folder / "train.ne").write_text("\n".join(y) + "\n")
    return str(folder / "train.en"), str(folder / "train.ne")


def text_plan(data, settings, target=None, **others):
    quick = {"settings": settings, "seeds": 1, "preflight_seconds": 0, "boosting_rounds": 3}
    return FitPlan(data=data, target=target, **(quick | others))
