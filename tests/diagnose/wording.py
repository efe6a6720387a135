"""What is wrong with the words of a finding, as somebody reads them."""

import re

COUNTED = "rows|numbers|outputs|steps|columns|parameters|matrices|classes|units|batches|epochs"
PATTERNS = {
    "a share as a power of ten": re.compile(r"e[+-]\d+ %"),
    "digits that say nothing": re.compile(r"\d\.\d*[1-9]\d{6,}"),
    "two spaces": re.compile(r" {2}"),
    "no number": re.compile(r"\b(?:nan|inf|None(?! of))\b"),
    "one of several": re.compile(rf"(?<![\d.,])1 (?:{COUNTED})\b"),
    "stops in a row": re.compile(r"(?<!\.)\.\.(?!\.)|…\.|,,|;;"),
}


def defects(found):
    """Name what is wrong with the words of a finding."""
    words = [found.summary, str(found.remedy), *map(str, found.evidence)]
    wrong = [f"{name}: {w}" for name, one in PATTERNS.items() for w in words if one.search(w)]
    wrong += [f"beyond no limit: {one}" for one in found.evidence if not crosses(one)]
    if not found.evidence:
        wrong.append(f"no evidence: {found.summary}")
    if not found.summary.endswith("."):
        wrong.append(f"no sentence: {found.summary!r}")
    if not str(found.remedy).strip():
        wrong.append(f"no remedy: {found.summary}")
    return wrong


def crosses(evidence):
    """Whether a number lies on the side of its limit that the words claim."""
    if evidence.threshold is None:
        return True
    sign = 1 if evidence.above else -1
    return sign * evidence.value >= sign * evidence.threshold
