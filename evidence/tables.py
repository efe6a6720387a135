"""Tables with missing values and categories: our perceptron beside a linear model and boosting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from castalia.data import Dataset, read
from castalia.models.dense import MLPClassifier
from castalia.train import Training
from evidence.rows import folder, print_table, spread

SEEDS = 5
TITANIC = ["Pclass", "Sex", "Age", "SibSp", "Parch", "Fare", "Embarked"]
PENGUINS = ["island", "bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex"]
TABLES = {  # file, target, columns used: neither names nor identifiers nor, for penguins, the year
    "titanic": ("titanic.csv", "Survived", TITANIC),
    "penguins": ("penguins.csv", "species", PENGUINS),
}


def run(quick: bool = False) -> None:
    """Test accuracy over seeds; each seed draws the split (80/20, stratified) and the weights."""
    seeds, rows = range(2 if quick else SEEDS), []
    for name, (file, target, columns) in TABLES.items():
        data = read(folder() / "tables" / file)
        X, y = data.select(columns), data.column(target)
        models: dict[str, Callable[[int], Any]] = {
            "guessing the commonest": lambda seed: None,
            "logistic regression": lambda seed, X=X: linear(X),
            "gradient boosting": lambda seed, X=X: boosting(X, seed),
            "MLPClassifier": lambda seed: perceptron(seed, epochs=20 if quick else 200),
        }
        for model, make in models.items():
            found = [accuracy(make(seed), X, y, seed) for seed in seeds]
            rows.append([name, model, spread(found), str(len(found))])
    columns = ["table", "model", "test accuracy, mean ± std", "seeds"]
    print_table("Tables", columns, rows)


def accuracy(model: Any, X: Dataset, y: np.ndarray, seed: int) -> float:
    """Accuracy on a fifth of the rows."""
    kept, held = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    if model is None:
        values, counts = np.unique(y[kept], return_counts=True)
        return float(np.mean(y[held] == values[counts.argmax()]))
    ours = isinstance(model, MLPClassifier)
    inputs = (X.take(kept), X.take(held)) if ours else (objects(X)[kept], objects(X)[held])
    return float(model.fit(inputs[0], y[kept]).score(inputs[1], y[held]))


def perceptron(seed: int, epochs: int) -> MLPClassifier:
    """Our network; it imputes, scales and embeds by itself, and stops early."""
    training = Training(patience=20, weight_decay=1e-3, verbose=False)
    return MLPClassifier(
        epochs=epochs, batch_size=32, dropout=0.2, training=training, random_state=seed
    )


def linear(X: Dataset) -> Any:
    """Logistic regression after the usual preparation."""
    words, numbers = kinds(X)
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), words),
    )
    return make_pipeline(prepare, LogisticRegression(max_iter=1000))


def boosting(X: Dataset, seed: int) -> Any:
    """Gradient boosting; it takes missing values as they are."""
    words, _ = kinds(X)
    prepare = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words),
        remainder="passthrough",
    )
    return make_pipeline(prepare, HistGradientBoostingClassifier(random_state=seed))


def kinds(X: Dataset) -> tuple[list[int], list[int]]:
    """Positions of the columns of words, and of those of numbers."""
    words = [i for i, name in enumerate(X.columns) if X.column(name).dtype.kind in "OUT"]
    return words, [i for i in range(len(X.columns)) if i not in words]


def objects(X: Dataset) -> np.ndarray:
    """The table as an array of Python values, NaN for missing numbers: (n, columns)."""
    found = np.empty((len(X), len(X.columns)), dtype=object)
    for i, name in enumerate(X.columns):
        column = X.column(name)
        missing = "" if column.dtype.kind in "OUT" else np.nan
        found[:, i] = [missing if value is None else value for value in column.tolist()]
    return found
