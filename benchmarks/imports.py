"""How long a newcomer waits for ``import castalia`` and for ``castalia --help``."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.harness import Bar, Report, Spread, installed, main

ROUNDS = {"full": 7, "quick": 3, "tiny": 1}

IMPORT = "import castalia"
HELP = "import sys; sys.argv = ['castalia', '--help']; from castalia.cli import main; main()"
TIMED = "import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"


def run(scale: str = "full") -> Report:
    """Start fresh processes; a process that does nothing is measured beside them."""
    bare, whole, inside, helped = [], [], [], []
    has_command = installed("castalia.cli")
    for _ in range(ROUNDS[scale]):
        bare.append(seconds("pass"))
        whole.append(seconds(IMPORT))
        inside.append(float(_python(TIMED.format(IMPORT)).stdout))
        if has_command:
            helped.append(seconds(HELP))
    rows = {
        "python -c pass, whole process": bare,
        "import castalia, whole process": whole,
        "import castalia, the statement alone": inside,
        "castalia --help, whole process": helped,
    }
    bars = [
        Bar("import castalia", Spread.of(inside).median, "<=", 0.15, " s"),
        Bar("import castalia brings in torch (1 = yes)", float(imports_torch(IMPORT)), "<=", 0),
    ]
    if has_command:
        bars += [
            Bar("castalia --help", Spread.of(helped).median, "<=", 0.4, " s"),
            Bar("castalia --help brings in torch (1 = yes)", float(imports_torch(HELP)), "<=", 0),
        ]
    lines = ["| what | s, best | s, median (min–max) |", "|---|---|---|"]
    lines += [f"| {k} | {min(v):.3f} | {Spread.of(v):.3f} |" for k, v in rows.items() if v]
    setting = f"Fresh processes, {ROUNDS[scale]} rounds."
    return Report("imports", setting, "\n".join(lines), bars, rows)


def seconds(code: str) -> float:
    """Seconds a fresh Python takes to run a line."""
    start = time.perf_counter()
    _python(code)
    return time.perf_counter() - start


def imports_torch(code: str) -> bool:
    """Whether a line imports torch, by Python's own report of its imports."""
    found = _python(code, "-X", "importtime").stderr
    return any(line.rpartition("|")[2].strip() == "torch" for line in found.splitlines())


def _python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True)


if __name__ == "__main__":
    main(run)
