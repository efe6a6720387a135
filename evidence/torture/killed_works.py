"""What is done while processes are killed: small works that go on where a killed one stopped."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from castalia import DeepEnsemble, MLPClassifier, MLPRegressor, Training, Word2Vec, load, save
from castalia.cli import main
from castalia.method import predict as predict_rows
from castalia.optim import cosine, warmup
from castalia.train import RunStore
from castalia.train.checkpoint import read_checkpoint

__all__ = ["WORKS", "Work", "warm_up"]

SAVES = 12
ROWS = 400


def _nothing(place: Path) -> None:
    pass


@dataclass(frozen=True)
class Work:
    """Something that can be done again in the folder where it was killed.

    Attributes
    ----------
    do
        The work; returns its result in plain values, the same whatever happened before.
    check
        Raises where a file under its final name is broken, or a dead process is called running.
    prepare
        Makes what the work needs.
    processes
        How many do it together.
    """

    name: str
    do: Callable[[Path], Any]
    check: Callable[[Path], None] = _nothing
    prepare: Callable[[Path], None] = _nothing
    processes: int = 1


def table() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    X = chance.normal(size=(160, 4))
    return X, (X[:, 0] * X[:, 1] + 0.3 * chance.normal(size=160) > 0).astype(int)


def learnt(model: Any) -> Any:
    """Return weights and history, without the seconds."""
    history = [{k: v for k, v in line.items() if k != "seconds"} for line in model.history_]
    return {
        "weights": {k: v.tolist() for k, v in model.module_.state_dict().items()},
        "history": history,
    }


# -- trainings ------------------------------------------------------------------------------------


def classifier(run: Path | None, **settings: Any) -> MLPClassifier:
    training = Training(
        run=run,
        average=("ema", 0.9),
        patience=8,
        schedule=warmup(cosine(), steps=0.2),
        clip=1.0,
        validation=0.2,
        optimizer="adamw",
        **settings,
    )
    return MLPClassifier(
        hidden=(8, 6), dropout=0.2, epochs=10, batch_size=32, random_state=3, training=training
    )


def train_by_epochs(place: Path) -> Any:
    return learnt(classifier(place / "runs" / "a").fit(*table()))


def train_by_steps(place: Path) -> Any:
    X, y = table()
    training = Training(run=place / "runs" / "a", checkpoint_every=3, watch=True)
    model = MLPRegressor(
        hidden=(6,), epochs=6, batch_size=32, lr=0.01, random_state=1, training=training
    )
    return learnt(model.fit(X, y + X[:, 2]))


def train_together(place: Path) -> Any:
    return learnt(
        classifier(place / "runs" / "a", strategy="ddp", checkpoint_every=4).fit(*table())
    )


def train_words(place: Path) -> Any:
    chance = np.random.default_rng(1)
    texts = [list(map(str, chance.integers(0, 20, size=12))) for _ in range(60)]
    training = Training(run=place / "runs" / "a")
    model = Word2Vec(dim=8, epochs=5, random_state=0, min_count=1, training=training)
    return model.fit(texts).vectors_.tolist()


def train_members(place: Path) -> Any:
    member = MLPClassifier(
        hidden=(6,),
        epochs=4,
        batch_size=32,
        training=Training(run=place / "runs" / "member", validation=0.2),
    )
    X, y = table()
    model = DeepEnsemble(estimator=member, members=3, random_state=0).fit(X, y)
    return model.predict_proba(X).tolist()


def check_runs(place: Path) -> None:
    """Read every checkpoint under a final name, every run and every curve."""
    for path in (place / "runs").rglob("step-*.safetensors"):
        if re.fullmatch(r"step-\d+\.safetensors", path.name):
            read_checkpoint(path)
    for path in (place / "runs").rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text())
    if not (place / "runs" / "castalia.db").exists():
        return
    with RunStore(place / "runs") as store:
        for run in store.runs():
            if run["status"] == "running":
                raise AssertionError(f"{run['name']} is called running, and nobody is alive")
            steps, _ = store.open_run(run["name"], run["fingerprint"], {}).metric("loss")
            if steps != sorted(set(steps)):
                raise AssertionError(f"steps of {run['name']}: {steps}")


# -- saves ----------------------------------------------------------------------------------------

MODELS: dict[str, Any] = {}


def numbered(kind: str, number: int) -> Any:
    """Return a fitted model that has a number in its parameters and in all its weights."""
    model = MODELS[kind]
    network = model if kind == "model" else model.steps[-1][1]
    network.random_state = number
    with torch.no_grad():
        for weight in network.module_.parameters():
            weight.fill_(number)
    return model


def saver(kind: str) -> Callable[[Path], Any]:
    def do(place: Path) -> Any:
        done = os.open(place / "acknowledged", os.O_RDWR | os.O_CREAT)
        for number in range(acknowledged(place) + 1, SAVES):
            save(numbered(kind, number), place / "model")
            os.pwrite(done, f"{number:4d}".encode(), 0)
        return number_of(place)

    return do


def acknowledged(place: Path) -> int:
    try:
        return int((place / "acknowledged").read_text())
    except (FileNotFoundError, ValueError):
        return -1


def number_of(place: Path) -> int:
    model = load(place / "model")
    network = getattr(model, "steps", [(None, model)])[-1][1]
    values = {float(v) for w in network.module_.parameters() for v in w.detach().unique()}
    if values != {float(network.random_state)}:
        raise AssertionError(f"a mixture of models: {values} and {network.random_state}")
    return int(network.random_state)


def check_saved(place: Path) -> None:
    """The model under its name is the last one that was said to be saved, or the one after it."""
    said = acknowledged(place)
    if said < 0 and not (place / "model").exists():
        return
    if number_of(place) not in (said, said + 1):
        raise AssertionError(f"saved {said}, but there is {number_of(place)}")


# -- predictions ----------------------------------------------------------------------------------


def prepare_predictions(place: Path) -> None:
    save(numbered("model", 1), place / "model")
    X = np.random.default_rng(2).normal(size=(ROWS, 4))
    lines = [",".join(f"{value:.4f}" for value in row) for row in X]
    (place / "rows.csv").write_text("\n".join(["a,b,c,d", *lines]) + "\n")


def predict(place: Path) -> Any:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    words = ["predict", str(place / "model"), str(place / "rows.csv")]
    sys.argv = ["castalia", *words, "--out", str(place / "out.csv")]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    return hashlib.sha256((place / "out.csv").read_bytes()).hexdigest()


def check_predictions(place: Path) -> None:
    if (place / "out.csv").exists():
        text = (place / "out.csv").read_text()
        if len(text.splitlines()) != ROWS + 1 or not text.endswith("\n"):
            raise AssertionError("half of the predictions lie under the final name")


# -- all of them ----------------------------------------------------------------------------------

WORKS = (
    Work("training", train_by_epochs, check_runs),
    Work("training, checkpoints by steps", train_by_steps, check_runs),
    Work("training of word vectors", train_words, check_runs),
    Work("training of two processes", train_together, check_runs, processes=2),
    Work("ensemble", train_members, check_runs),
    Work("save", saver("model"), check_saved),
    Work("save of a pipeline", saver("pipeline"), check_saved),
    Work("prediction", predict, check_predictions, prepare_predictions),
)


def warm_up() -> None:
    """Do everything once, so that children find every module imported."""
    torch.set_num_threads(1)
    X, y = table()
    names = [f"{name}" for name in "abcd"]
    MODELS["model"] = classifier(None).fit(_frame(X, names), y)
    MODELS["pipeline"] = make_pipeline(StandardScaler(), classifier(None)).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        for work in WORKS:
            place = Path(folder) / work.name
            place.mkdir()
            work.prepare(place)
            if work.processes == 1 and work.do is not predict:
                work.do(place)
        predict_rows(place / "model", str(place / "rows.csv"))


def _frame(X: np.ndarray, names: list[str]) -> Any:
    import narwhals as nw
    import pyarrow as pa

    return nw.from_native(pa.table(dict(zip(names, X.T, strict=True)))).to_native()
