"""What the report shows of texts: continuations, hard passages, translations, informative words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from castalia.errors import CastaliaWarning
from castalia.method.answer_scores import Answers
from castalia.method.texts.passages import Passages
from castalia.method.texts.text_baselines import informative_words
from castalia.utils.bleu import bleu

__all__ = ["continuations", "hardest", "word_weights", "translations"]

PROMPT, WRITTEN = 60, 300  # characters of a prompt, tokens written behind it
SAMPLES = 2
SHOWN = 6
MOST_CLASSES = 20
TEMPERATURE = 0.8


def continuations(model: Any, test: Passages, seed: int) -> dict[str, Any]:
    """Let the model go on where tested passages begin."""
    places = np.linspace(0, len(test) - 1, SAMPLES).round().astype(int)
    samples = []
    for number, place in enumerate(dict.fromkeys(places.tolist())):
        prompt = _beginning(test.pieces[place])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CastaliaWarning)  # characters of the tested part only
            text = model.generate(
                prompt, WRITTEN, temperature=TEMPERATURE, random_state=seed + number
            )
        samples.append({"prompt": prompt, "text": text.removeprefix(prompt)})
    words = (
        f"The model was given the beginning of a tested passage and wrote on (temperature "
        f"{TEMPERATURE}). castalia generate RUN --prompt writes more."
    )
    return {"title": "How it writes", "words": words, "samples": samples}


def _beginning(text: str) -> str:
    """Return the first words of a text."""
    text = text.lstrip()
    if len(text) <= PROMPT:
        return text
    cut = max(text.rfind(" ", 0, PROMPT), text.rfind("\n", 0, PROMPT))
    return text[:cut] if cut > 0 else text[:PROMPT]


def hardest(test: Passages, answers: Answers) -> dict[str, Any]:
    """Show the passages that take most bits a character."""
    bits = answers.prediction[:, 0] / np.maximum(test.sizes(), 1)
    worst = np.argsort(-bits, kind="stable")[: SHOWN // 2]
    return {
        "title": "What it could not foresee",
        "words": "The tested passages that take most bits a character. Tables, names and other "
        "languages in the text often show up here.",
        "heads": ["Bits per character", "Passage"],
        "rows": [[round(float(bits[i]), 3), test.pieces[i]] for i in worst],
    }


def translations(
    sources: np.ndarray, references: np.ndarray, said: Sequence[str], names: tuple[str, str]
) -> list[dict[str, Any]]:
    """Show some translations, and the worst of them, beside their references."""
    scores = np.array([bleu([b], [a]).score for a, b in zip(said, references, strict=True)])
    some = np.unique(np.linspace(0, len(said) - 1, SHOWN).round().astype(int))
    worst = np.lexsort((-np.array([len(text) for text in sources]), scores))[: SHOWN // 2]
    heads = [names[0], f"{names[1]}, reference", f"{names[1]}, translated", "BLEU"]

    def rows(index: np.ndarray) -> list[list[Any]]:
        return [
            [str(sources[i]), str(references[i]), said[i], round(float(scores[i]), 1)]
            for i in index
        ]

    return [
        {
            "title": "Translations",
            "words": "Some of the tested pairs, not chosen by their scores. BLEU here is that of "
            "one sentence.",
            "heads": heads,
            "rows": rows(some),
        },
        {
            "title": "Worst translations",
            "words": "Pairs that do not belong together often show up here first.",
            "heads": heads,
            "rows": rows(worst),
        },
    ]


def word_weights(model: Any, classes: np.ndarray) -> dict[str, Any]:
    """Show the words that speak most for each class."""
    shown = classes.tolist()[:MOST_CLASSES]
    words = informative_words(model, shown)
    return {
        "title": "Most informative words",
        "words": "Words and pairs of words with the largest weights in the logistic regression. A "
        "word that should not matter, such as a name or a date, is a leak in the data.",
        "heads": ["Class", "Words"],
        "rows": [[str(c), ", ".join(w) or "none"] for c, w in zip(shown, words, strict=True)],
    }
