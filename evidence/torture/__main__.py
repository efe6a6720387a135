"""Kill processes and damage files for some minutes, and count what is lost: it must be nothing."""

import argparse
import importlib
import importlib.util
import os
import platform
import sys
import time

from evidence.torture import LOSSES, PARTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m evidence.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all parts together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    asked = parser.parse_args()
    found = [part for part in asked.only or PARTS if _there(part)]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    lost = 0
    for part in found:
        begin = time.monotonic()
        counts = importlib.import_module(f"evidence.torture.{part}").run(
            minutes=asked.minutes / len(found), seed=asked.seed
        )
        print(f"\n{part} ({time.monotonic() - begin:.0f} s)")
        print("\n".join(f"| {name} | {count:,} |" for name, count in counts.items()), flush=True)
        lost += sum(counts.get(name, 0) for name in LOSSES)
    return min(lost, 1)


def _there(part: str) -> bool:
    return importlib.util.find_spec(f"evidence.torture.{part}") is not None


if __name__ == "__main__":
    sys.exit(main())
