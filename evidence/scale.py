"""What grows with the data and with the machines: the constants behind ``docs/scale.md``.

``python -m evidence.scale NAME…``, of the names of ``PARTS``; without one, all but those that
need the extra ``cluster``, many cores, 20 GB of disk, or a GPU.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from evidence.rows import print_table

GB = 1e9
WORDS = 20_000
LATE = ("ray", "processes", "rows", "shards")  # another package, many cores, 20 GB of disk, a GPU


def run(quick: bool = False, names: tuple[str, ...] = ()) -> None:
    """Print a table a part."""
    for name in names or [name for name in PARTS if name not in LATE]:
        PARTS[name](quick)


# ---- texts larger than memory ----------------------------------------------------------------

CHILD = """
import resource, sys, time
from pathlib import Path
import castalia
from castalia import Training
from castalia.models.language import GPTLanguageModel
class Few(castalia.Callback):
    def on_batch_end(self, state):
        if state.total == 1:
            print(time.perf_counter() - begun)
        if state.total == 30:
            raise SystemExit(print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
begun = time.perf_counter()
GPTLanguageModel(context=128, dim=32, depth=1, heads=2, batch_size=8, random_state=0,
    training=Training(callbacks=[Few()], watch=False, verbose=False, validation=0.05),
).fit(Path(sys.argv[1]))
"""


def texts(quick: bool) -> None:
    """Measure the memory of a language model's training against the size of its text file."""
    rows, peaks = [], []
    asked = os.environ.get("MEGABYTES", "10 40" if quick else "30 100 300")
    sizes = [int(word) for word in asked.split()]
    for size in sizes:
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "corpus.txt"
            write_text(path, size * 1_000_000)
            said = child(CHILD, str(path), CASTALIA_DATA=home).split()
            peaks.append(float(said[1]) / 1024)
            rows.append([f"{size} MB", f"{peaks[-1]:,.0f} MB", f"{float(said[0]):.0f} s"])
            print(*rows[-1], file=sys.stderr, flush=True)
    print_table("Memory of a language model", ("text", "peak memory", "until the first step"), rows)
    if len(sizes) > 1:
        print(f"\nslope: {np.polyfit(sizes, peaks, 1)[0]:.2f} MB of memory a MB of text")


def write_text(path: Path, size: int) -> None:
    """Write lines of made-up words, frequent ones more often, up to a size."""
    source = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(source.choices(letters, k=source.randint(2, 9))) for _ in range(WORDS)]
    weights = [1 / (i + 1) for i in range(WORDS)]
    block = "".join(
        " ".join(source.choices(words, weights, k=12)) + ".\n" for _ in range(20_000)
    ).encode()
    with path.open("wb") as file:
        while file.tell() < size:
            start = source.randrange(len(block) // 2)
            file.write(block[block.index(b"\n", start) + 1 :])


def child(program: str, *words: str | Path, **environment: str) -> str:
    """Run a program in a process of its own; what it says on the way is passed on."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"it ended with {done.returncode}")
    return done.stdout


# ---- order and speed of rows on disk ---------------------------------------------------------


def order(quick: bool) -> None:
    """Compare the batches of a table sorted by class with those of a true shuffle."""
    import torch

    from castalia.data.batches import DiskRows, Samples, TensorRows

    n, size = (1 << 21) if quick else (1 << 23), 256
    x = np.zeros((n, 1), np.float32)
    y = torch.arange(n) >= n // 2
    true, rows = 0.5 / math.sqrt(size), []
    for name, held in (("memory", TensorRows(torch.from_numpy(x))), ("disk", DiskRows(_Array(x)))):
        samples = Samples(held, y)
        found = np.array(
            [
                float(window.y[index].float().mean())
                for window, order in samples.windows(0, 0)
                for index in order.split(size)
            ]
        )
        rows.append([name, f"{found.min():.3f} – {found.max():.3f}", f"{found.std() / true:.3f}"])
    print_table(
        "Batches of a sorted table",
        (f"{n:,} rows in", "share of a class in a batch", "deviation of a true one"),
        rows,
    )


class _Array:
    """An array that is read by spans, as a file is."""

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __len__(self) -> int:
        return len(self.array)

    def fill(self, found: np.ndarray, start: int) -> None:
        found[:] = self.array[start : start + len(found)]


# ---- a table larger than memory ---------------------------------------------------------------

TRAINED = """
import resource, sys, time
import torch
import castalia
from castalia import MLPClassifier, Training
torch.set_num_threads(2)
def memory():
    words = next(line for line in open("/proc/self/status") if line.startswith("RssAnon")).split()
    return int(words[1]) / 1024
class Watch(castalia.Callback):
    def on_epoch_start(self, state):
        self.begun, self.seen = time.perf_counter(), []
        print("ready", time.perf_counter() - begun, memory(), flush=True)
    def on_batch_end(self, state):
        if state.total % max(state.steps // 20, 1) == 0:
            self.seen.append(memory())
            rate = state.total * 4096 / (time.perf_counter() - self.begun)
            print(state.total * 4096, "rows,", rate, "a second", self.seen[-1], "MB",
                file=sys.stderr, flush=True)
    def on_epoch_end(self, state):
        rate = state.steps * 4096 / (time.perf_counter() - self.begun)
        print("end", rate, min(self.seen), max(self.seen))
begun = time.perf_counter()
table = castalia.read(sys.argv[1], target="y", stream=sys.argv[2] == "disk")
training = Training(callbacks=[Watch()], watch=False, verbose=False, validation=0, device="cpu")
model = MLPClassifier(hidden=(64,), epochs=1, batch_size=4096, random_state=0, training=training)
model.fit(table)
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows(quick: bool) -> None:
    """Train an epoch on Parquet files, rows on disk and, of some of them, in memory."""
    millions = int(os.environ.get("MILLIONS", 2 if quick else 100))
    with tempfile.TemporaryDirectory() as home:
        many, few = Path(home) / "many", Path(home) / "few"
        for folder in (many, few):
            folder.mkdir()
        with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
            list(pool.map(write_rows, [many / f"{i:03d}.parquet" for i in range(millions)]))
        for i in range(min(2, millions)):
            os.link(many / f"{i:03d}.parquet", few / f"{i:03d}.parquet")
        found = []
        for name, folder in (("memory", few), ("disk", many)):
            lines = map(str.split, child(TRAINED, folder, name).splitlines())
            said = {line[0]: [float(word) for word in line[1:]] for line in lines}
            (until, start), (rate, least, most), (peak,) = said.values()
            spread = f"{least:,.0f} – {most:,.0f} MB"
            count = f"{len(list(folder.iterdir()))} M"
            memory = (f"{start:,.0f} MB", spread, f"{peak:,.0f} MB")
            found.append([name, count, f"{until:.0f} s", *memory, f"{rate:,.0f}"])
            print(*found[-1], file=sys.stderr, flush=True)
    columns = ("rows in", "rows", "until the first step", "own memory then", "while training")
    columns += ("peak with libraries", "rows a second")
    print_table("An epoch of many rows", columns, found)


def write_rows(path: Path, count: int = 1_000_000) -> None:
    """Write a Parquet file of 20 numbers and a class."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    x = np.random.default_rng(int(path.stem)).standard_normal((20, count), dtype=np.float32)
    x = np.clip(np.rint(32 * x), -127, 127).astype(np.float32) / 32  # a byte each in the file
    table = {f"x{j}": column for j, column in enumerate(x)} | {"y": x[0] * x[1] > 0}
    pq.write_table(pa.table(table), path, compression="none")


# ---- checkpoints -----------------------------------------------------------------------------


def checkpoints(quick: bool) -> None:
    """Measure how long a checkpoint takes to be written and read, by its size."""
    import torch

    from castalia.train.checkpoint import read_checkpoint, write_checkpoint

    rows = []
    for millions in (4, 16) if quick else (4, 16, 64):
        tensors = {"weights": torch.zeros(3, millions * 1_000_000)}  # and two moments of Adam
        with tempfile.TemporaryDirectory() as home:
            begun = time.perf_counter()
            path = write_checkpoint(home, 1, tensors, {})
            written = time.perf_counter()
            read_checkpoint(path)
            read = time.perf_counter() - written
            size = path.stat().st_size / GB
        wrote = written - begun
        figures = (f"{size:.2f}", f"{wrote:.2f}", f"{size / wrote:.2f}", f"{size / read:.2f}")
        rows.append([f"{millions} M", *figures])
    print_table(
        "Checkpoints", ("parameters", "GB", "s to write", "GB/s written", "GB/s read"), rows
    )


# ---- memory of a process that trains with others ----------------------------------------------

SHARED = """
import os, resource, sys
from pathlib import Path
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore
import castalia
from castalia import Training
from castalia.models.language import GPTLanguageModel
path, strategy, world, ways, dim, depth = sys.argv[1:]
world, gpu = int(world), torch.cuda.is_available()
os.environ |= {"RANK": "0", "WORLD_SIZE": str(world)}
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=world)
def peak():
    if gpu:
        return torch.cuda.max_memory_allocated()
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
class Few(castalia.Callback):
    def on_batch_end(self, state):
        if state.total == 1:
            self.first = peak()
            torch.cuda.reset_peak_memory_stats() if gpu else None
        if state.total == 3:
            count = sum(p.numel() for p in state.net.parameters())
            raise SystemExit(print(count, self.first, peak()))
training = Training(callbacks=[Few()], watch=False, verbose=False, validation=0, strategy=strategy,
    compile=False, **dict.fromkeys(ways.split(), True))
GPTLanguageModel(context=512, dim=int(dim), depth=int(depth), heads=16, batch_size=4 * world,
    random_state=0, training=training).fit(Path(path))
"""


def shards(quick: bool) -> None:
    """Measure the peak memory of one of N processes; nobody answers it (torch's fake group)."""
    sizes = ("64", "2") if quick else ("2048", "24")
    found = []
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "corpus.txt"
        write_text(path, 3_000_000)
        ways = (("ddp", 2, ""), ("fsdp", 2, ""), ("fsdp", 8, ""), ("fsdp", 8, "recompute"))
        for strategy, world, way in (*ways, ("fsdp", 8, "recompute offload")):
            said = child(SHARED, path, strategy, str(world), way, *sizes, CASTALIA_DATA=home)
            count, first, later = map(float, said.split()[-3:])
            peaks = (f"{first / GB:.2f} GB", f"{later / GB:.2f} GB")
            found.append([f"{strategy}, {way}" if way else strategy, str(world), *peaks])
            print(found[-1], f"{count / 1e9:.3f} B parameters", file=sys.stderr, flush=True)
    columns = ("strategy", "processes", "peak with the first step", "peak of later steps")
    print_table(f"Memory of a process at {count / 1e9:.2f} B parameters", columns, found)


# ---- batch prediction that is killed ---------------------------------------------------------


def kills(quick: bool) -> None:
    """Kill a batch prediction at random instants until it ends: is every row there once?"""
    import pandas as pd

    from castalia import MLPClassifier, Training, read, save

    files, times = (60, 4) if quick else (1000, 20)
    source = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        table = pd.DataFrame({"a": source.normal(size=200)})
        table["y"] = np.where(table["a"] > 0, "yes", "no")
        training = Training(verbose=False, watch=False)
        model = MLPClassifier(hidden=(4,), epochs=2, random_state=0, training=training)
        save(model.fit(read(table, target="y")), home / "model")
        (home / "parts").mkdir()
        for i in range(files):
            ids = np.arange(50 * i, 50 * i + 50)
            part = pd.DataFrame({"id": ids, "a": source.normal(size=50)})
            part.to_parquet(home / "parts" / f"{i:04d}.parquet")
        killed = 0
        while (code := _predicted(home, source if killed < times else None)) != 0:
            killed += code == -signal.SIGKILL
        found = np.sort(pd.read_parquet(home / "out")["id"].to_numpy())
        whole = np.array_equal(found, np.arange(50 * files))
        once = "yes" if whole else "NO"
        left = [path for path in (home / "out").iterdir() if path.name.startswith(".")]
    rows = [[f"{files:,}", str(killed), f"{len(found):,}", once, str(len(left))]]
    print_table(
        "Batch prediction, killed",
        ("files", "kills", "rows", "each once", "files left aside"),
        rows,
    )


def _predicted(home: Path, source: Any) -> int:
    """Predict in a fork, which is killed after a random time; return how it ended."""
    from castalia.method.batch_predictions import predict_files

    process = os.fork()
    if process == 0:
        files = sorted((home / "parts").iterdir())
        list(predict_files(home / "model", files, home / "out", keep=["id"]))
        os._exit(0)
    if source is not None:
        time.sleep(float(source.exponential(0.12)))
        os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


# ---- Ray -------------------------------------------------------------------------------------


def ray(quick: bool) -> None:
    """Time searches, folds and members one after the other, and on Ray; ``WORK="trials"``: some."""
    _side_by_side(quick, ("local",))


def processes(quick: bool) -> None:
    """Do as ``ray`` does, without Ray."""
    _side_by_side(quick, (None,))


def _side_by_side(quick: bool, places: tuple[str | None, ...]) -> None:
    from joblib import parallel_config
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_score

    from castalia import DeepEnsemble, MLPClassifier, Training, cluster
    from castalia.tune import RandomSearch, Uniform

    source = np.random.default_rng(0)
    X = source.normal(size=(4000, 20))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    training = Training(verbose=False, watch=False)
    epochs, trials = (3, 8) if quick else (10, 64)
    model = MLPClassifier(hidden=(32,), epochs=epochs, random_state=0, training=training)
    space = {"lr": Uniform(1e-4, 1e-1, log=True)}

    def search() -> Any:
        return RandomSearch(
            model, space, trials=trials, cv=0.25, prune=False, refit=False, random_state=0
        ).fit(X, y)

    longer = clone(model).set_params(epochs=int(os.environ.get("EPOCHS", 5 * epochs)))
    plain = Training(verbose=False, watch=False, step="plain")  # members are not stacked

    def folds() -> Any:
        return cross_val_score(longer, X, y, cv=10)

    def members() -> Any:
        return DeepEnsemble(clone(longer).set_params(training=plain), members=10).fit(X, y)

    rows = []
    works = {f"{trials} trials": search, "10 folds": folds, "10 members": members}
    asked = os.environ.get("WORK", "")
    for name, work in works.items():
        if asked not in name:
            continue
        for where in places:
            both: list[tuple[float, float]] = []
            with cluster(where) as workers:
                work()  # workers start and import
                for _ in range(int(os.environ.get("REPEATS", 2))):
                    with parallel_config("sequential"):
                        before = _timed(work)
                    both.append((before, _timed(work)))
                    print(name, *both[-1], file=sys.stderr, flush=True)
            alone, seconds = map(min, zip(*both, strict=True))  # what others left undisturbed
            place = "processes" if where is None else "Ray"
            lost = 1e3 * (workers * seconds - alone) / int(name.split()[0])
            figures = (f"{alone:.1f}", f"{seconds:.1f}", f"{alone / seconds:.2f}", f"{lost:.0f}")
            rows.append([name, f"{place}, {workers}", *figures])
            print(*rows[-1], file=sys.stderr, flush=True)
    columns = ("work", "workers", "s alone", "s", "times", "ms more a task")
    print_table("Trials and folds side by side", columns, rows)


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


# ---- on paper --------------------------------------------------------------------------------

PARAMETERS, GPUS = 10e9, 512
CONTEXT, BATCH, LAYERS, WIDTH = 2048, 4e6, 36, 4800  # BATCH in tokens
FLOPS, SHARE = 989e12, 0.4  # of an H100 in bf16, and how much of it a training gets
LINK = 50 * GB  # bytes a second of a GPU to other nodes
WRITTEN = 0.5 * GB  # bytes of a checkpoint that a process writes in a second, as measured
HELD = 20  # bytes a parameter of DDP at 1.25 B parameters, as measured: 16, and gradients in flight
LIFE = 50_000 * 3600.0  # seconds between two faults of one GPU


def paper(quick: bool) -> None:
    """Compute what ten billion parameters on 512 GPUs would take."""
    tokens = 200 * PARAMETERS
    step = 6 * PARAMETERS * BATCH / (GPUS * FLOPS * SHARE)
    steps = tokens / BATCH
    traffic = 3 * 2 * PARAMETERS * (GPUS - 1) / GPUS  # gather twice, scatter once, bf16
    exchange = traffic / LINK
    state = 16 * PARAMETERS  # weight, gradient and two moments in float32
    gathered = 12 * PARAMETERS / WRITTEN  # one process writes the whole checkpoint
    sharded = gathered / GPUS
    rows = [
        ["bytes of weights, gradients and Adam's moments", f"{state / GB:.0f} GB"],
        ["the same a GPU, divided by FSDP", f"{state / GPUS / GB:.2f} GB"],
        ["what DDP holds on each GPU", f"{HELD * PARAMETERS / GB:.0f} GB: does not fit into 80 GB"],
        ["steps, 200 tokens a parameter", f"{steps:,.0f}"],
        ["s of arithmetic a step", f"{step:.2f}"],
        ["s of traffic a step, if nothing hides it", f"{exchange:.2f}"],
        ["days of arithmetic", f"{steps * step / 86400:.1f}"],
        ["s a checkpoint, gathered and written by one process", f"{gathered:.0f}"],
        ["GB of memory that this process needs for it", f"{12 * PARAMETERS / GB:.0f}"],
        ["s a checkpoint, where every process writes its share", f"{sharded:.2f}"],
    ]
    fault = LIFE / GPUS
    for name, cost in (("gathered", gathered), ("divided", sharded)):
        best = math.sqrt(2 * cost * fault)  # Young's and Daly's interval
        lost = [simulate(cost, each, fault, steps * step) for each in (best / 4, best, best * 4)]
        rows.append(
            [
                f"{name}: lost at a quarter of, at, and at 4 times {best / 60:.0f} minutes",
                ", ".join(f"{100 * share:.1f} %" for share in lost),
            ]
        )
    print_table("On paper", ("10 B parameters, 512 GPUs", ""), rows)


def simulate(cost: float, interval: float, fault: float, work: float, runs: int = 300) -> float:
    """Return the share of time lost to checkpoints, faults and restarts of five minutes."""
    source = random.Random(0)
    spent = sum(sum(_segments(source, cost, interval, fault, work)) for _ in range(runs))
    return 1 - runs * work / spent


def _segments(
    source: random.Random, cost: float, interval: float, fault: float, work: float
) -> Iterator[float]:
    """Yield the seconds of every attempt at an interval of work."""
    left, until = work, source.expovariate(1 / fault)
    while left > 0:
        wanted = min(interval, left) + cost
        if until >= wanted:
            until -= wanted
            left -= wanted - cost
            yield wanted
        else:
            yield until + 300
            until = source.expovariate(1 / fault)


PARTS: dict[str, Callable[[bool], None]] = {
    "texts": texts,
    "order": order,
    "rows": rows,
    "checkpoints": checkpoints,
    "shards": shards,
    "kills": kills,
    "processes": processes,
    "ray": ray,
    "paper": paper,
}

if __name__ == "__main__":
    asked = tuple(word for word in sys.argv[1:] if word != "--quick")
    run("--quick" in sys.argv, asked)
