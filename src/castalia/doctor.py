"""``python -m castalia.doctor train.py``: the same as ``castalia doctor train.py``."""

import sys

from castalia.cli.app import app

__all__ = ["main"]


def main() -> None:
    """Run ``castalia doctor`` with the arguments of this process."""
    app(["doctor", *sys.argv[1:]], prog_name="castalia")


if __name__ == "__main__":
    main()
