"""The trainings behind ``test_distributed.py``: two gloo processes, and one on the whole batch.

``python together.py FOLDER`` runs every case alone, forks two processes that run it together, and
writes each one's weights to FOLDER as JSON.
"""

import faulthandler
import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from castalia import Callback, MLPClassifier, MLPRegressor, Training
from castalia.objectives import SquaredError
from castalia.optim import plateau, warmup
from castalia.testing import train_tensors

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
SHARDED = [case for case in CASES if case != "average"]


class Interrupt(Callback):
    """Ctrl-C in the middle of the second epoch."""

    def on_batch_end(self, state):
        if state.total == 6:
            raise KeyboardInterrupt


class Masks(Callback):
    """Notes what each process draws from torch's generator, as dropout does."""

    def on_fit_start(self, state):
        self.drawn = torch.rand(3).tolist()


def fit(case, strategy, **settings):
    training, weight = CASES[case]
    model = MLPRegressor(
        hidden=(8, 5), activation="tanh", epochs=4, batch_size=16, lr=0.02, random_state=1
    )
    model.training = Training(**{**ALL, **training, **settings}, strategy=strategy)
    return model.fit(X, Y, sample_weight=weight)


def resumed(case, strategy, folder):
    settings = {"run": folder / strategy, "checkpoint_every": 5}
    with suppress(KeyboardInterrupt):
        fit(case, strategy, **settings, callbacks=[Interrupt()])
    return fit(case, strategy, **settings)


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
    faulthandler.dump_traceback_later(200, exit=True)  # a lost process must not hang the test
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2"}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    found = {f"ddp {case}": record(fit(case, "ddp")) for case in CASES}
    found |= {f"fsdp {case}": record(fit(case, "fsdp")) for case in SHARDED}
    found["ddp resumed"] = record(resumed("validation", "ddp", folder))
    found["fsdp resumed"] = record(resumed("validation", "fsdp", folder))
    unseeded = MLPClassifier(hidden=(4,), epochs=2, training=Training(**ALL)).fit(X, Y > 0)
    found["unseeded"] = record(unseeded)
    found["batch norm"] = normalised()
    masks = Masks()
    settings = Training(**ALL, callbacks=[masks])
    MLPRegressor(hidden=(64,), dropout=0.5, epochs=1, random_state=0, training=settings).fit(X, Y)
    (folder / f"masks-{rank}.json").write_text(json.dumps(masks.drawn))
    (folder / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def main(folder):
    torch.set_num_threads(1)
    alone = {case: record(fit(case, "single")) for case in CASES}
    alone["resumed"] = alone["validation"]
    (folder / "alone.json").write_text(json.dumps(alone))
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                together(folder, rank)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    raise SystemExit(max(os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in children))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
