"""Train on real data and print Markdown rows; without names, everything."""

import argparse
import importlib
import sys

from evidence import GPU, NAMES

OPTIONS = (
    "defaults",
    "doctor_calibration",
    "noise_tables",
    "scripts",
    "small_texts",
)  # those with options of their own


def main() -> None:
    if sys.argv[1:2] and sys.argv[1] in OPTIONS:
        importlib.import_module(f"evidence.{sys.argv[1]}").run(words=sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m evidence", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--quick", action="store_true", help="few seeds and epochs: a trial run")
    parser.add_argument("--gpu", action="store_true", help=f"those for a GPU: {', '.join(GPU)}")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no evidence {unknown[0]!r}; there are {', '.join(NAMES)}")
    for name in asked.names or (GPU if asked.gpu else NAMES):
        importlib.import_module(f"evidence.{name}").run(quick=asked.quick)


if __name__ == "__main__":
    main()
