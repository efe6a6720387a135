"""Tokenizers of folders that hold no ``tokenizer.json``, only lists of their pieces.

``vocab.txt`` is BERT's word pieces; ``vocab.json`` with ``merges.txt`` is GPT-2's byte BPE, or
RoBERTa's and BART's, which have ``<s>`` and ``</s>``. What ``tokenizer_config.json`` says about
capitals, accents and a first space is followed, as transformers does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tokenizers as rust
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from castalia.errors import DamagedFile, InvalidData
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["backend_of_files", "has_tokenizer"]

PIECES, TABLE, MERGES = "vocab.txt", "vocab.json", "merges.txt"
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
GPT2 = ("<|endoftext|>",)


def has_tokenizer(folder: Path) -> bool:
    """Say whether a folder holds a tokenizer in any of the known files."""
    both = (folder / TABLE).is_file() and (folder / MERGES).is_file()
    return both or any((folder / name).is_file() for name in ("tokenizer.json", PIECES))


def backend_of_files(folder: Path, said: dict[str, Any]) -> Any:
    """Return the backend of a folder without ``tokenizer.json``.

    Parameters
    ----------
    folder
        Holds ``vocab.txt``, or ``vocab.json`` and ``merges.txt``.
    said
        What ``tokenizer_config.json`` says.
    """
    try:
        if (folder / PIECES).is_file():
            return _wordpiece(folder, said)
        if (folder / TABLE).is_file() and (folder / MERGES).is_file():
            return _byte_bpe(folder, said)
    except (DamagedFile, MemoryError):
        raise
    except Exception as error:  # the package raises bare ones
        raise DamagedFile(
            f"Tokenizer.load: the vocabulary in '{folder}' must be whole; reading it failed "
            f"({error})."
        ) from error
    raise InvalidData(
        f"Tokenizer.load: '{folder}' must hold `tokenizer.json`, `{PIECES}`, or `{TABLE}` and "
        f"`{MERGES}`."
    )


def _wordpiece(folder: Path, said: dict[str, Any]) -> Any:
    names = read_regular(folder / PIECES).decode("utf-8").split("\n")
    names = names[:-1] if names[-1] == "" else names
    vocabulary = {name.rstrip("\r"): place for place, name in enumerate(names)}
    made = rust.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(
        lowercase=_flag(said, "do_lower_case", True),
        strip_accents=_flag(said, "strip_accents", None),
        handle_chinese_chars=_flag(said, "tokenize_chinese_chars", True),
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens([name for name in BERT if name in vocabulary])
    end, begin = ((name, vocabulary[name]) for name in ("[SEP]", "[CLS]"))
    made.post_processor = processors.BertProcessing(end, begin)
    return made


def _byte_bpe(folder: Path, said: dict[str, Any]) -> Any:
    vocabulary = _table(folder / TABLE)
    lines = read_regular(folder / MERGES).decode("utf-8").split("\n")
    lines = lines[1:] if lines[0].startswith("#version") else lines
    merges = [tuple(line.rstrip("\r").split(" ")) for line in lines if line.strip()]
    made = rust.Tokenizer(models.BPE(vocabulary, merges))  # type: ignore[arg-type]
    space = _flag(said, "add_prefix_space", False)
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    made.decoder = decoders.ByteLevel()
    if not {"<s>", "</s>"} <= vocabulary.keys():
        made.add_special_tokens([name for name in GPT2 if name in vocabulary])
        made.post_processor = processors.ByteLevel(trim_offsets=False)
        return made
    made.add_special_tokens(
        [
            rust.AddedToken(name, lstrip=name == "<mask>", special=True)
            for name in ROBERTA
            if name in vocabulary
        ]
    )
    end, begin = ((name, vocabulary[name]) for name in ("</s>", "<s>"))
    made.post_processor = processors.RobertaProcessing(end, begin, add_prefix_space=space)
    return made


def _table(file: Path) -> dict[str, int]:
    found = parse_json(read_regular(file))
    plain = isinstance(found, dict) and all(type(i) is int for i in found.values())
    if not plain or not all(0 <= i < 2**24 for i in found.values()):
        raise DamagedFile(f"Tokenizer.load: '{file}' must map pieces to their numbers.")
    return dict(found)


def _flag(said: dict[str, Any], name: str, default: bool | None) -> Any:
    found = said.get(name)
    if found is None:
        return default
    if type(found) is not bool:
        raise DamagedFile(
            f"Tokenizer.load: `{name}` of tokenizer_config.json must be true or false; got "
            f"{str(found)[:40]!r}."
        )
    return found
