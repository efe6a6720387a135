"""Processes that train together: their memory, their exchange, and what is left when one is killed.

``python -m evidence.ranks NAME…``, of the names of ``PARTS``: ``memory`` (``SIZE="dim depth"``),
``exchange``, ``restarts`` (``KILLS=60``, ``PAUSE=1`` seconds between two on average).
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evidence.rows import print_table

GB = 1e9
THREADS = os.environ.get("THREADS", "1")


def start(program: str, words: tuple[str, ...], rank: int, port: int) -> subprocess.Popen[str]:
    """Start one of two processes."""
    meeting = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    ranks = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "OMP_NUM_THREADS": THREADS}
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(
        command, env={**os.environ, **meeting, **ranks}, stdout=subprocess.PIPE, text=True
    )


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def two(program: str, *words: str) -> list[str]:
    """Run a program in two processes that meet; return the last line of each."""
    port = free_port()
    running = [start(program, words, rank, port) for rank in range(2)]
    said = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise RuntimeError(f"{words}: {[process.returncode for process in running]}")
    return [text.strip().splitlines()[-1] for text in said]


# ---- memory ----------------------------------------------------------------------------------

HELD = """
import os, resource, sys, time
from pathlib import Path
import torch
import castalia
from castalia import Training
from castalia.models.language import GPTLanguageModel
path, strategy, dim, depth = sys.argv[1:]
def held():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
class Few(castalia.Callback):
    def on_batch_start(self, state):
        if state.total == 0:
            self.built, self.begun = held(), time.perf_counter()
    def on_batch_end(self, state):
        if state.total == 2:
            count = sum(p.numel() for p in state.net.parameters())
            seconds = (time.perf_counter() - self.begun) / 2
            print(count, self.built, held(), seconds, flush=True)
            os._exit(0)
training = Training(callbacks=[Few()], watch=False, verbose=False, validation=0, device="cpu",
    strategy=strategy, precision="float32")
GPTLanguageModel(context=128, dim=int(dim), depth=int(depth), heads=16, batch_size=2,
    random_state=0, training=training).fit(Path(path))
"""


def memory() -> None:
    """Measure the peak memory of each of two processes, on CPUs and by gloo."""
    from evidence.scale import write_text

    size = tuple(os.environ.get("SIZE", "2048 24").split())
    found = []
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "corpus.txt"
        write_text(path, 3_000_000)
        os.environ["CASTALIA_DATA"] = home
        for strategy in ("fsdp", "ddp"):
            for rank, line in enumerate(two(HELD, str(path), strategy, *size)):
                count, built, peak, seconds = map(float, line.split())
                held = (f"{built / GB:.2f} GB", f"{peak / GB:.2f} GB", f"{seconds:.1f}")
                found.append([strategy, str(rank), *held])
                print(*found[-1], f"{count / 1e9:.3f} B", file=sys.stderr, flush=True)
    columns = ("strategy", "process", "before the first step", "peak", "s a step")
    print_table(f"Two processes at {count / 1e9:.2f} B parameters", columns, found)


# ---- the exchange of gradients ---------------------------------------------------------------

SENT = """
import json, statistics, sys, time
import torch
import castalia
from castalia import MLPRegressor, Training
from castalia.train import gradient_exchange
from castalia.train.gradient_exchange import GradientExchange
way, width = sys.argv[1], int(sys.argv[2])
if way == "after":
    gradient_exchange.BUCKET = 1 << 40
waited, finish = [], GradientExchange.finish
def timed(self):
    begun = time.perf_counter()
    finish(self)
    waited.append(time.perf_counter() - begun)
GradientExchange.finish = timed
class Steps(castalia.Callback):
    def on_batch_start(self, state):
        self.begun = time.perf_counter()
    def on_batch_end(self, state):
        steps.append(time.perf_counter() - self.begun)
steps = []
X = torch.randn(512 * 12, width, generator=torch.Generator().manual_seed(0)).numpy()
model = MLPRegressor(hidden=(width,) * 6, epochs=1, batch_size=512, random_state=0)
model.training = Training(callbacks=[Steps()], watch=False, verbose=False, validation=0,
    device="cpu", precision="float32", optimizer="sgd")
model.fit(X, X[:, 0])
weights = float(sum(p.double().abs().sum() for p in model.module_.parameters()))
print(json.dumps([statistics.median(steps[2:]), statistics.median(waited[2:]), weights]))
"""

TORCH = """
import json, statistics, sys, time
import torch
from torch import nn
width = int(sys.argv[2])
torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
layers = [layer for _ in range(6) for layer in (nn.Linear(width, width), nn.ReLU())]
net = nn.parallel.DistributedDataParallel(nn.Sequential(*layers, nn.Linear(width, 1)))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
X = torch.randn(512 * 12, width)
steps = []
for x in X.split(512):
    begun, part = time.perf_counter(), x.tensor_split(2)[torch.distributed.get_rank()]
    optimizer.zero_grad()
    (net(part) - part[:, :1]).square().mean().backward()
    optimizer.step()
    steps.append(time.perf_counter() - begun)
print(json.dumps([statistics.median(steps[2:])]))
"""


def exchange() -> None:
    """Time how long a step waits for gradients, sent during the backward pass and after it.

    Beside them a plain loop with torch's ``DistributedDataParallel``.
    """
    found, sums = [], set()
    width = os.environ.get("WIDTH", "2048")
    for way in ("after", "during"):
        lines = [json.loads(line) for line in two(SENT, way, width)]
        step, waited = (max(line[i] for line in lines) for i in (0, 1))
        sums |= {line[2] for line in lines}
        found.append([way, f"{1e3 * step:.0f}", f"{1e3 * waited:.0f}", f"{waited / step:.0%}"])
    step = max(json.loads(line)[0] for line in two(TORCH, "", width))
    found.append(["by torch's DDP", f"{1e3 * step:.0f}", "", ""])
    columns = ("gradients are sent", "ms a step", "ms of it waiting", "share")
    print_table(f"Two processes, six layers of {width} x {width} by gloo", columns, found)
    print(f"\nsums of the weights: {sorted(sums)}")


# ---- ranks that are killed -------------------------------------------------------------------


def life(home: str, epochs: int) -> None:
    """Train as one of the ranks; the first writes what came out."""
    import numpy as np

    from castalia import Callback, MLPRegressor, Training

    class Slow(Callback):
        def on_batch_end(self, state: Any) -> None:
            time.sleep(0.01)

    X = np.random.default_rng(0).normal(size=(640, 8))
    training = Training(run=f"{home}/run", checkpoint_every=5, callbacks=[Slow()], strategy="ddp")
    training.set_params(verbose=False, watch=False, validation=0, precision="float64")
    training.set_params(device="cpu")
    model = MLPRegressor(hidden=(16,), epochs=epochs, batch_size=32, random_state=0)
    model.set_params(training=training).fit(X, X[:, 0] * X[:, 1])
    if os.environ["RANK"] == "0":
        weights = [w.tolist() for w in model.module_.state_dict().values()]
        lines = [[line["epoch"], line["loss"]] for line in model.history_]
        Path(home, "found.json").write_text(json.dumps([weights, lines]))


def restarts() -> None:
    """Kill a rank at random instants; torchrun's agent starts all of them again."""
    kills, pause = int(os.environ.get("KILLS", 60)), float(os.environ.get("PAUSE", 1))
    epochs = int(os.environ.get("EPOCHS", 5 * kills))
    source, began, done = random.Random(0), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as name:
        homes = [Path(name) / each for each in ("alone", "killed")]
        for home in homes:
            home.mkdir()
        alone = _agent(homes[0], epochs, 0)
        running = _agent(homes[1], epochs, 10 * kills)
        while done < kills and not _ended(running):
            time.sleep(source.expovariate(1 / pause))
            if ranks := _ranks(running):
                os.kill(source.choice(ranks), signal.SIGKILL)
                done += 1
                print(f"{time.monotonic() - began:.0f} s: {done}", file=sys.stderr, flush=True)
        for process in (alone, running):
            os.waitpid(process, 0)
        one, other = (json.loads((home / "found.json").read_text()) for home in homes)
    seconds = f"{time.monotonic() - began:.0f}"
    lines = [[line[0] for line in found[1]] for found in (one, other)]
    once = "yes" if lines[0] == lines[1] else "NO"
    row = [str(done), str(epochs), "yes" if one == other else "NO", once, seconds]
    columns = ("kills", "epochs", "weights and losses equal", "each epoch once", "s")
    print_table("Ranks under torchrun's agent, killed", columns, [row])


def _agent(home: Path, epochs: int, restarts: int) -> int:
    """Start torchrun's agent, which forks two ranks, so that a restart imports nothing again."""
    import castalia.models.dense  # noqa: F401  before the fork

    process = os.fork()
    if process:
        return process
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ["OMP_NUM_THREADS"] = "1"
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # kills are no news
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=2,
        run_id=home.name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        monitor_interval=0.1,
        start_method="fork",
    )
    code = 1
    try:
        elastic_launch(config, life)(str(home), epochs)
        code = 0
    finally:
        os._exit(code)


def _ended(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def _ranks(agent: int) -> list[int]:
    """Return the processes that an agent has forked."""
    found = []
    for path in Path(f"/proc/{agent}/task").glob("*/children"):
        found += [int(word) for word in path.read_text().split()]
    return found


PARTS: dict[str, Callable[[], Any]] = {
    "memory": memory,
    "exchange": exchange,
    "restarts": restarts,
}

if __name__ == "__main__":
    for asked in sys.argv[1:] or list(PARTS):
        PARTS[asked]()
