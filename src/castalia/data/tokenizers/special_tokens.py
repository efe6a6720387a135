"""Special tokens: their ids are fixed by their order, and nothing in a text turns into one."""

from __future__ import annotations

from collections.abc import Sequence

from castalia.errors import InvalidParameter

__all__ = ["ROLES", "check_special", "sentinels", "token_of"]

# What a token is for, inferred from its name; the first name that is there counts.
ROLES = {
    "pad": ("<pad>", "[PAD]"),
    "unknown": ("<unk>", "[UNK]"),
    "begin": ("<s>", "<bos>", "[BOS]", "[CLS]", "<|startoftext|>", "<|endoftext|>"),
    "end": ("</s>", "<eos>", "[EOS]", "[SEP]", "<|endoftext|>"),
    "mask": ("<mask>", "[MASK]"),
}


def token_of(role: str, special: Sequence[str]) -> str | None:
    """Return the special token that plays a role, or None.

    >>> token_of("end", ("<pad>", "</s>"))
    '</s>'
    """
    return next((name for name in ROLES[role] if name in special), None)


def sentinels(count: int) -> tuple[str, ...]:
    """Return the sentinels of span corruption, as T5 names them.

    >>> sentinels(2)
    ('<extra_id_0>', '<extra_id_1>')
    """
    return tuple(f"<extra_id_{number}>" for number in range(count))


def check_special(special: Sequence[str]) -> tuple[str, ...]:
    """Return the special tokens, or say what is wrong with them."""
    names = tuple(special) if not isinstance(special, str) else (special,)
    wrong = [name for name in names if not isinstance(name, str) or not name]
    double = [name for name in names if names.count(name) > 1]
    if wrong or double:
        raise InvalidParameter(
            "Tokenizer: `special` must be different words that are not empty; got "
            f"{(wrong or double)[0]!r}{' twice' if double and not wrong else ''}."
        )
    return names
