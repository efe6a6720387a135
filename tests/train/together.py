"""The trainings behind ``test_distributed.py``: two gloo processes, and one on the whole batch.

``python together.py FOLDER`` runs every case alone, forks two processes that run it together, and
writes each one's weights to FOLDER as JSON. The two also run the command line.
"""

import faulthandler
import json
import os
import sys
import time
import traceback
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist
import torch.distributed.checkpoint  # what fsdp imports, once and not in each of fifteen processes
from typer.testing import CliRunner

from castalia import Callback, MLPClassifier, MLPRegressor, Training
from castalia.base.joint_fit import fit_rank
from castalia.catalog import SYSTEMS
from castalia.cli.app import app
from castalia.errors import Diverged, InvalidData, InvalidParameter, TrainingWarning
from castalia.evaluate.displays import svg
from castalia.method.kinds import Table
from castalia.objectives import SquaredError
from castalia.optim import plateau, warmup
from castalia.testing import train_tensors
from castalia.testing.contract import _some, make
from castalia.train import gradient_exchange

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(49, 3))  # batches of 16: the last one has a single row
Y = X[:, 0] - X[:, 1] ** 2
WEIGHT = RANDOM.integers(0, 4, size=49).astype(float)
ALL = {"validation": 0, "precision": "float64"}

# case: (settings of the training, sample weights)
CASES = {
    "plain": ({}, None),
    "weights": ({}, WEIGHT),
    "accumulation": ({"accumulate": 3}, WEIGHT),
    "clipping": ({"clip": 0.05, "optimizer": "momentum"}, None),
    "values": ({"clip": ("value", 0.01), "optimizer": "momentum"}, None),
    "plateau": (
        {"validation": 0.3, "schedule": warmup(plateau(patience=1, threshold=0.5), steps=3)},
        None,
    ),
    "decay": ({"optimizer": "adamw", "weight_decay": 0.1, "schedule": "cosine"}, None),
    "validation": ({"validation": 0.3, "patience": 2}, WEIGHT),
    "average": ({"average": "ema"}, None),
}
# One of every family, and of language both directions. Each process draws the masks of BERT.
FAMILIES = ["GPTLanguageModel", "BERTClassifier", "ConvNetClassifier", "ResNetClassifier"]
FAMILIES += ["RNNClassifier", "Autoencoder", "GraphClassifier", "NodeClassifier"]
SHARDED = [case for case in CASES if case != "average"]
gradient_exchange.BUCKET = 200  # bytes: several a network, sent while others are computed


class Interrupt(Callback):
    """Ctrl-C, by default in the middle of the second epoch."""

    def __init__(self, step=6):
        self.step = step

    def on_batch_end(self, state):
        if state.total == self.step:
            raise KeyboardInterrupt


class Late(Callback):
    """The second process takes longer for a step, on its way to the exchange."""

    def __init__(self, rank):
        self.rank = rank

    def on_epoch_start(self, state):
        self.strategy = state.stepper.parts.strategy
        state.net.register_forward_pre_hook(self.wait)

    def wait(self, *_):
        if self.strategy.sharded:  # processor time is counted
            self.strategy.worked += 0.3 * self.rank
        else:
            time.sleep(0.3 * self.rank)


class Masks(Callback):
    """Notes what each process draws from torch's generator, as dropout does."""

    def on_fit_start(self, state):
        self.drawn = torch.rand(3).tolist()


class Early(Callback):
    """Counts the gradients that left before the backward pass had ended."""

    def on_epoch_end(self, state):
        exchanges = state.stepper.parts.strategy._exchanges.values()
        self.sent = [[len(each.buckets), each.early] for each in exchanges]


def fit(case, strategy, **settings):
    training, weight = CASES[case]
    model = MLPRegressor(
        hidden=(8, 5), activation="tanh", epochs=3, batch_size=16, lr=0.02, random_state=1
    )
    if case == "plateau":
        model.epochs = 4  # the rate falls at the end of the third
    model.training = Training(**{**ALL, **training, **settings}, strategy=strategy)
    return model.fit(X, Y, sample_weight=weight)


def resumed(case, strategy, folder):
    settings = {"run": folder / strategy, "checkpoint_every": 5}
    with suppress(KeyboardInterrupt):
        fit(case, strategy, **settings, callbacks=[Interrupt()])
    return fit(case, strategy, **settings)


def family(name, strategy):
    """Train the small configuration of a system, without the noise that each process draws."""
    system = SYSTEMS[name]
    model = make(system).set_params(epochs=1)
    if "dropout" in model.get_params():
        model.set_params(dropout=0.0)
    if "augment" in model.get_params():
        model.set_params(augment=None)
    known = {} if model.training is None else model.training.get_params()
    settings = {**known, **ALL, "patience": None, "watch": False, "strategy": strategy}
    X, y = _some(system)
    rows = slice(None, 24 if system.data == "image" else None)
    model.set_params(training=Training(**settings)).fit(X[rows], None if y is None else y[rows])
    weights = torch.cat([w.double().flatten() for w in model.module_.state_dict().values()])
    return {"weights": weights.tolist(), "loss": model.history_[-1]["loss"]}


def elastic(folder, name, begun):
    """Begin a run, or go on with it in another number of processes."""
    settings = {"run": folder / name, "checkpoint_every": 5}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if not begun:
            with suppress(KeyboardInterrupt):
                fit("weights", "auto", **settings, callbacks=[Interrupt()])
            return None, []
        model = fit("weights", "auto", **settings)
    words = [str(w.message) for w in seen if issubclass(w.category, TrainingWarning)]
    return record(model), words


def shards(folder, rank, step):
    """Go on with a run of divided weights up to a step, or to its end."""
    faulthandler.dump_traceback_later(120, exit=True)
    settings = {"run": folder / "shards", "checkpoint_every": 1, "callbacks": [Interrupt(step)]}
    with warnings.catch_warnings(record=True) as seen, suppress(KeyboardInterrupt):
        warnings.simplefilter("always")
        model = fit("validation", "fsdp", **settings)
        again = fit("validation", "fsdp", **{**settings, "callbacks": []})  # it is finished
        words = [str(w.message) for w in seen if issubclass(w.category, TrainingWarning)]
        found = [record(model), record(again), words]
        (folder / f"shards-{rank}.json").write_text(json.dumps(found))


def fields(folder, rank):
    """Train in four processes with each way to save memory."""
    faulthandler.dump_traceback_later(120, exit=True)
    settings = [{"shard": 2}, {"offload": True}, {"shard": 2, "offload": True, "recompute": True}]
    found = [record(fit("decay", "fsdp", **each)) for each in settings]
    try:
        fit("decay", "fsdp", shard=3)
    except InvalidParameter as error:
        (folder / f"fields-{rank}.json").write_text(json.dumps([*found, str(error)]))


def damage(folder):
    """Change a byte of the newest shards, of which each process has written a file."""
    newest = max(folder.glob("shards/checkpoints/*.shards"), key=lambda path: path.stat().st_mtime)
    first, _ = sorted(newest.iterdir())
    raw = bytearray(first.read_bytes())
    raw[-1] ^= 1
    first.write_bytes(raw)


def faults(rank):
    """Return what is said of a process that has a NaN, and of one that is slow."""
    model = MLPRegressor(hidden=(4,), epochs=1, batch_size=16, random_state=0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for strategy in ("fsdp", "ddp"):
            model.training = Training(**ALL, callbacks=[Late(rank)], watch=False, strategy=strategy)
            model.fit(X, Y)
    words = [str(w.message) for w in seen if issubclass(w.category, TrainingWarning)]
    for rows in (X[: 48 - rank], np.roll(X[:48], rank, axis=0)):  # fewer, and others
        try:
            model.fit(rows, Y[: len(rows)])
        except InvalidData as error:
            words.append(str(error))
    x, y = torch.tensor(X[:48]).float(), torch.tensor(Y[:48, None]).float()
    for strategy in ("ddp", "fsdp"):
        net = torch.nn.Linear(3, 1)
        net.register_forward_hook(lambda net, x, out: out * (torch.nan if rank else 1.0))
        try:
            train_tensors(net, SquaredError(), x, y, training=Training(strategy=strategy), epochs=2)
        except Diverged as error:
            words.append(str(error))
    return words


def command(folder, rank):
    """Fit and predict by the command line, as under torchrun; count what each process does."""
    os.chdir(folder)
    fitted, baseline = [], Table.baseline
    Table.baseline = lambda self, key, part: fitted.append(key) or baseline(self, key, part)
    svg._draw = lambda figure: '<svg width="1pt" height="1pt" viewBox="0 0 1 1"></svg>'
    options = ["--target", "y", "--set", "epochs=2", "--seeds", "1", "--preflight-seconds", "0"]
    fit_words = ["fit", "parts", *options, "--quiet", "--boosting-rounds", "3"]
    done = CliRunner().invoke(app, fit_words)
    dist.barrier()  # the first process has written the model
    words = ["predict", "castalia-runs/parts-y", "parts", "--out", "answers"]
    answered = CliRunner().invoke(app, [*words, "--model", "model"])
    Table.baseline = baseline
    return {
        "code": done.exit_code,
        "printed": done.output,
        "baselines": len(fitted),
        "answered": answered.output,
    }


def record(model):
    # Plain tensors, also after fsdp: every process holds the whole network.
    weights = {name: tensor.tolist() for name, tensor in model.module_.state_dict().items()}
    losses = [[line["loss"], line.get("val_loss")] for line in model.history_]
    return {
        "weights": weights,
        "losses": losses,
        "seed": model.settings_["seed"],
        "predictions": model.predict(X).tolist(),
    }


def normalised():
    """Train a network with buffers, which each process fills from its own rows."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1))
    x, y = torch.tensor(X[:48]).float(), torch.tensor(Y[:48, None]).float()
    training = Training(strategy="ddp", average="ema")
    train_tensors(net, SquaredError(), x, y, training=training, epochs=2)
    return {name: tensor.tolist() for name, tensor in net.state_dict().items()}


def together(folder, rank):
    faulthandler.dump_traceback_later(240, exit=True)  # a lost process must not hang the test
    found = {f"ddp {case}": record(fit(case, "ddp")) for case in CASES}
    found |= {f"fsdp {case}": record(fit(case, "fsdp")) for case in SHARDED}
    found["ddp resumed"] = record(resumed("validation", "ddp", folder))
    found["fsdp resumed"] = record(resumed("validation", "fsdp", folder))
    unseeded = MLPClassifier(hidden=(4,), epochs=2, training=Training(**ALL)).fit(X, Y > 0)
    found["unseeded"] = record(unseeded)
    found["batch norm"] = normalised()
    for name in FAMILIES:
        found[f"ddp {name}"] = family(name, "ddp")
        try:
            found[f"fsdp {name}"] = family(name, "fsdp")
        except InvalidParameter as error:
            found[f"fsdp {name}"] = str(error)
    found["grown"], warned = elastic(folder, "grown", begun=True)
    elastic(folder, "shrunk", begun=False)
    said = {**command(folder, rank), "warned": warned, "faults": faults(rank)}
    (folder / f"command-{rank}.json").write_text(json.dumps(said))
    masks, early = Masks(), Early()
    fit("plain", "ddp", callbacks=[early])
    settings = Training(**ALL, callbacks=[masks])
    MLPRegressor(hidden=(64,), dropout=0.5, epochs=1, random_state=0, training=settings).fit(X, Y)
    (folder / f"masks-{rank}.json").write_text(json.dumps([masks.drawn, early.sent]))
    (folder / f"{rank}.json").write_text(json.dumps(found))


def forked(folder, processes, work, *words):
    """Run some work in processes that meet; return their exit code."""
    children = []
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(processes)}
                meeting = f"file://{folder}/meeting-{work.__name__}-{processes}"
                dist.init_process_group(
                    "gloo", init_method=meeting, rank=rank, world_size=processes
                )
                work(folder, rank, *words)
                dist.destroy_process_group()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children)


def jointly(folder):
    """Fit files in processes that meet at a store of the one that started them."""
    store, children = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False), []
    for rank in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            with suppress(BaseException):
                faulthandler.dump_traceback_later(120, exit=True)
                model = MLPRegressor(hidden=(8, 5), activation="tanh", epochs=3, batch_size=16)
                model.set_params(lr=0.02, random_state=1, training=Training(**ALL))
                rows, named = (f"{folder}/parts/*.csv",), {"target": "y"}
                fitted = fit_rank(rank, 2, ("localhost", store.port), model, rows, named)
                found = record(fitted) if fitted is not None else [*map(str, os.environ)]
                (folder / f"jointly-{rank}.json").write_text(json.dumps(found))
            os._exit(0)
    for child in children:
        os.waitpid(child, 0)


def main(folder):
    torch.set_num_threads(1)
    alone = {case: record(fit(case, "single")) for case in CASES}
    alone["resumed"] = alone["validation"]
    alone |= {name: family(name, "single") for name in FAMILIES}
    elastic(folder, "grown", begun=False)
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(np.column_stack([X, Y]), 3)):
        pd.DataFrame(part, columns=[*"abc", "y"]).to_csv(folder / f"parts/{i}.csv", index=False)
    (folder / "alone.json").write_text(json.dumps(alone))
    code = forked(folder, 2, together)
    if code == 0:
        code = forked(folder, 4, fields)
        for processes, step in ((4, 3), (2, 6), (3, None)):
            code = max(code, forked(folder, processes, shards, step))
            damage(folder) if processes == 2 else None
        jointly(folder)
        (folder / "shrunk.json").write_text(json.dumps(elastic(folder, "shrunk", begun=True)))
    raise SystemExit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
