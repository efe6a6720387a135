"""Processes that train together: their memory, their exchange, and what is left when one is killed.

``python -m evidence.ranks NAME…``, of the names of ``PARTS``: ``memory`` (``SIZE="dim depth"``),
``exchange``, ``restarts`` (``KILLS=60``).
"""

from __future__ import annotations

import json
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


def exchange() -> None:
    """Time how long a step waits for gradients, sent during the backward pass and after it."""
    found, sums = [], set()
    width = os.environ.get("WIDTH", "2048")
    for way in ("after", "during"):
        lines = [json.loads(line) for line in two(SENT, way, width)]
        step, waited = (max(line[i] for line in lines) for i in (0, 1))
        sums |= {line[2] for line in lines}
        found.append([way, f"{1e3 * step:.0f}", f"{1e3 * waited:.0f}", f"{waited / step:.0%}"])
    columns = ("gradients are sent", "ms a step", "ms of it waiting", "share")
    print_table(f"Two processes, six layers of {width} x {width} by gloo", columns, found)
    print(f"\nsums of the weights: {sorted(sums)}")


# ---- ranks that are killed -------------------------------------------------------------------

LIFE = """
import json, os, sys, time
from pathlib import Path
import numpy as np
import castalia
from castalia import MLPRegressor, Training
home = Path(sys.argv[1])
class Slow(castalia.Callback):
    def on_batch_end(self, state):
        time.sleep(0.01)
source = np.random.default_rng(0)
X = source.normal(size=(640, 8))
training = Training(run=home / "run", checkpoint_every=5, verbose=False, watch=False,
    validation=0, callbacks=[Slow()], precision="float64", strategy="ddp")
model = MLPRegressor(hidden=(16,), epochs=int(sys.argv[2]), batch_size=32, random_state=0,
    training=training).fit(X, X[:, 0] * X[:, 1])
if os.environ["RANK"] == "0":
    weights = [w.tolist() for w in model.module_.state_dict().values()]
    lines = [[line["epoch"], line["loss"]] for line in model.history_]
    (home / "found.json").write_text(json.dumps([weights, lines]))
"""


def restarts() -> None:
    """Kill a rank under torchrun at random instants; torchrun starts all ranks again."""
    kills = int(os.environ.get("KILLS", 60))
    seconds, epochs = float(os.environ.get("SECONDS_BETWEEN", 4)), str(max(20, 6 * kills))
    source, began = random.Random(0), time.monotonic()
    limit = float(os.environ.get("LIMIT", 1e9))
    with tempfile.TemporaryDirectory() as name:
        home, script = Path(name), Path(name) / "life.py"
        script.write_text(LIFE)
        for each in ("alone", "killed"):
            (home / each).mkdir()
        alone = _torchrun(script, home / "alone", epochs, 0)
        running = _torchrun(script, home / "killed", epochs, 10 * kills)
        done = early = 0
        while running.poll() is None and done < kills and time.monotonic() - began < limit:
            time.sleep(source.expovariate(1 / seconds))
            ranks = _ranks(running.pid)
            if ranks:
                early += not (home / "killed" / "run").exists()
                os.kill(source.choice(ranks), signal.SIGKILL)
                done += 1
                print(
                    f"{time.monotonic() - began:.0f} s: {done} kills", file=sys.stderr, flush=True
                )
        codes = [running.wait(), alone.wait()]
        found = [
            json.loads((home / each / "found.json").read_text()) for each in ("alone", "killed")
        ]
    equal = "yes" if found[0] == found[1] else "NO"
    once = [line[0] for line in found[1][1]] == [line[0] for line in found[0][1]]
    row = [str(done), epochs, equal, "yes" if once else "NO", str(codes), str(early)]
    columns = ("kills", "epochs", "equal to the training alone", "each epoch once", "exit", "early")
    print_table("Ranks under torchrun, killed", columns, [row])


def _torchrun(script: Path, home: Path, epochs: str, restarts: int) -> subprocess.Popen[bytes]:
    words = ["--nproc-per-node", "2", "--max-restarts", str(restarts), "--rdzv-backend", "c10d"]
    words += ["--rdzv-endpoint", "localhost:0", "--monitor-interval", "0.1"]
    command = [sys.executable, "-m", "torch.distributed.run", *words, str(script)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.Popen(
        [*command, str(home), epochs], env=environment, stderr=subprocess.DEVNULL
    )


def _ranks(launcher: int) -> list[int]:
    """Return the processes that a launcher has started."""
    found = Path(f"/proc/{launcher}/task/{launcher}/children")
    threads = Path(f"/proc/{launcher}/task").glob("*/children") if found.exists() else []
    children = [int(word) for path in threads for word in path.read_text().split()]
    return [child for child in children if _is_rank(child)]


def _is_rank(process: int) -> bool:
    try:
        return b"life.py" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


PARTS: dict[str, Callable[[], Any]] = {
    "memory": memory,
    "exchange": exchange,
    "restarts": restarts,
}

if __name__ == "__main__":
    for asked in sys.argv[1:] or list(PARTS):
        PARTS[asked]()
