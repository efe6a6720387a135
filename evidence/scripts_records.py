"""What the doctor saw of public scripts, kept so that later rules can judge it without a run.

A run puts the records of each script that has ended into ``OUT/records/*.tar``: scripts with an
alarm or a fault that was not named first into ``missed``, the others into ``named``. ``python -m
evidence.scripts_records OUT`` judges them again, prints what has changed, and writes the results
to ``OUT/again``, of which ``python -m evidence scripts --stage report --out OUT/again`` prints the
tables.
"""

from __future__ import annotations

import argparse
import atexit
import gzip
import io
import json
import lzma
import multiprocessing
import pickle
import tarfile
import threading
from pathlib import Path
from typing import Any

from evidence.scripts_list import Script, scripts
from evidence.scripts_report import Results, alarms, is_first

ARCHIVES, MOST = 4, 7 * 2**20  # how many there are of each kind, and bytes of each
SOLID = [{"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": 2**26}]


def record_name(script: str, what: str) -> str:
    """Return the name of a run's file."""
    return f"{script}__{what}.pkl.gz".replace(" ", "_").replace("/", "_")


def keep(file: str) -> None:
    """Write, at the end of this process, the records that were judged."""
    from castalia.diagnose.monitor import loop_doctor

    original, seen = loop_doctor.judge, {}

    def judge(record: Any, *args: Any, **kwargs: Any) -> Any:
        seen[id(record)] = record
        return original(record, *args, **kwargs)

    loop_doctor.judge = judge
    atexit.register(lambda: _write(file, list(seen.values())))


def _write(file: str, records: list[Any]) -> None:
    with gzip.open(file, "wb", compresslevel=1) as out:
        pickle.dump(records, out, protocol=4)


def judged(file: Path) -> Any:
    """Return the diagnosis of kept records by the rules of today."""
    from castalia.diagnose.rules import judge
    from castalia.diagnose.script.joint_diagnosis import joined

    return joined([(one.module, judge(one)) for one in loaded(file)])


def loaded(file: Path) -> list[Any]:
    """Return the records of a file."""
    with gzip.open(file) as kept:
        return pickle.load(kept)  # noqa: S301


def matters(script: Script, what: str, results: Results) -> bool:
    """Whether a run has an alarm, or a planted fault that was not named first."""
    if what == "doctor":
        return bool(alarms(script, results[script.name]))
    run = results[script.name][what]
    return "findings" in run and not is_first(script, what, results)


class Archives:
    """Archives of the records of a folder, which grow while its run goes on.

    Records of one script share rows and weights: they are compressed together.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.held: set[Path] = set()

    def add(self, script: Script, results: Results) -> None:
        """Put what a script has given since into an archive that has room for it."""
        runs = results.get(script.name, {})
        files = {what: self.folder / record_name(script.name, what) for what in runs}
        fresh = {what: one for what, one in files.items() if one.exists() and one not in self.held}
        if not fresh:
            return
        self.held.update(fresh.values())
        missed = any(matters(script, what, results) for what in fresh)
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for path in fresh.values():
                _put(archive, path.name, gzip.decompress(path.read_bytes()))
        small = lzma.compress(whole.getvalue(), filters=SOLID)
        with self.lock:
            for i in range(ARCHIVES):
                file = self.folder / f"{'missed' if missed else 'named'}.{i}.tar"
                if len(small) + (file.stat().st_size if file.exists() else 0) < MOST:
                    with tarfile.open(file, "a") as archive:
                        _put(archive, record_name(script.name, "all"), small)
                    return


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def unpack(folder: Path) -> None:
    """Write the single records that a folder's archives hold."""
    for file in folder.glob("*.tar"):
        with tarfile.open(file) as archive:
            scripts_of = [archive.extractfile(one).read() for one in archive]  # type: ignore[union-attr]
        for small in scripts_of:
            with tarfile.open(fileobj=io.BytesIO(lzma.decompress(small))) as records:
                for one in records:
                    with gzip.open(folder / one.name, "wb", compresslevel=1) as out:
                        out.write(records.extractfile(one).read())  # type: ignore[union-attr]


def again(folder: Path, jobs: int) -> None:
    """Judge what is kept once more, and print what is said otherwise than then."""
    results = json.loads((folder / "scripts.json").read_text())
    found = {
        (one.name, what): folder / "records" / record_name(one.name, what)
        for one in scripts()
        for what, run in results.get(one.name, {}).items()
        if "codes" in run
    }
    kept = [(*key, file) for key, file in found.items() if file.exists()]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for name, what, new in pool.imap(_judged_again, kept):
            then, now = (_said(one["findings"]) for one in (results[name][what], new))
            results[name][what] |= new
            if then != now:
                print(f"{name:36} {what:16} {then} → {now}", flush=True)  # noqa: T201
    (folder / "again").mkdir(exist_ok=True)
    (folder / "again" / "scripts.json").write_text(json.dumps(results))


def _judged_again(one: tuple[str, str, Path]) -> tuple[str, str, dict[str, Any]]:
    name, what, file = one
    return name, what, in_words(judged(file))


def in_words(diagnosis: Any) -> dict[str, Any]:
    """Return a diagnosis in a few words for each finding."""
    findings = [
        {
            "code": one.code,
            "severity": one.severity,
            "confidence": one.confidence,
            "where": one.where,
            "summary": one.summary,
            "evidence": [str(part) for part in one.evidence],
            "remedy": str(one.remedy),
        }
        for one in diagnosis.findings
    ]
    first = findings[0]["code"] if findings else "nothing"
    notes = list(diagnosis.notes)
    return {"findings": findings, "codes": list(diagnosis.codes), "first": first, "notes": notes}


def _said(findings: list[dict[str, Any]]) -> str:
    """Return the codes; remarks have a question mark."""
    return " ".join(f["code"] + "?" * (f["severity"] == "info") for f in findings) or "-"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--unpack", action="store_true", help="write single records first")
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    if asked.unpack:
        unpack(asked.out / "records")
    again(asked.out, asked.jobs)
