"""Damaged files of every kind, read again: an error of our own, or what was written, in bounds.

A reader may refuse a file by an error of the library. Anything else it raises is counted, and so is
a saved model or checkpoint that loads as another though nobody sealed it anew, a read that takes
more than 4 times the file's size plus 200 MB of address space, one that takes more than 10 s, and a
process that dies. Mutant ``i`` of a seed is always the same: ``--only i`` reads it alone.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import multiprocessing
import os
import pkgutil
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

BATCH, MOST = 400, 1_000_000
SECONDS, TIMES, SPARE = 10.0, 4, 200_000_000
GOOD = ("not run", "refused", "equal", "changed")
BAD = ("foreign error", "silently wrong", "too much memory", "too slow", "died")
OUTCOMES = (*GOOD, *BAD)


@dataclass
class Sample:
    """The whole files of a kind, and what reading them gives."""

    kind: Any
    files: dict[str, bytes]
    content: Any


@dataclass
class Torture:
    """Mutants shared out to forked processes."""

    samples: list[Sample]
    seed: int
    folder: Path
    found: Any = field(default_factory=lambda: RawArray("B", MOST))

    # -- in a process of its own --

    def read(self, index: int, place: Path) -> tuple[str, str]:
        """Make one mutant, read it and judge."""
        sample = self.samples[index % len(self.samples)]
        rng = random.Random(f"{self.seed} {index}")
        files, sealed = sample.kind.damage(rng, sample.files)
        written(files, place)
        size, before, peak = sum(map(len, files.values())), *address_space()
        start = time.perf_counter()
        outcome, detail = judged(sample, place, sealed)
        took = (time.perf_counter() - start) / busy()
        reached = address_space()[1]
        if reached > peak and reached - before > TIMES * size + SPARE:
            return "too much memory", f"{(reached - before) >> 20} MB for {size} bytes; {detail}"
        return (outcome, detail) if took < SECONDS else ("too slow", f"{took:.1f} s; {detail}")

    def work(self, start: int, stop: int, now: Any) -> None:
        """Read the mutants of a batch; ``now`` tells which one, and since when."""
        quiet()
        place = Path(tempfile.mkdtemp(dir=self.folder))
        for index in range(start, stop):
            now[:] = index, time.time()
            outcome, detail = self.read(index, place)
            self.found[index] = OUTCOMES.index(outcome)
            if outcome in BAD:
                self.note(index, outcome, detail)
            if outcome == "too much memory":  # a fresh process measures from its own beginning
                break
        now[1] = 0
        shutil.rmtree(place, ignore_errors=True)
        os._exit(0)

    def note(self, index: int, outcome: str, detail: str) -> None:
        """Say what went wrong, at once."""
        print(f"{index}\t{self.name(index)}\t{outcome}\t{detail}", flush=True)

    # -- in the parent --

    def name(self, index: int) -> str:
        return self.samples[index % len(self.samples)].kind.name

    def run(self, files: int, jobs: int, until: float) -> None:
        """Keep ``jobs`` processes busy until that many mutants are read, or until a time."""
        todo = iter(range(0, files, BATCH))
        slots: list[Slot | None] = [None] * jobs
        while True:
            for place, slot in enumerate(slots):
                slots[place] = self._looked_after(slot, todo, files, until)
            if not any(slots):
                return
            time.sleep(0.05)

    def _looked_after(
        self, slot: Slot | None, todo: Iterator[int], files: int, until: float
    ) -> Slot | None:
        if slot is not None and slot.process.is_alive():
            if slot.now[1] and time.time() - slot.now[1] > SECONDS * busy() + 5:
                slot.process.kill()
                slot.process.join()
                return self._after(slot, "too slow")
            return slot
        if slot is not None and (after := self._after(slot, "died")):
            return after
        start = next(todo, None) if time.time() < until else None
        return None if start is None else self._started(start, min(start + BATCH, files))

    def _started(self, start: int, stop: int) -> Slot:
        now = RawArray("d", 2)
        process = multiprocessing.get_context("fork").Process(
            target=self.work, args=(start, stop, now), daemon=True
        )
        process.start()
        return Slot(process, now, stop)

    def _after(self, slot: Slot, fate: str) -> Slot | None:
        """Go on behind the mutant at which a process ended; note it where it did not want to."""
        at = int(slot.now[0])
        if slot.now[1]:  # it was reading
            self.found[at] = OUTCOMES.index(fate)
            self.note(at, fate, f"exit {slot.process.exitcode}")
        return self._started(at + 1, slot.stop) if at + 1 < slot.stop else None


@dataclass
class Slot:
    """A process at work."""

    process: Any
    now: Any
    stop: int


def judged(sample: Sample, place: Path, sealed: bool) -> tuple[str, str]:
    from castalia.errors import CastaliaError

    try:
        content = sample.kind.read(place)
    except CastaliaError as error:
        return "refused", type(error).__name__
    except BaseException as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return (
            "foreign error",
            f"{type(error).__name__}: {str(error)[:150]} ({last.filename}:{last.lineno})",
        )
    if content == sample.content:
        return "equal", ""
    return ("changed" if sealed else "silently wrong"), str(content)[:100]


def written(files: dict[str, bytes], place: Path) -> None:
    for old in place.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    for name, raw in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(raw)


def address_space() -> tuple[int, int]:
    """Return how many bytes of addresses this process has, and the most that it had."""
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmSize", "VmPeak"):
            found[name] = int(value.split()[0]) * 1024
    return found["VmSize"], found.get("VmPeak", found["VmSize"])


def busy() -> float:
    """Return how many processes wait for a core: what takes 10 s alone takes longer then."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def quiet() -> None:
    """Say nothing, keep no memory aside, and never take the whole machine's."""
    import pyarrow as pa

    warnings.simplefilter("ignore")
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(-8, 1)  # one arena: a thread's own would count as 64 MB
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    most = address_space()[0] + 6 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    gc.freeze()


def everything() -> None:
    """Import the whole library, so that forked processes need not."""
    from PIL import Image

    import castalia

    Image.init()
    for name in ("skops.io", "openpyxl", "pyarrow.parquet", "sklearn.tree", "sklearn.pipeline"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in pkgutil.walk_packages(castalia.__path__, "castalia."):
            if not module.name.endswith(("__main__", "doctor")) and "kernels" not in module.name:
                with contextlib.suppress(ImportError):  # of a package that is not installed
                    importlib.import_module(module.name)


def made(folder: Path, only: str | None) -> tuple[list[Sample], list[str]]:
    """Make the samples in a process of their own: threads that it starts are not forked."""
    from evidence.torture.file_samples import kinds

    known = [kind for kind in kinds() if only is None or only in kind.name]
    process = multiprocessing.get_context("fork").Process(target=_make, args=(known, folder))
    process.start()
    process.join()
    import pickle

    samples, lacking = [], []
    for number, kind in enumerate(known):
        place = folder / "whole" / str(number)
        if not (place.parent / f"{number}.pickle").is_file():
            lacking.append(kind.name)
            continue
        files = {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}
        content = pickle.loads((place.parent / f"{number}.pickle").read_bytes())
        samples.append(Sample(kind, files, content))
    return samples, lacking


def _make(known: list[Any], folder: Path) -> None:
    import pickle

    warnings.simplefilter("ignore")
    for number, kind in enumerate(known):
        place = folder / "whole" / str(number)
        place.mkdir(parents=True)
        try:
            kind.make(place)
            content = kind.read(place)
            if content != kind.read(place):
                raise RuntimeError("two reads differ")
        except (ImportError, KeyError, OSError, RuntimeError, ValueError, AttributeError) as error:
            print(f"left out: {kind.name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        (place.parent / f"{number}.pickle").write_bytes(pickle.dumps(content))
    sys.stdout.flush()
    os._exit(0)


def tortured(
    *,
    files: int = MOST,
    jobs: int = 1,
    minutes: float = 1e9,
    seed: int = 0,
    only: str | None = None,
) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return counts by kind and outcome, and the kinds left out; bad ones are printed."""
    everything()
    fast = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=fast if os.access(fast, os.W_OK) else None) as home:
        folder = Path(home)
        samples, lacking = made(folder, only)
        torture = Torture(samples, seed, folder)
        torture.run(min(files, MOST), jobs, time.time() + 60 * minutes)
        counts = Counter(
            (torture.name(i), OUTCOMES[code])
            for i, code in enumerate(torture.found[:files])
            if code
        )
        return counts, lacking


def run(minutes: float, seed: int) -> dict[str, int]:
    """Read mutants for some minutes; return how many came to which end."""
    counts, _ = tortured(minutes=minutes, seed=seed, jobs=os.cpu_count() or 1)
    total: Counter[str] = Counter()
    for (_, outcome), count in counts.items():
        total[outcome] += count
    return {"mutated files": sum(total.values()), **{name: total[name] for name in OUTCOMES[1:]}}


def group(name: str) -> str:
    first = name.split()[0].split(".")
    return first[0] if len(first) == 1 or " " in name else name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no batch after that")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="kinds whose name holds this")
    parser.add_argument(
        "--only", type=int, help="one mutant, by its number; its traceback is shown"
    )
    asked = parser.parse_args()
    if asked.only is not None:
        return show(asked.only, asked.seed, asked.kind)
    start = time.time()
    counts, lacking = tortured(
        files=asked.files,
        jobs=asked.jobs,
        minutes=asked.minutes,
        seed=asked.seed,
        only=asked.kind,
    )
    took = time.time() - start
    table: dict[str, Counter[str]] = {}
    for (name, outcome), count in counts.items():
        table.setdefault(group(name), Counter())[outcome] += count
    print("| kind | files |", " | ".join(OUTCOMES[1:]), "|")
    print("|---|" + "---|" * len(OUTCOMES))
    table["all"] = sum(table.values(), Counter())
    for name, row in table.items():
        print(
            f"| {name} | {sum(row.values()):,} |",
            " | ".join(f"{row[o]:,}" for o in OUTCOMES[1:]),
            "|",
        )
    print(f"{took:.0f} s, {asked.jobs} processes; left out: {', '.join(lacking) or 'nothing'}")
    return None


def show(index: int, seed: int, only: str | None) -> None:
    """Read one mutant in this process."""
    everything()
    with tempfile.TemporaryDirectory() as home:
        samples, _ = made(Path(home), only)
        sample = samples[index % len(samples)]
        files, sealed = sample.kind.damage(random.Random(f"{seed} {index}"), sample.files)
        place = Path(home) / "mutant"
        place.mkdir()
        written(files, place)
        for name, raw in files.items():
            if raw != sample.files.get(name):
                print(name, len(raw), raw[:3000])
        print(sample.kind.name, "sealed" if sealed else "")
        print(sample.kind.read(place) == sample.content)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
