"""BPE with 32,000 pieces on 30 MB: our tokenizer against the `tokenizers` package it runs on."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    characters: int
    pieces: int
    rounds: int


SIZES = {
    "full": Size(30_000_000, 32_000, 5),
    "quick": Size(2_000_000, 8_000, 3),
    "tiny": Size(20_000, 400, 1),
}


def texts(characters: int) -> tuple[list[str], str]:
    """Lines of about a thousand characters: of text8 where it is there, otherwise invented."""
    from castalia.data.text.text_datasets import load_text
    from castalia.errors import InvalidData

    try:
        words = load_text("text8")[:characters].split()
        name = "text8"
    except InvalidData:
        words, name = _invented(characters), "invented words"
    return [" ".join(words[i : i + 180]) for i in range(0, len(words), 180)], name


def _invented(characters: int) -> list[str]:
    """Words of Zipf's frequencies."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    sizes = rng.integers(2, 11, min(50_000, characters // 10))
    known = ["".join(rng.choice(letters, size)) for size in sizes]
    chance = 1 / np.arange(1, len(known) + 1)
    drawn = rng.choice(len(known), size=characters // 7, p=chance / chance.sum())
    return [known[i] for i in drawn]


def run(scale: str = "full") -> Report:
    """Time training and encoding, each side with the same settings and the same lines."""
    size = SIZES[scale]
    lines, name = texts(size.characters)
    sides = {"castalia": Ours(size.pieces), "tokenizers": Theirs(size.pieces)}
    found, parts, bars = {}, [], []
    for step in ("train", "encode"):
        contenders = [
            Contender(side, _timed(getattr(made, step), lines)) for side, made in sides.items()
        ]
        found[step] = race(contenders, size.rounds, warm_up=1)
        parts.append(f"### {step}\n\n{table(found[step], 'tokenizers', 'checksum')}")
        over = ratio(found[step]["castalia"], found[step]["tokenizers"], "wall").median
        bars.append(Bar(f"{step}: wall time over `tokenizers`", over, "<=", 1.05))
    figures = {step: {n: vars(r) for n, r in results.items()} for step, results in found.items()}
    setting = (
        f"{sum(map(len, lines)):,} characters of {name} in {len(lines):,} lines, {size.pieces:,} "
        f"pieces, {size.rounds} rounds. Equal checksums: the same merges and the same ids."
    )
    return Report("tokenizer", setting, "\n\n".join(parts), bars, figures)


def _timed(act: Callable[[list[str]], Any], lines: list[str]) -> Callable[[], Any]:
    def timed() -> Callable[[], float]:
        result = act(lines)
        return lambda: float(zlib.crc32(repr(result).encode()) % 10**6)

    return timed


class Ours:
    """Our face."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def train(self, lines: list[str]) -> str:
        from castalia.data.tokenizers import ByteBPETokenizer

        self.made = ByteBPETokenizer(vocabulary_size=self.pieces, min_count=2).fit(lines)
        return self.made.backend_.to_str()

    def encode(self, lines: list[str]) -> list[list[int]]:
        return self.made.encode(lines)


class Theirs:
    """The package by itself, as its documentation shows."""

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces

    def train(self, lines: list[str]) -> str:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        self.made = Tokenizer(models.BPE())
        self.made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        self.made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=self.pieces,
            min_frequency=2,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        self.made.train_from_iterator(lines, trainer)
        return self.made.to_str()

    def encode(self, lines: list[str]) -> list[list[int]]:
        return [found.ids for found in self.made.encode_batch_fast(lines)]


if __name__ == "__main__":
    main(run)
