"""Write the golden models of this release. Those of older releases are never written again."""

import json
import shutil
from pathlib import Path

import castalia

HERE = Path(__file__).parent


def rows():
    """A small mixed table with gaps."""
    numbers = [[0.5, -1.0], [1.5, None], [-0.5, 2.0], [2.5, 0.0]]
    words = ["a", "b", None, "a"]
    return [
        {"x": numbers[i % 4][0] + 0.01 * i, "z": numbers[i % 4][1], "w": words[(i // 2) % 4]}
        for i in range(40)
    ]


def table(records):
    import pyarrow as pa

    return castalia.read(pa.Table.from_pylist(records))


def models():
    """One small model of each dense system, each with what it predicts for the rows."""
    X = table(rows())
    labels = ["yes" if i % 3 else "no" for i in range(40)]
    numbers = [0.1 * i for i in range(40)]
    small = {"hidden": (4,), "epochs": 3, "random_state": 0}
    yield castalia.MLPClassifier(**small).fit(X, labels), "predict_proba"
    yield castalia.MLPRegressor(**small).fit(X, numbers), "predict"
    yield castalia.DistributionRegressor(likelihood="laplace", **small).fit(X, numbers), "predict"


def main():
    home = HERE / castalia.__version__
    shutil.rmtree(home, ignore_errors=True)
    for model, method in models():
        folder = home / type(model).__name__
        castalia.save(model, folder / "model")
        answer = getattr(model, method)(table(rows())).tolist()
        expected = {"rows": rows(), "method": method, "answer": answer}
        (folder / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    main()
