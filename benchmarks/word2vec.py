"""Skip-gram with negative sampling: words a second against gensim with as many workers.

Both read the same sentences and run the same settings; each time is that of a whole fit, reading
the vocabulary included. Scores: WordSim-353 (Spearman) and word2vec's analogies, means over the
rounds, each of which has a seed of its own. Without gensim only our side is timed, and no bar is
judged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Bar, Contender, Report, Spread, installed, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    characters: int
    dim: int
    epochs: int
    rounds: int
    threads: int = 2


SIZES = {
    "full": Size(30_000_000, 100, 5, 3),
    "quick": Size(3_000_000, 100, 1, 1),
    "tiny": Size(20_000, 10, 1, 1),
}
WINDOW, NEGATIVE, SUBSAMPLE, MIN_COUNT, SENTENCE = 5, 5, 1e-3, 5, 1000


def sentences(characters: int) -> tuple[list[list[str]], str]:
    """Sentences of a thousand words: of text8 where it is there, otherwise invented."""
    from castalia.data.text.text_datasets import load_text
    from castalia.errors import InvalidData

    try:
        words, name = load_text("text8")[:characters].split(), "text8"
    except InvalidData:
        chance = 1 / np.arange(1, 5001)
        drawn = np.random.default_rng(0).choice(5000, characters // 6, p=chance / chance.sum())
        words, name = [f"w{i}" for i in drawn], "invented words"
    return [words[i : i + SENTENCE] for i in range(0, len(words), SENTENCE)], name


def run(scale: str = "full") -> Report:
    """Time whole fits in turns and score the vectors of every round."""
    size = SIZES[scale]
    texts, name = sentences(size.characters)
    n_words = sum(map(len, texts)) * size.epochs
    made: dict[str, list[Any]] = {side: [] for side in _sides(size)}
    contenders = [
        Contender(side, _fit(act, texts, made[side])) for side, act in _sides(size).items()
    ]
    found = race(contenders, size.rounds, warm_up=0 if scale == "full" else 1)
    scores = {side: judged(vectors) for side, vectors in made.items()}
    speeds = {side: n_words / np.median(result.wall) for side, result in found.items()}
    lines = [
        f"| {side} | {speed:,.0f} | {Spread.of(scores[side]['WordSim-353']):.4f} | "
        f"{Spread.of(scores[side]['analogies']):.4f} |"
        for side, speed in speeds.items()
    ]
    head = "| contender | words/s | WordSim-353 | analogies |\n|---|---|---|---|\n"
    text = f"{head}{chr(10).join(lines)}\n\n{table(found, 'castalia', 'score')}"
    figures = {side: {**vars(found[side]), "words/s": speeds[side]} | scores[side] for side in made}
    said = "" if "gensim" in made else " gensim is not installed: nothing to compare with."
    setting = (
        f"{n_words // size.epochs:,} words of {name}, {size.epochs} epochs, dim {size.dim}, window "
        f"{WINDOW}, {NEGATIVE} noise words, subsampling {SUBSAMPLE:g}, {size.threads} threads, "
        f"{size.rounds} rounds.{said}"
    )
    return Report("word2vec", setting, text, _bars(found, scores), figures)


def _bars(found: dict[str, Any], scores: dict[str, dict[str, list[float]]]) -> list[Bar]:
    if "gensim" not in found:
        return []
    bars = []
    for side, bound in (("castalia", 1.0), ("castalia on CUDA", 10.0)):
        if side in found:
            faster = ratio(found["gensim"], found[side], "wall").median
            bars.append(Bar(f"{side}: words/s over gensim", faster, ">=", bound))
            bars += [
                Bar(
                    f"{side}: {what}, less gensim's",
                    float(np.mean(scores[side][what]) - np.mean(theirs)),
                    ">=",
                    0.0,
                )
                for what, theirs in scores["gensim"].items()
                if not np.isnan(theirs).any()
            ]
    return bars


def _fit(act: Callable[[Any, int], Any], texts: Any, made: list[Any]) -> Callable[[], None]:
    def timed() -> None:
        made.append(act(texts, len(made)))

    return timed


def _sides(size: Size) -> dict[str, Callable[[Any, int], Any]]:
    import torch

    sides: dict[str, Callable[[Any, int], Any]] = {
        "castalia": lambda texts, seed: ours(texts, size, "cpu", seed)
    }
    if installed("gensim"):
        sides["gensim"] = lambda texts, seed: theirs(texts, size, seed)
    if torch.cuda.is_available():
        sides["castalia on CUDA"] = lambda texts, seed: ours(texts, size, "cuda", seed)
    return sides


def ours(texts: list[list[str]], size: Size, device: str, seed: int) -> Any:
    import torch

    from castalia.models.language import Word2Vec

    before = torch.get_num_threads()
    torch.set_num_threads(size.threads)
    try:
        return Word2Vec(
            dim=size.dim,
            window=WINDOW,
            negative=NEGATIVE,
            subsample=SUBSAMPLE,
            min_count=MIN_COUNT,
            epochs=size.epochs,
            device=device,
            random_state=seed,
        ).fit(texts)
    finally:
        torch.set_num_threads(before)


def theirs(texts: list[list[str]], size: Size, seed: int) -> Any:
    from gensim.models import Word2Vec

    from castalia.data.word_vectors import WordVectors

    made = Word2Vec(
        texts,
        vector_size=size.dim,
        window=WINDOW,
        negative=NEGATIVE,
        sample=SUBSAMPLE,
        min_count=MIN_COUNT,
        epochs=size.epochs,
        sg=1,
        workers=size.threads,
        seed=seed + 1,
    )
    return WordVectors(made.wv.index_to_key, made.wv.vectors)


def judged(rounds: list[Any]) -> dict[str, list[float]]:
    """Scores of the vectors of every round."""
    found = [judge(vectors) for vectors in rounds]
    return {what: [each[what] for each in found] for what in found[0]}


def judge(vectors: Any) -> dict[str, float]:
    """Score vectors, where CASTALIA_DATA holds people's judgements; NaN otherwise."""
    from castalia.data.word_vectors import read_analogies, read_similarities
    from castalia.errors import InvalidData

    folder = Path(os.environ.get("CASTALIA_DATA", "")) / "word-vectors"
    try:
        alike = vectors.evaluate_similarity(read_similarities(folder / "EN-WS-353-ALL.txt"))
        asked = vectors.evaluate_analogies(read_analogies(folder / "questions-words.txt.gz"))
    except InvalidData:
        return {"WordSim-353": float("nan"), "analogies": float("nan")}
    return {"WordSim-353": alike["correlation"], "analogies": asked["total"]}


if __name__ == "__main__":
    main(run)
