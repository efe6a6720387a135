"""Processes killed at random instants while they train, save and predict; nothing may be lost.

A warm process forks a child that does some work in a folder. The child is ended by SIGKILL, SIGTERM
or Ctrl-C (once or twice) at a random instant, and another one does the same work in the same
folder, up to some kills; the last child is left alone. After every kill the files under final names
must be whole and no run may be left running; in the end the result must be that of undisturbed
work, bit for bit, and a save an hour later must leave nothing hidden.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evidence.torture.killed_works import WORKS, Work, warm_up

MOST_KILLS = 4  # in one folder, before its last child is left alone
ENDINGS = {
    "SIGKILL": ([signal.SIGKILL], 6),
    "SIGTERM": ([signal.SIGTERM], 2),
    "Ctrl-C": ([signal.SIGINT], 1),
    "double Ctrl-C": ([signal.SIGINT, signal.SIGINT], 1),
}
ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT  # asks without forgetting
SIGNALS = {signal.SIGINT, signal.SIGTERM}
PATIENCE = 60.0  # seconds until a child counts as hung


class Lost(Exception):
    """Something is not as it would be without the kills."""


@dataclass
class Kills:
    """Counts of one torture.

    Attributes
    ----------
    seed
        Of instants and signals; the work itself is always the same.
    counts
        Kills by work and by signal, and what was lost.
    """

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.known: dict[str, tuple[Any, float]] = {}

    def reference(self, work: Work) -> tuple[Any, float]:
        """Return the result of undisturbed work and its seconds, measured once."""
        if work.name not in self.known:
            with folder_of(work) as place:
                begin = time.monotonic()
                children = start(work, place)
                codes = [wait(child, PATIENCE) for child in children]
                seconds = time.monotonic() - begin
                if any(codes):
                    raise Lost(f"undisturbed work ended with {codes}:\n{errors(place)}")
                self.known[work.name] = (result(place), seconds)
        return self.known[work.name]

    def round(self, work: Work) -> None:
        """Kill some children that do one work in one folder, and compare the result."""
        wanted, seconds = self.reference(work)
        with folder_of(work) as place:
            try:
                for _ in range(self.random.randint(1, MOST_KILLS)):
                    if not self.kill(work, place, seconds):
                        break
                children = start(work, place)
                codes = [wait(child, PATIENCE) for child in children]
                if any(codes):
                    raise Lost(f"the last child ended with {codes}:\n{errors(place)}")
                if result(place) != wanted:
                    raise Lost("the result differs from that of undisturbed work")
                work.check(place)
                check_sweep(work, place)
            except Exception as error:  # whatever it is, it is counted
                self.counts["lost"] += 1
                self.words.append(f"{work.name}: {type(error).__name__}: {error}")

    def kill(self, work: Work, place: Path, seconds: float) -> bool:
        """End one life of the work; return whether it was still alive."""
        children = start(work, place)
        names, weights = list(ENDINGS), [weight for _, weight in ENDINGS.values()]
        name = self.random.choices(names, weights)[0]
        time.sleep(self.random.random() * seconds)
        alive = [child for child in children if os.waitid(os.P_PID, child, ENDED) is None]
        if len(children) > 1 and self.random.random() < 0.5:
            alive = alive[:1]  # the others notice
        for number in ENDINGS[name][0]:
            for child in alive:
                os.kill(child, number)
            time.sleep(0.002)
        for child in alive:
            wait(child, PATIENCE)
        for child in children:
            if child not in alive:
                wait(child, 0.05)
        if alive:
            self.counts["kills"] += 1
            self.counts[f"kills of {work.name}"] += 1
            self.counts[f"by {name}"] += 1
        work.check(place)
        return bool(alive)


@contextmanager
def folder_of(work: Work) -> Iterator[Path]:
    """Make a folder with what the work needs, and delete it."""
    place, owner = Path(tempfile.mkdtemp(prefix="torture-")), os.getpid()
    try:
        work.prepare(place)
        yield place
    finally:
        if os.getpid() == owner:  # not a child that a second Ctrl-C hit on its way out
            shutil.rmtree(place, ignore_errors=True)


def start(work: Work, place: Path) -> list[int]:
    """Fork the children of one life."""
    meeting = tempfile.mktemp(dir=place, prefix="meeting-")
    return [_fork(work, place, rank, meeting) for rank in range(work.processes)]


def _fork(work: Work, place: Path, rank: int, meeting: str) -> int:
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # else Ctrl-C could hit the fork itself
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.dup2(os.open(place / "errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        if work.processes > 1:
            _join(rank, work.processes, meeting)
        found = work.do(place)
        if rank == 0:
            (place / "answer.tmp").write_text(json.dumps(found))
            os.replace(place / "answer.tmp", place / "answer")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        sys.stderr.flush()
        os._exit(code)


def _join(rank: int, processes: int, meeting: str) -> None:
    import torch.distributed as dist

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(processes)}
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes
    )


def wait(child: int, patience: float) -> int:
    """Return the exit code of a child; one that hangs is killed."""
    deadline = time.monotonic() + patience
    while os.waitid(os.P_PID, child, ENDED) is None:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def result(place: Path) -> Any:
    return json.loads((place / "answer").read_text())


def errors(place: Path) -> str:
    lines = (place / "errors").read_text().splitlines()
    return "\n".join([*lines[:3], "…", *lines[-12:]])


def check_sweep(work: Work, place: Path) -> None:
    """Do the work once more, hours later: what kills left behind is gone then."""
    hour = time.time() - 2 * 3600
    for found in place.rglob(".*"):
        os.utime(found, (hour, hour))
    (place / "acknowledged").unlink(missing_ok=True)
    codes = [wait(child, PATIENCE) for child in start(work, place)]
    if any(codes):
        raise Lost(f"the work after the last ended with {codes}:\n{errors(place)}")
    hidden = [str(found) for found in place.rglob(".*")]
    if hidden:
        raise Lost(f"hidden files stay: {hidden}")


def run(minutes: float, seed: int) -> dict[str, int]:
    """Torture every work in turn until the time is up, a process for two cores; return counts."""
    warm_up()
    deadline = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        jobs = range(max(1, (os.cpu_count() or 1) // 2))
        workers = [_worker(Path(folder) / str(job), 1000 * seed + job, deadline) for job in jobs]
        codes = [wait(worker, 60 * minutes + 10 * PATIENCE) for worker in workers]
        files = [Path(folder) / str(job) for job in jobs]
        parts = [json.loads(file.read_text()) for file in files if file.exists()]
    counts: Counter[str] = Counter({"lost": sum(map(bool, codes))})
    for part in parts:
        counts.update(part["counts"])
        print("\n".join(part["words"]), end="", file=sys.stderr)
    names = ["kills", *sorted(set(counts) - {"kills", "lost"}), "lost"]
    return {name: counts[name] for name in names}


def _worker(path: Path, seed: int, deadline: float) -> int:
    """Fork a process that kills until the time is up, at least once, and writes its counts."""
    worker = os.fork()
    if worker:
        return worker
    code, kills = 1, Kills(seed)
    try:
        works = WORKS[seed % len(WORKS) :] + WORKS[: seed % len(WORKS)]
        for work in itertools.cycle(works):
            kills.round(work)
            if time.monotonic() > deadline and kills.counts["kills"]:
                break
        path.write_text(json.dumps({"counts": kills.counts, "words": kills.words}))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
