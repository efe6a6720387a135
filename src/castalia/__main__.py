"""``python -m castalia``: the same as ``castalia``."""

from castalia.cli import main

if __name__ == "__main__":
    main()
