"""The doctor's page about each finding, as it stands in ``docs/findings``.

The pages are edited there; a built package carries a copy beside this file.
"""

from __future__ import annotations

from pathlib import Path

from castalia.errors import InvalidData, InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["finding_page", "known_pages"]

BESIDE = Path(__file__).with_name("pages")  # where the wheel puts them
AT_ROOT = Path(__file__).parents[3] / "docs" / "findings"  # of a checkout


def finding_page(code: str) -> str:
    """Return the page about a finding, in Markdown.

    Parameters
    ----------
    code
        Such as ``"CST103"``; small letters will do.

    Examples
    --------
    >>> finding_page("cst103").splitlines()[0]
    '# CST103 vanishing-gradient'
    """
    pages = known_pages()
    path = pages.get(code.upper())
    if path is None:
        near = did_you_mean(code.upper(), pages)
        raise InvalidParameter(
            f"explain: a finding must be one of {listing(pages, 'or', 6)}; got {code!r}.{near}"
        )
    return path.read_text(encoding="utf-8")


def known_pages() -> dict[str, Path]:
    """Return the files of the pages by code, of this installation."""
    for folder in (BESIDE, AT_ROOT):
        found = {path.stem: path for path in sorted(folder.glob("CST*.md"))}
        if found:
            return found
    raise InvalidData(
        f"explain: the pages of findings must be at `{BESIDE}` or `{AT_ROOT}`; found neither. "
        "Reinstall castalia."
    )
