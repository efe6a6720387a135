"""Whether the tests of the course fail when what they prove is broken.

Run ``PYTHONPATH=src python tools/mutants.py --jobs 2`` (``make proof``). For every proven row of
``course.toml`` some faults are put into the code of its object, one at a time and in memory, and
the row's tests run against each. Faults lie on lines that these tests execute: two thirds in the
object itself, the others in what it inherits and calls. A fault is killed when a test fails; a row
survives when none of its faults is killed.

One process imports everything once and forks a child for each run. Results are kept by the
hashes of the sources they depend on, so that a run that is stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import gc
import hashlib
import importlib
import json
import os
import pkgutil
import platform
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # before torch comes in
os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the proof is the CPU's, and children fork
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "src")) if path not in sys.path]

from tools.course_code import layers, resolve  # noqa: E402
from tools.mutations import KINDS, Entries, Mutation, mutations_of, source, tables_of  # noqa: E402

from castalia.catalog.course import CourseRow, load_course  # noqa: E402

__all__ = ["Proof", "Settings", "main", "prove", "run", "wilson"]

OFF = ("cacheprovider", "xdist", "anyio", "unraisableexception", "castalia-reach")
QUIET = ["-q", "-x", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
QUIET += [option for name in OFF for option in ("-p", f"no:{name}")]
QUIET += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # the parent has imported plugins
UNWANTED = ("__main__", "castalia.doctor", "kernels")  # importing these does something
Fault = Mutation | Entries
Outcome = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How many faults a row gets, and how long its tests may take."""

    faults: int = 5
    most: int = 18  # tried while no check has failed
    seed: int = 0
    limit: float = 300.0


@dataclass
class Proof:
    """What became of one row."""

    row: CourseRow
    status: str = ""  # killed, survives, not run
    reason: str = ""
    tests: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)  # tests that never enter the object
    faults: list[tuple[Fault, Outcome]] = field(default_factory=list)

    def count(self, *verdicts: str) -> int:
        """Count the faults that ended so."""
        return sum(outcome["verdict"] in verdicts for _, outcome in self.faults)


# ---- what a child does ----


class Watch:
    """A pytest plugin that keeps how every test ended."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: list[str] = []
        self.skipped: list[str] = []
        self.by = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the outcome of one test, under its name from the root."""
        name = f"{report.location[0]}::{report.nodeid.partition('::')[2]}"
        if report.failed:
            self.failed.append(name)
        elif report.skipped:
            self.skipped.append(name)
        elif report.when == "call":
            self.passed.append(name)

    def pytest_collectreport(self, report: Any) -> None:
        """A file that does not import fails its tests."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_exception_interact(self, call: Any) -> None:
        """Keep whether a check failed, or the code crashed."""
        name = call.excinfo.type.__name__
        self.by = self.by or ("check" if name in ("AssertionError", "Failed") else name)


def run_tests(tests: Iterable[str], *options: str, plugins: Iterable[Any] = ()) -> Outcome:
    """Run tests in this process."""
    import pytest

    watch = Watch()
    code = pytest.main([*QUIET, *options, *tests], plugins=[watch, *plugins])
    ends = {name: getattr(watch, name) for name in ("passed", "failed", "skipped", "by")}
    return {"code": int(code), **ends}


def attack(fault: Fault, tests: list[str]) -> Outcome:
    """Break the library in this process and run tests against it."""
    gc.unfreeze()
    done = fault.apply()
    gc.freeze()
    if not done:
        return {"verdict": "void"}
    found = run_tests(tests)
    return {"verdict": "killed" if found["code"] else "survives", "by": found["by"]}


def cover(row: CourseRow, codes: set[CodeType]) -> Outcome:
    """Run a row's tests: which lines of some functions they execute, and which never enter it."""
    from tools.reach import Reach

    reach = Reach([row])
    lines: set[tuple[str, int]] = set()
    left = {code: {line for *_, line in code.co_lines() if line} for code in codes}

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        left[frame.f_code].discard(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        return local if left.get(frame.f_code) else None

    threading.settrace(trace)
    sys.settrace(trace)
    try:
        options = ("--maxfail=1000", "--continue-on-collection-errors")
        found = run_tests(row.tests, *options, plugins=[reach])
    finally:
        sys.settrace(None)
    return {**found, "lines": sorted(lines), "outside": reach.outside(row)}


# ---- the children ----


@dataclass
class Child:
    """A forked process that writes its answer into a file."""

    work: Callable[[], Outcome]
    limit: float
    folder: Path
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.file = self.folder / f"{id(self)}-{self.began}"
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._be()

    def _be(self) -> None:
        try:
            os.setsid()
            log = os.open(f"{self.file}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for number, stream in ((nothing, 0), (log, 1), (log, 2)):
                os.dup2(number, stream)
            answer = self.work()
            self.file.with_suffix(".part").write_text(json.dumps(answer))
            self.file.with_suffix(".part").replace(f"{self.file}.json")
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(0)

    def answer(self) -> Outcome | None:
        """Return what the child found; None while it works."""
        late = time.monotonic() - self.began > self.limit
        if late:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if os.waitpid(self.pid, 0 if late else os.WNOHANG)[0] == 0:
            return None
        seconds = round(time.monotonic() - self.began, 2)
        written = Path(f"{self.file}.json")
        if written.is_file():
            return json.loads(written.read_text()) | {"seconds": seconds}
        by = "time" if late else "death"
        return {"verdict": "killed", "by": by, "seconds": seconds, "code": -1, "log": self._log()}

    def _log(self) -> str:
        log = Path(f"{self.file}.log")
        return log.read_text(errors="replace")[-500:] if log.is_file() else ""


@dataclass(frozen=True)
class Job:
    """Work for a child, and the key under which its result is kept."""

    key: str
    work: Callable[[], Outcome]
    limit: float


# ---- a row ----


def prove(row: CourseRow, settings: Settings) -> Generator[Job, Outcome, Proof]:
    """Attack one row: yields jobs, receives their outcomes, returns the proof."""
    proof = Proof(row)
    groups = [list(layer) for layer in layers(resolve(row.object))]
    codes = {c for layer in groups for f in layer for c in _nested(f.__code__)}
    sources = sorted({c.co_filename for c in codes if Path(c.co_filename).is_file()})
    tests = list(row.tests)
    files = sorted({str(ROOT / name.partition("::")[0]) for name in tests})
    base = yield Job(
        _key("reach", row.object, *tests, *_hashes(*files, *sources)),
        lambda: cover(row, codes),
        settings.limit,
    )
    proof.tests = [t for t in tests if _ran(t, base)]
    if not proof.tests:
        proof.status, proof.reason = "not run", _why(base)
        return proof
    proof.outside = base["outside"]
    limit = max(30.0, 5 * base["seconds"])
    for fault in _chosen(row, groups, {(f, n) for f, n in base["lines"]}, settings):
        found = yield Job(
            _key(repr(fault), *proof.tests, *_hashes(*files, getattr(fault, "file", ""))),
            lambda fault=fault: attack(fault, proof.tests),
            limit,
        )
        if found["verdict"] != "void":
            proof.faults.append((fault, found))
        if len(proof.faults) >= (settings.faults if _checked(proof) else settings.most):
            break
    proof.status = "killed" if proof.count("killed") else "survives"
    if not proof.faults:
        proof.reason = "its tests execute no line of it that can be broken"
    return proof


def _chosen(
    row: CourseRow, groups: list[list[Any]], lines: set[tuple[str, int]], settings: Settings
) -> list[Fault]:
    """Order the faults of a row: two of its own code, then one of what it inherits and calls."""
    chance = random.Random(f"{settings.seed}-{row.id}")
    chosen: list[Fault] = list(tables_of(row.object, resolve(row.object)))
    chance.shuffle(chosen)
    own, *others = [_ordered(layer, lines, chance) for layer in groups]
    rest = [fault for layer in others for fault in layer]
    while own or rest:
        chosen += [*own[:2], *rest[:1]]
        own, rest = own[2:], rest[1:]
    return chosen


def _ordered(
    layer: list[Any], lines: set[tuple[str, int]], chance: random.Random
) -> list[Mutation]:
    """Order the faults on executed lines of some functions: kinds in turn, at random in a kind."""
    kinds: dict[str, list[Mutation]] = defaultdict(list)
    for function in layer:
        for fault in mutations_of(function):
            if (fault.file, fault.line) in lines:
                kinds[fault.kind].append(fault)
    for faults in kinds.values():
        chance.shuffle(faults)
    found = []
    while any(kinds.values()):
        found += [kinds[kind].pop() for kind in KINDS if kinds[kind]]
    return found


def _nested(code: CodeType) -> Iterable[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def _ran(name: str, base: Outcome) -> bool:
    """Whether a test, with all its parameters, passed."""
    ends = {end: [t for t in base.get(end, ()) if _is(t, name)] for end in ("passed", "failed")}
    return bool(ends["passed"]) and not ends["failed"]


def _is(test: str, name: str) -> bool:
    """Whether a test, or a file, that ran is the one that was named."""
    return test in (name, name.partition("::")[0]) or test.partition("[")[0] == name


def _why(base: Outcome) -> str:
    if base.get("log"):
        return f"the run died: {base['log'].strip()[-200:]}"
    if base.get("by"):
        return f"its tests end with {base['by']} as the library is"
    if base.get("skipped"):
        return "its tests are skipped here"
    return "its tests take too long" if base["code"] == -1 else "its tests cannot be collected"


@cache
def _hash(file: str) -> str:
    return hashlib.sha256(source(file).encode()).hexdigest() if Path(file).is_file() else ""


def _hashes(*files: str) -> list[str]:
    return [_hash(file) for file in files]


def _key(*parts: str) -> str:
    here = [part.replace(str(ROOT), "") for part in parts]
    return hashlib.sha256("\n".join(here).encode()).hexdigest()[:24]


# ---- all rows ----


def run(
    rows: Iterable[CourseRow],
    settings: Settings,
    jobs: int = 1,
    kept: dict[str, Outcome] = {},  # noqa: B006
) -> Generator[Proof, None, None]:
    """Attack rows, several at a time; yields each proof as it is done."""
    waiting = list(rows)[::-1]
    busy: list[tuple[Generator[Job, Outcome, Proof], Job, Child]] = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            while waiting or busy:
                while waiting and len(busy) < jobs:
                    yield from _advance(prove(waiting.pop(), settings), None, busy, kept, folder)
                time.sleep(0.02)
                for place in list(busy):
                    row, job, child = place
                    found = child.answer()
                    if found is not None:
                        busy.remove(place)
                        if found.get("by") != "death":
                            kept[job.key] = found
                        yield from _advance(row, found, busy, kept, folder)
        finally:
            for *_, child in busy:
                child.limit = 0
                child.answer()


def _advance(
    row: Generator[Job, Outcome, Proof],
    found: Outcome | None,
    busy: list[Any],
    kept: dict[str, Outcome],
    folder: str,
) -> Generator[Proof, None, None]:
    """Hand a row its outcome, and start what it asks for next."""
    try:
        job = next(row) if found is None else row.send(found)
        while job.key in kept:
            job = row.send(kept[job.key])
    except StopIteration as done:
        yield done.value
        return
    busy.append((row, job, Child(job.work, job.limit, Path(folder))))


# ---- what is said ----


def wilson(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a rate, after Wilson (1927)."""
    if not whole:
        return 0.0, 1.0
    rate, scale = part / whole, 1 + z * z / whole
    middle = (rate + z * z / (2 * whole)) / scale
    half = z * ((rate * (1 - rate) + z * z / (4 * whole)) / whole) ** 0.5 / scale
    return max(0.0, middle - half), min(1.0, middle + half)


def _rate(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    share = 100 * part / whole if whole else 0.0
    return f"{part} of {whole} ({share:.1f} %, 95 %: {100 * low:.1f}–{100 * high:.1f})"


def report(proofs: list[Proof], all_rows: list[CourseRow], settings: Settings) -> str:
    """Write the proofs as Markdown."""
    proofs = sorted(proofs, key=lambda proof: proof.row.id)
    tried = [p for p in proofs if p.status != "not run"]
    ends = Counter(o["verdict"] for p in tried for _, o in p.faults)
    by = Counter(o.get("by", "") for p in tried for _, o in p.faults if o["verdict"] == "killed")
    proven = [row for row in all_rows if row.tests and not row.by]
    survivors = [p for p in tried if p.status == "survives"]
    crashed = [p for p in tried if p.status == "killed" and not _checked(p)]
    partly = [p for p in tried if p.status == "killed" and p.count("survives")]
    outside = [f"- {p.row.id} (`{p.row.object}`): `{t}`" for p in tried for t in p.outside]
    never = [p.row.id for p in tried if len(p.outside) == len(p.tests)]
    lines = [
        "# Proofs: what happens to the tests of the course when the library is broken",
        "",
        f"`python tools/mutants.py --seed {settings.seed} --faults {settings.faults}`, "
        f"Python {platform.python_version()}, torch {_version('torch')}. How it works stands at "
        "the head of `tools/mutants.py`.",
        "",
        f"- rows of the course: {len(all_rows)}, proven by tests: {len(proven)}, shown by another "
        f"library: {sum(bool(row.by) for row in all_rows)}",
        f"- rows attacked: {len(tried)}; not run: {len(proofs) - len(tried)}",
        f"- **rows that survive every fault: {_rate(len(survivors), len(tried))}**",
        f"- rows none of whose tests enters the object: {', '.join(never) or 'none'}",
        f"- rows whose faults fall only to a crash, never to a check: {len(crashed)}",
        f"- faults killed: {_rate(ends['killed'], ends.total())}, of them by a check: "
        f"{by['check']}, by a crash: {ends['killed'] - by['check'] - by['time']}, by running past "
        f"their time: {by['time']}",
        "",
        "## Rows that survive every fault",
        "",
        *([_line(p) for p in survivors] or ["None."]),
        "",
        "## Tests that prove a part of the object without entering the object itself",
        "",
        *(outside or ["None."]),
        "",
        "## Rows whose faults only crash",
        "",
        *([f"- {p.row.id} {p.row.name} (`{p.row.object}`)" for p in crashed] or ["None."]),
        "",
        "## Faults that survive in rows that stand",
        "",
        "A fault may be one that changes nothing that the row is about: read before you mend.",
        "",
        *([_line(p) for p in partly] or ["None."]),
        "",
        "## Not run",
        "",
        *([f"- {p.row.id}: {p.reason}" for p in proofs if p.status == "not run"] or ["None."]),
    ]
    return "\n".join(lines) + "\n"


def _checked(proof: Proof) -> bool:
    return any(outcome.get("by") == "check" for _, outcome in proof.faults)


def _line(proof: Proof) -> str:
    faults = [
        f"  - {Path(getattr(f, 'file', proof.row.object)).name}:{f.line}, {f.kind}: {f.said}"
        for f, outcome in proof.faults
        if outcome["verdict"] == "survives"
    ]
    said = proof.reason or f"{proof.count('survives')} of {len(proof.faults)} faults survive"
    head = f"- {proof.row.id} {proof.row.name} (`{proof.row.object}`): {said}"
    return "\n".join([head, *faults])


def _version(name: str) -> str:
    return getattr(importlib.import_module(name), "__version__", "?")


def as_data(proof: Proof) -> dict[str, Any]:
    """Turn a proof into what JSON can hold."""
    faults = [{**_fields(fault), **outcome} for fault, outcome in proof.faults]
    row = {"row": proof.row.id, "object": proof.row.object, "faults": faults}
    names = ("tests", "outside", "status", "reason")
    return row | {name: getattr(proof, name) for name in names}


def _fields(fault: Fault) -> dict[str, Any]:
    found = dataclasses.asdict(fault) | {"said": fault.said}
    if "file" in found:
        found["file"] = str(Path(found["file"]).relative_to(ROOT))
    return found


# ---- the command ----


def warm_up(objects: Iterable[str]) -> None:
    """Import what the children would each import again."""
    import castalia

    homes = {name.partition(":")[0] for name in objects}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = ["pytest", "hypothesis", *homes]
        if len(homes) > 5:
            names += ["pandas", "sklearn.metrics", "scipy.stats"]
            found = pkgutil.walk_packages(castalia.__path__, "castalia.")
            names += [module.name for module in found if not module.name.endswith(UNWANTED)]
        for name in names:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.startswith("castalia") and getattr(module, "__file__", None):
            source(module.__file__)
    gc.collect()
    gc.freeze()  # children share these objects instead of copying them


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="rows attacked at a time")
    parser.add_argument("--rows", nargs="+", metavar="ID", help="only these rows")
    parser.add_argument("--sample", type=int, metavar="N", help="only N rows, drawn with the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", type=int, default=Settings.faults, help="faults a row")
    parser.add_argument("--most", type=int, default=Settings.most, help="... while no check fails")
    parser.add_argument("--limit", type=float, default=Settings.limit, help="seconds of a run")
    parser.add_argument("--course", type=Path, default=ROOT / "course.toml")
    parser.add_argument("--kept", type=Path, default=ROOT / "build/mutants.json", help="results")
    parser.add_argument("--json", type=Path, default=ROOT / "build/proofs.json")
    parser.add_argument("--markdown", type=Path, default=ROOT / "evidence/PROOFS.md")
    return parser.parse_args(arguments)


def wanted(rows: list[CourseRow], asked: argparse.Namespace) -> list[CourseRow]:
    """Choose the proven rows that were asked for."""
    proven = [row for row in rows if row.tests and not row.by]
    if asked.rows:
        proven = [row for row in proven if row.id in asked.rows]
    if asked.sample:
        proven = random.Random(asked.seed).sample(proven, min(asked.sample, len(proven)))
    return proven


def main(arguments: list[str] | None = None) -> int:
    """Attack the rows and write the report; 0 when at most one row in twenty survives."""
    asked = options(arguments)
    os.chdir(ROOT)
    rows = load_course(asked.course)
    chosen = wanted(rows, asked)
    warm_up(row.object for row in chosen)
    settings = Settings(asked.faults, max(asked.most, asked.faults), asked.seed, asked.limit)
    kept = json.loads(asked.kept.read_text()) if asked.kept.is_file() else {}
    proofs: list[Proof] = []
    try:
        for proof in run(chosen, settings, asked.jobs, kept):
            proofs.append(proof)
            killed = f"{proof.count('killed')}/{len(proof.faults)}"
            print(f"{len(proofs)}/{len(chosen)} {proof.row.id} {proof.status} {killed}", flush=True)
            _write(asked.kept, json.dumps(kept))
    finally:
        _write(asked.json, json.dumps([as_data(proof) for proof in proofs], indent=1))
        _write(asked.markdown, report(proofs, rows, settings))
    tried = [proof for proof in proofs if proof.status != "not run"]
    print(f"survive: {_rate(sum(p.status == 'survives' for p in tried), len(tried))}")
    return int(20 * sum(p.status == "survives" for p in tried) > len(tried))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


if __name__ == "__main__":
    sys.exit(main())
