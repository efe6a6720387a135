"""What the tests of documents share: their text, names in backticks, links and counts in words."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "castalia"
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = {word: number for number, word in enumerate(WORDS, start=1)}


def document(name):
    return (ROOT / name).read_text(encoding="utf-8")


def sentence(text, pattern):
    """Return the match of a claim; a claim that is no longer there fails the test that reads it."""
    found = re.search(pattern, re.sub(r"\s+", " ", text))
    assert found, f"the document no longer says: {pattern}"
    return found


def quoted(text):
    """Return what stands in backticks, outside of blocks of code."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def missing_links(name):
    """Return the relative links of a document that lead nowhere, but into what is generated."""
    text = re.sub(r"```.*?```|`[^`\n]+`", "", document(name), flags=re.S)
    links = re.findall(r"\]\(([^)#]+)", text)
    here = (ROOT / name).parent
    return [
        link
        for link in links
        if not re.search(":|reference/|^../examples/", link) and not (here / link).exists()
    ]


def missing_files(text):
    """Return the files and folders in backticks that are neither at the root nor in the source."""
    paths = [w for w in quoted(text) if re.fullmatch(r"[\w/.-]+(/|\.(py|md|toml))", w)]
    return [path for path in paths if not any(_places(path))]


def _places(path):
    yield from (place / path for place in (ROOT, SOURCE.parent, SOURCE) if (place / path).exists())
    yield from SOURCE.rglob(path.strip("/"))
