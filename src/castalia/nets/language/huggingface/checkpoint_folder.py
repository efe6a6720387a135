"""Folders as Hugging Face's libraries write them: a configuration, weights, a tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import parse_json, read_regular
from castalia.utils.text import listing, plural

__all__ = ["read_config", "read_weights", "vocabulary_size", "write_config", "write_weights"]

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what ``config.json`` of a folder says."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidData(f"load_pretrained: `path` must be a folder; got '{folder}'.")
    file = folder / "config.json"
    if not file.is_file():
        raise InvalidData(
            f"load_pretrained: '{folder}' must hold `config.json`; it has {_contents(folder)}."
        )
    return _json(file)


def read_weights(folder: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Return the tensors of a folder by name, from one file or from all its shards."""
    folder = Path(folder)
    if (folder / WHOLE).is_file():
        return _tensors(folder / WHOLE)
    if (folder / INDEX).is_file():
        return _shards(folder)
    pickles = sorted(file.name for file in folder.glob("*.bin"))
    if pickles:
        raise CheckpointMismatch(
            f"load_pretrained: '{folder}' must hold `{WHOLE}`; got `{pickles[0]}`, a pickle, which "
            "can run code when it is opened. If you trust it, convert it once with "
            "`transformers.AutoModel.from_pretrained(path).save_pretrained(new_path)`."
        )
    raise InvalidData(
        f"load_pretrained: '{folder}' must hold `{WHOLE}` or `{INDEX}`; it has {_contents(folder)}."
    )


def vocabulary_size(folder: str | os.PathLike[str]) -> int | None:
    """Return how many tokens the tokenizer of a folder needs, or None where there is none."""
    file = Path(folder) / "tokenizer.json"
    if not file.is_file():
        return _listed(Path(folder))
    found = _json(file)
    try:
        vocabulary = found["model"]["vocab"]  # a mapping to numbers; for Unigram a list of pairs
        numbers = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
        added = [token["id"] for token in found.get("added_tokens") or []]
        return int(max([-1, *numbers, *added])) + 1
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DamagedFile(f"load_pretrained: '{file}' must be a tokenizer's JSON.") from None


def _listed(folder: Path) -> int | None:
    """Return the size of a vocabulary in ``vocab.txt`` or ``vocab.json``."""
    if (folder / "vocab.txt").is_file():
        with (folder / "vocab.txt").open("rb") as lines:
            return sum(1 for _ in lines)
    if not (folder / "vocab.json").is_file():
        return None
    numbers = _json(folder / "vocab.json").values()
    return max((i for i in numbers if type(i) is int), default=-1) + 1


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """Write ``config.json``."""
    with writing("save_pretrained", folder):
        atomic_write(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")


def write_weights(folder: Path, weights: Mapping[str, Tensor], shard_bytes: int) -> None:
    """Write tensors as one file or, where they are larger than ``shard_bytes``, as several."""
    groups = _groups(weights, shard_bytes)
    names = [WHOLE]
    if len(groups) > 1:
        total = len(groups)
        names = [f"model-{i + 1:05d}-of-{total:05d}.safetensors" for i in range(total)]
    with writing("save_pretrained", folder):
        for name, group in zip(names, groups, strict=True):
            tensors = {key: weights[key].detach().cpu().contiguous() for key in group}
            atomic_write(folder / name, save(tensors, metadata={"format": "pt"}))
        if len(groups) > 1:
            places = {key: name for name, group in zip(names, groups, strict=True) for key in group}
            size = sum(_bytes(tensor) for tensor in weights.values())
            index = {"metadata": {"total_size": size}, "weight_map": places}
            atomic_write(folder / INDEX, json.dumps(index, indent=2) + "\n")


def _groups(weights: Mapping[str, Tensor], limit: int) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    size = 0
    for key, tensor in weights.items():
        if groups[-1] and size + _bytes(tensor) > limit:
            groups.append([])
            size = 0
        groups[-1].append(key)
        size += _bytes(tensor)
    return groups


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _json(file: Path) -> dict[str, Any]:
    try:
        found = parse_json(read_regular(file))
    except (OSError, ValueError) as error:  # a number too long is a ValueError
        raise DamagedFile(f"load_pretrained: '{file}' must be JSON; it is not ({error}).") from None
    if not isinstance(found, dict):
        raise DamagedFile(f"load_pretrained: '{file}' must hold a JSON object.")
    return found


def _tensors(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise DamagedFile(
            f"load_pretrained: '{file}' must be a whole safetensors file; reading it failed "
            f"({error}). Fetch it again."
        ) from None


def _shards(folder: Path) -> dict[str, Tensor]:
    places = _json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict):
        raise DamagedFile(f"load_pretrained: '{folder / INDEX}' must hold a `weight_map`.")
    files = sorted({Path(str(name)).name for name in places.values()})  # a name, never a path
    absent = [name for name in files if not (folder / name).is_file()]
    if absent:
        raise InvalidData(
            f"load_pretrained: '{folder}' must hold all {plural(len(files), 'shard')}; "
            f"{listing(absent, 'and')} {'is' if len(absent) == 1 else 'are'} not there. Fetch them."
        )
    return {key: tensor for name in files for key, tensor in _tensors(folder / name).items()}


def _contents(folder: Path) -> str:
    return listing(sorted(file.name for file in folder.iterdir()), "and")
