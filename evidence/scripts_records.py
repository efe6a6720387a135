"""What the doctor saw of public scripts, kept so that later rules can judge it without a run.

``python -m evidence.scripts_records OUT`` judges the records of a run again and prints what has
changed; with ``--pack FILE`` it puts those that matter into archives ``FILE.0`` and so on: scripts
with an alarm, and planted faults that were not named first.
"""

from __future__ import annotations

import argparse
import atexit
import gzip
import json
import pickle
import tarfile
from pathlib import Path
from typing import Any

from evidence.scripts_list import Script, scripts
from evidence.scripts_report import Results, alarms, is_first

ARCHIVES, MOST = 3, 14 * 2**20  # how many there are, and bytes of each


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

    with gzip.open(file) as kept:
        records = pickle.load(kept)  # noqa: S301
    return joined([(one.module, judge(one)) for one in records])


def matters(script: Script, what: str, results: Results) -> bool:
    """Whether a run has an alarm, or a planted fault that was not named first."""
    if what == "doctor":
        return bool(alarms(script, results[script.name]))
    run = results[script.name][what]
    return "findings" in run and not is_first(script, what, results)


def pack(folder: Path, file: Path) -> None:
    """Put the records that matter into an archive, those of scripts as they are first."""
    results = json.loads((folder / "scripts.json").read_text())
    found = [
        folder / "records" / record_name(one.name, what)
        for one in scripts()
        for what in sorted(results.get(one.name, {}), key=lambda what: what != "doctor")
        if what not in ("scan", "plain") and matters(one, what, results)
    ]
    found.sort(key=lambda path: "__doctor" not in path.name)
    for i in range(ARCHIVES):
        left = MOST
        with tarfile.open(f"{file}.{i}", "w") as archive:
            for path in [one for one in found if one.exists()]:
                if path.stat().st_size < left:
                    left -= path.stat().st_size
                    archive.add(path, path.name)
                    found.remove(path)


def again(folder: Path) -> None:
    """Judge what is kept once more, and print it beside what was said then."""
    results = json.loads((folder / "scripts.json").read_text())
    for one in scripts():
        for what, run in results.get(one.name, {}).items():
            file = folder / "records" / record_name(one.name, what)
            if file.exists() and "codes" in run:
                said = judged(file)
                then = [_word(f["code"], f["severity"]) for f in run["findings"]]
                now = [_word(f.code, f.severity) for f in said.findings]
                line = f"{one.name:36} {what:16} {' '.join(then) or '-'} → {' '.join(now) or '-'}"
                print(line)  # noqa: T201


def _word(code: str, severity: str) -> str:
    """A remark has a question mark."""
    return code + "?" * (severity == "info")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pack", type=Path)
    asked = parser.parse_args()
    again(asked.out) if asked.pack is None else pack(asked.out, asked.pack)
