"""Text normalisation before tokens are cut: composing, lower case, accents, spaces, controls.

Whatever order the steps are named in, they run in the one order in which running them twice
changes nothing: controls, accents, lower case, composition, spaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers import Regex, normalizers

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["NORMALISATIONS", "check_steps", "normalise", "normaliser"]

NORMALISATIONS = {
    "controls": "control characters but tab and line ends are taken out",
    "accents": "letters lose their accents",
    "lowercase": "capitals become small letters",
    "nfc": "a letter and its accents become one character",
    "nfkc": "as nfc, and forms that only look different (ligatures, full width) become one",
    "spaces": "every run of white space becomes one space, none at the ends",
}


def normalise(text: str, steps: Sequence[str]) -> str:
    """Return a text after some steps of `NORMALISATIONS`.

    Examples
    --------
    >>> normalise("  Café  au LAIT", ["lowercase", "accents", "spaces"])
    'cafe au lait'
    """
    made = normaliser(steps)
    return text if made is None else str(made.normalize_str(text))


def normaliser(steps: Sequence[str]) -> Any:
    """Return the steps as a normaliser of the `tokenizers` package; None when there are none."""
    chosen = set(check_steps(steps))
    form = "nfkc" if "nfkc" in chosen else "nfc"
    parts: list[Any] = []
    if "controls" in chosen:
        parts.append(normalizers.Replace(Regex(r"[\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F]"), ""))
    if "accents" in chosen:
        parts += [normalizers.NFKD() if form == "nfkc" else normalizers.NFD()]
        parts += [normalizers.StripAccents()]
    if "lowercase" in chosen:
        parts += [normalizers.NFKC()] if form == "nfkc" else []
        parts += [normalizers.Lowercase()]
        parts += [normalizers.StripAccents()] if "accents" in chosen else []  # İ gives i and a dot
    if chosen & {"accents", "nfc", "nfkc"}:
        parts.append(normalizers.NFKC() if form == "nfkc" else normalizers.NFC())
    if "spaces" in chosen:
        parts += [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    return normalizers.Sequence(parts) if parts else None


def check_steps(steps: Sequence[str]) -> tuple[str, ...]:
    """Return the names, or say which is unknown."""
    named = (steps,) if isinstance(steps, str) else tuple(steps)
    for step in named:
        if step not in NORMALISATIONS:
            raise InvalidParameter(
                f"Tokenizer: `normalise` must be among {listing(NORMALISATIONS, 'and')}; got "
                f"{step!r}.{did_you_mean(str(step), NORMALISATIONS)}"
            )
    return named
