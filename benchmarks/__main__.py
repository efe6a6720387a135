"""Run benchmarks by name, each in a process of its own; without names, all of them."""

import argparse
import subprocess
import sys

from benchmarks import NAMES
from benchmarks.harness import one_thread_environment


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: to try the scripts out")
    asked, rest = parser.parse_known_args()  # the rest goes to the benchmark: memory --rows 1000000
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    if rest and len(asked.names) != 1:
        parser.error(f"{' '.join(rest)} needs exactly one benchmark's name")
    options = ["--quick"] * asked.quick + rest
    failed = 0
    for name in asked.names or NAMES:
        command = [sys.executable, "-m", f"benchmarks.{name}", *options]
        failed += subprocess.run(command, env=one_thread_environment()).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
