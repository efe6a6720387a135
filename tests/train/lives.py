"""One training, lived through many deaths: the script behind ``test_kill.py``.

``python lives.py FOLDER PROCESSES KILLS`` fits the same estimator twice, once in one go and once
killed with SIGKILL again and again and resumed by the same call. A warm parent forks a child (or
two, for ddp) a life, so torch is imported once. It prints, as JSON, where the kills fell; weights
and histories lie in FOLDER.
"""

import contextlib
import json
import mmap
import os
import random
import signal
import struct
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import castalia.train.recorder as recorder
import castalia.utils.atomic_files as files
from castalia import Callback, MLPClassifier, Training
from castalia.optim import cosine, warmup

STEP, EPOCH_STEP, WRITING, WRITES = range(4)  # slots of the shared memory


class Shared:
    """A few whole numbers that a killed child leaves readable."""

    def __init__(self):
        self.memory = mmap.mmap(-1, 64)

    def __getitem__(self, slot):
        return struct.unpack_from("<q", self.memory, 8 * slot)[0]

    def __setitem__(self, slot, value):
        struct.pack_into("<q", self.memory, 8 * slot, value)


class Report(Callback):
    """Tells the parent where the training stands."""

    def __init__(self, shared):
        self.shared = shared

    def on_batch_start(self, state):
        self.shared[STEP], self.shared[EPOCH_STEP] = state.total, state.step

    def on_batch_end(self, state):
        self.shared[STEP], self.shared[EPOCH_STEP] = state.total, state.step


def estimator(run, processes):
    return MLPClassifier(
        hidden=(12, 8),
        dropout=0.2,
        epochs=14 if processes == 1 else 8,  # over twice the steps at which the last kill falls
        batch_size=16,
        lr=0.01,
        random_state=3,
        training=Training(
            run=run,
            checkpoint_every=7,
            average=("ema", 0.95),
            patience=15,
            schedule=warmup(cosine(), steps=0.2),
            weight_decay=1e-3,
            clip=1.0,
            validation=0.15,
            optimizer="adamw",
            strategy="single" if processes == 1 else "ddp",
        ),
    )


def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4))
    return X, (X[:, 0] * X[:, 1] + 0.3 * random.normal(size=500) > 0).astype(int)


def slow_writes(shared):
    """Make a checkpoint's way to the disk long enough to be hit, and say when it is under way."""
    fsync, write = os.fsync, recorder.write_checkpoint

    def slow(handle):
        time.sleep(0.004)
        fsync(handle)

    def marked(*args):
        shared[WRITING] = 1
        shared[WRITES] += 1
        write(*args)
        shared[WRITING] = 0

    files.os.fsync, recorder.write_checkpoint = slow, marked


def live(folder, run, rank, processes, life, shared):
    """Be the child: fit, then leave weights and history behind."""
    if processes > 1:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(processes)}
        meeting = f"file://{folder}/meeting-{run}-{life}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    shared[WRITING] = 0
    if rank == 0 and life:
        slow_writes(shared)
    model = estimator(folder / run, processes)
    if rank == 0:
        model.training.callbacks = [Report(shared)]
    model.fit(*data())
    weights = {k: v.tolist() for k, v in model.module_.state_dict().items()}
    record = {"weights": weights, "history": model.history_, "best": model.best_}
    (folder / f"{run}-{rank}.json").write_text(json.dumps(record))


def begin(folder, run, processes, life, shared):
    """Fork the children of one life into a process group of their own."""
    group, children = 0, []
    for rank in range(processes):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setpgid(0, group)
                live(folder, run, rank, processes, life, shared)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        group = group or child
        with contextlib.suppress(OSError):  # the child does the same: whichever is first
            os.setpgid(child, group)
        children.append(child)
    return group, children


def wait(children):
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def ended(child):
    """Whether a child is gone, without forgetting how it ended."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_at(shared, children, started, chance):
    """Wait for a random instant: some steps into the life, every second time inside a write."""
    steps, inside_a_write = started + chance.randrange(30), chance.random() < 0.5
    while shared[STEP] < steps and not ended(children[0]):
        time.sleep(0.0002)
    time.sleep(chance.random() * 0.003)
    deadline = time.monotonic() + 1.0
    while inside_a_write and not shared[WRITING] and time.monotonic() < deadline:
        time.sleep(0.0002)
    time.sleep(chance.random() * 0.006)


def main(folder, processes, kills):
    torch.set_num_threads(1)
    shared, chance, seen = Shared(), random.Random(0), []
    warm = estimator(folder / "warm" / "run", 1).set_params(epochs=1)
    warm.fit(*data())  # torch imports much on first use: do it once, not once a life
    if any(wait(begin(folder, "whole", processes, 0, shared)[1])):
        raise SystemExit("the uninterrupted training failed")
    shared[STEP] = 0
    for life in range(1, kills + 1):
        started = shared[STEP]
        group, children = begin(folder, "killed", processes, life, shared)
        kill_at(shared, children, started, chance)
        os.killpg(group, signal.SIGKILL)
        codes = wait(children)
        seen.append({"codes": codes, "step": shared[STEP], "inside": shared[EPOCH_STEP]})
        seen[-1]["writing"] = shared[WRITING]
    codes = wait(begin(folder, "killed", processes, kills + 1, shared)[1])
    print(json.dumps({"kills": seen, "last": codes, "steps": shared[STEP]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
