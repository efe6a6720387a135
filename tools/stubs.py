"""Write ``src/castalia/__init__.pyi``, so that editors and type checkers see the lazy names."""

from pathlib import Path

import castalia
from castalia.catalog import SYSTEMS

__all__ = ["FILE", "stub_text"]

FILE = Path(__file__).parents[1] / "src" / "castalia" / "__init__.pyi"


def stub_text() -> str:
    """Return one import for every name that ``castalia.__getattr__`` finds."""
    homes = dict(castalia._NAMES)
    homes |= {name: record.path.partition(":")[0] for name, record in SYSTEMS.items()}
    homes |= dict.fromkeys(castalia._PACKAGES, "castalia")
    lines = sorted(f"from {home} import {name} as {name}" for name, home in homes.items())
    head = ["# Written by tools/stubs.py: the names that are loaded when first used."]
    tail = ["", "__version__: str", "__all__: list[str]", ""]
    return "\n".join([*head, "# ruff: noqa: I001", *lines, *tail])


if __name__ == "__main__":
    FILE.write_text(stub_text(), encoding="utf-8")
