"""The doctor on public training scripts: as they are, and with faults planted into them.

``python -m evidence scripts --clones DIR`` runs every script of ``scripts.toml`` from local clones
(``DIR/owner/name``): twice without the doctor, once with it, and once for each of three faults.
With ``--rounds 2`` three other faults follow when all scripts had theirs.
What is printed and trained must be the same with the doctor; what it finds in a script as it is
was judged by a person, whose reasons stand in the list.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.scripts_faults import FAULTS
from evidence.scripts_list import HALVES, SOURCE_FAULTS, Script, prepare, scripts
from evidence.scripts_records import Archives, in_words, record_name
from evidence.scripts_report import report

HERE = Path(__file__).parents[1]
EACH = 3  # faults for a script
STAGES = {
    "report": (),
    "scan": ("scan",),
    "plain": ("scan", "plain"),
    "fine": ("scan", "plain", "doctor"),
    "faults": ("scan", "plain", "doctor"),  # and then the faults
}
TAIL = 2000  # letters of an error that are kept
SAVE = 5.0  # seconds between two writings of all results
# One core, no GPU, nothing from elsewhere, the same order of sets.
ALONE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TQDM_DISABLE"), "1"),
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "MPLBACKEND": "Agg",
    "PYTHONHASHSEED": "0",
}


@dataclass(frozen=True)
class Job:
    """One run: "scan" and "plain" are without the doctor, "doctor" and faults with it."""

    script: Script
    what: str

    @property
    def fault(self) -> str:
        return self.what if self.what in FAULTS else ""

    @property
    def watched(self) -> bool:
        return self.what not in ("scan", "plain")


class Runner:
    """Runs jobs, several at a time, and keeps what they give in one file.

    Parameters
    ----------
    clones
        Folder of clones.
    out
        Folder for ``scripts.json``.
    limit
        Seconds that a run may take.
    jobs
        Runs at a time.
    minutes
        For all of them; what has not ended by then gives no result.
    """

    def __init__(
        self, clones: Path, out: Path, limit: float, jobs: int = 1, minutes: float = math.inf
    ) -> None:
        self.clones, self.limit = clones.resolve(), limit
        self.end = time.monotonic() + 60 * minutes
        self.records = out.resolve() / "records"
        self.records.mkdir(parents=True, exist_ok=True)
        self.pool = ThreadPoolExecutor(jobs)
        self.file, self.lock = out / "scripts.json", threading.Lock()
        self.local, self.servers = threading.local(), []
        self.results: dict[str, dict[str, Any]] = {}
        self.archives = Archives(self.records)
        self.pending: Counter[str] = Counter()  # runs of each script that are to come
        self.saved = 0.0
        if self.file.exists():
            self.results = json.loads(self.file.read_text())

    def all(self, jobs: list[Job]) -> None:
        """Run those that have no result yet."""
        left = [job for job in jobs if job.what not in self.results.get(job.script.name, {})]
        self.pending.update(job.script.name for job in left)
        list(self.pool.map(self.one, left))

    def close(self) -> None:
        """End the servers."""
        self.pool.shutdown()
        for one in scripts():
            if self.pending[one.name]:
                self.archives.add(one, self.results)
        for server in self.servers:
            server.communicate()
        self.file.write_text(json.dumps(self.results))

    def one(self, job: Job) -> None:
        """Run a job and keep what it gives; an error is a result."""
        if time.monotonic() > self.end:
            return
        try:
            with tempfile.TemporaryDirectory() as place:
                result = self._run(job, Path(place))
        except Exception as error:
            result = {"code": -1, "error": f"{type(error).__name__}: {error}"}
        if result["code"] < 0 and time.monotonic() > self.end:
            return
        with self.lock:
            self.results.setdefault(job.script.name, {})[job.what] = result
            if time.monotonic() > self.saved + SAVE:
                self.file.write_text(json.dumps(self.results))
                self.saved = time.monotonic()
            said = result.get("first", "") if job.watched else ""
            line = f"{job.script.name:36} {job.what:16} {result['code']:3}"
            print(f"{line} {result.get('wall', 0):6.1f} s  {said}", flush=True)  # noqa: T201
            self.pending[job.script.name] -= 1
            last = job.watched and not self.pending[job.script.name]
        if last:
            self.archives.add(job.script, self.results)

    def _run(self, job: Job, place: Path) -> dict[str, Any]:
        folder = place / "clone"
        file = prepare(job.script, self.clones, folder, job.fault)
        at = folder if job.script.root else file.parent
        diagnosis = place / "diagnosis"
        order = {
            "command": [os.path.relpath(file, at), *job.script.args],
            "at": str(at),
            "path": [*map(str, (HERE, HERE / "src")), str(folder)],
            "environment": ALONE,
            "limit": min(self.limit, self.end - time.monotonic()),
            "seed": job.script.seed,
            "stand_ins": job.script.stand_ins,
            "fault": "" if job.fault in SOURCE_FAULTS else job.fault,
            "diagnosis": str(diagnosis) if job.watched else "",
            "scan": job.what == "scan",
            "records": str(self.records / record_name(job.script.name, job.what)),
            **{name: str(place / name) for name in ("out", "err", "result")},
        }
        result = self._ordered(order) | _printed(place, job) | _read(place / "result")
        result |= _diagnosis(diagnosis)
        if job.what == "scan":
            result["traits"] = [*result.get("traits", []), *_source_traits(file.read_text())]
        return result

    def _ordered(self, order: dict[str, Any]) -> dict[str, Any]:
        """Let this thread's server run an order."""
        if not hasattr(self.local, "server"):
            self.local.server = subprocess.Popen(
                [sys.executable, "-m", "evidence.scripts_start"],
                cwd=HERE,
                env={**os.environ, **ALONE, "PYTHONPATH": f"{HERE}{os.pathsep}{HERE / 'src'}"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            self.servers.append(self.local.server)
        server = self.local.server
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline())


def _printed(place: Path, job: Job) -> dict[str, Any]:
    """Return what a run printed, without the place it ran in."""
    said, errors = ((place / name).read_text(errors="replace") for name in ("out", "err"))
    return {
        "out": said.replace(str(place), "PLACE")[-TAIL if job.fault else 0 :],
        "error": errors[-TAIL:],
        "warnings": sorted(set(re.findall(r"\w+Warning: .*", errors))),
    }


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}


def _diagnosis(folder: Path) -> dict[str, Any]:
    """Return the findings that the doctor wrote, in a few words each."""
    from castalia.diagnose import Diagnosis

    file = folder / "diagnosis.json"
    if not file.exists():
        return {}
    return in_words(Diagnosis.from_json(file.read_text()))


def _source_traits(source: str) -> list[str]:
    names = {"no_zero_grad": "zero_grad", "eval_mode": "train()"}
    found = [names[key] for key, (pattern, _) in SOURCE_FAULTS.items() if pattern.search(source)]
    return [*found, "ReLU"] if "relu" in source.lower() else found


def chosen(
    found: list[Script],
    results: dict[str, dict[str, Any]],
    asked: Sequence[str] = (),
    rounds: int = 1,
) -> list[list[Job]]:
    """Return the faults to plant, by rounds: those asked for, or three used least that fit."""
    jobs: list[list[Job]] = [[] for _ in range(rounds)]
    for half in HALVES:
        used: Counter[str] = Counter()
        mine = [one for one in found if one.half == half]
        had = {one.name: set[str]() for one in mine}
        for wave in jobs:
            for script in mine:
                scan = results.get(script.name, {}).get("scan", {})
                if scan.get("code") != 0:
                    continue
                fitting = [name for name, one in FAULTS.items() if one.fits(set(scan["traits"]))]
                fresh = [name for name in fitting if name not in had[script.name]]
                least = sorted(fresh, key=lambda name: used[name])[:EACH]
                taken = [name for name in fresh if name in asked] if asked else least
                used.update(taken)
                had[script.name].update(taken)
                wave += [Job(script, name) for name in taken]
    return jobs


def run(words: list[str]) -> None:
    """Run what the command line asks for, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m evidence scripts", description=__doc__)
    parser.add_argument("--clones", type=Path, required=True, help="folder with owner/name clones")
    parser.add_argument("--out", type=Path, default=Path("runs/scripts"), help="for scripts.json")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--limit", type=float, default=120, help="seconds for a run")
    parser.add_argument("--minutes", type=float, default=math.inf, help="for all runs")
    parser.add_argument("--half", choices=HALVES, nargs="+", default=HALVES, help="these only")
    parser.add_argument("--rounds", type=int, default=1, help="of three faults for a script")
    parser.add_argument("--once", action="store_true", help="no second run without the doctor")
    parser.add_argument("--only", default="", help="parts of names, with commas between")
    parser.add_argument(
        "--plant", choices=tuple(FAULTS), nargs="+", default=[], help="all of these"
    )
    parser.add_argument("--stage", choices=tuple(STAGES), default="faults", help="how far to go")
    asked = parser.parse_args(words)
    parts = asked.only.split(",")
    found = [one for one in scripts() if one.half in asked.half]
    found.sort(key=lambda one: asked.half.index(one.half))
    wanted = [one for one in found if any(part in one.name for part in parts)]
    runner = Runner(asked.clones, asked.out, asked.limit, asked.jobs, asked.minutes)
    stages = [what for what in STAGES[asked.stage] if what != "plain" or not asked.once]
    random.Random(0).shuffle(wanted)  # a run that is cut short loses no kind of script
    runner.all([Job(one, what) for one in wanted for what in stages if what != "doctor"])
    rounds = chosen(found, runner.results, asked.plant, asked.rounds)
    for i, faults in enumerate(rounds):
        last = [job for job in faults if asked.stage == "faults"]
        if "doctor" in stages and i == 0:
            last += [Job(one, "doctor") for one in wanted]
        runner.all([job for one in wanted for job in last if job.script is one])
    runner.close()
    for i, faults in enumerate(rounds):
        kept = {(job.script.name, job.what) for job in faults}
        print(f"\n# Round {i + 1} of planted faults")  # noqa: T201
        report(found, _of_round(runner.results, kept))


def _of_round(results: dict[str, dict[str, Any]], kept: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the results without the faults of other rounds."""
    return {
        name: {k: run for k, run in runs.items() if k not in FAULTS or (name, k) in kept}
        for name, runs in results.items()
    }
