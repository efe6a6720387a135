"""Shakespeare letter by letter: counting, a recurrent network and a transformer.

Three models predict the next character of plays. Counts are made in a moment and are hard to beat
on little text; the networks go on learning. Text is drawn from softmax(logits / temperature): cool,
it says the usual in words that exist; hot, it makes words up.

The plays are tiny Shakespeare where it is in the cache, else the beginning of Coriolanus.
References: 2015, Karpathy, The unreasonable effectiveness of recurrent neural networks; 1951,
Shannon, Prediction and entropy of printed English.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from castalia.data.text.text_datasets import load_text
from castalia.data.tokenizers import CharTokenizer
from castalia.errors import InvalidData
from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.models.language import GPTLanguageModel, NGramLanguageModel, RNNLanguageModel
from castalia.train import Training
from castalia.utils.figure_style import COLOURS, INK, caption, whole_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["known_words", "plays", "run", "samples", "whole_words"]

ORDERS = (1, 2, 3, 5)
TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)
SHOWN = (0.25, 0.75, 1.5)
LONG = 60  # characters of a sample, few enough for the transformer's context


def plays(size: int, held: int) -> tuple[str, str, str]:
    """Return a name, a text of so many characters to learn from, and one to test on."""
    try:
        name, text = "tiny Shakespeare", load_text("tinyshakespeare")
    except InvalidData:
        file = files("castalia.data") / "files" / "coriolanus.txt"
        name, text = "Coriolanus", file.read_text(encoding="utf-8")
    return name, text[held:][:size], text[:held]


def models(test: str, quick: bool) -> dict[str, Any]:
    """Return the models, not yet fitted; networks log their test loss as they train."""
    common: dict[str, Any] = {
        "tokenizer": "characters",
        "training": Training(validation=([test], None), verbose=False),
        "batch_size": 16,
        "epochs": 2 if quick else 6,
        "context": LONG + 4,
        "random_state": 0,
    }
    wide = 32 if quick else 64
    counted = {
        f"{n}-gram": NGramLanguageModel(order=n, tokenizer=CharTokenizer(), boundaries=False)
        for n in ORDERS
    }
    return counted | {
        "LSTM": RNNLanguageModel(hidden=2 * wide, lr=1e-2, **common),
        "GPT": GPTLanguageModel(dim=wide, depth=2, heads=2, dropout=0.0, lr=5e-3, **common),
    }


def samples(model: Any, temperature: float, count: int) -> list[str]:
    """Return so many continuations of the name of who speaks."""
    if isinstance(model, NGramLanguageModel):
        return [
            model.generate("\n", LONG, temperature=temperature, random_state=i)[1:]
            for i in range(count)
        ]
    prompts = ["\n"] * count
    found = model.generate(prompts, tokens=LONG, temperature=temperature, random_state=0)
    return [text[1:] for text in found]


def known_words(text: str, made: list[str]) -> float:
    """Return the share of words in samples that stand in the text; the last may be cut off.

    >>> known_words("to be or not", ["to bee or n"])
    0.6666666666666666
    """
    known = set(re.findall(r"[a-z']+", text.lower()))
    words = [word for one in made for word in re.findall(r"[a-z']+", one.lower())[:-1]]
    return float(np.mean([word in known for word in words])) if words else 0.0


def whole_words(text: str, most: int) -> str:
    r"""Return the beginning of a sample without the word that its end cuts off.

    >>> whole_words("to be or\nnot to b", 12)
    'to be or …'
    """
    line = " ".join(text.split())[:most]
    whole, _, _ = line.rpartition(" ")
    return f"{whole or line} …"


def run(*, quick: bool = False) -> Outcome:
    """Fit the models, compare their losses, and let them write at several temperatures."""
    name, text, test = plays(*((12_000, 3_000) if quick else (100_000, 15_000)))
    fitted = {kind: model.fit([text]) for kind, model in models(test, quick).items()}
    losses = {kind: -model.score([test]) for kind, model in fitted.items()}
    best = min((kind for kind in fitted if kind.endswith("gram")), key=losses.__getitem__)
    writers = {kind: fitted[kind] for kind in (best, "LSTM", "GPT")}
    count = 4 if quick else 40
    made = {
        kind: {t: samples(model, t, count) for t in TEMPERATURES} for kind, model in writers.items()
    }
    known = {kind: {t: known_words(text, made[kind][t]) for t in TEMPERATURES} for kind in writers}
    figure, (left, middle, right) = panels(3, (14, 4.2))
    _draw_losses(left, fitted, losses)
    for (kind, share), colour in zip(known.items(), COLOURS, strict=False):
        middle.plot(TEMPERATURES, list(share.values()), "o-", ms=3.5, color=colour, label=kind)
    middle.set(xlabel="temperature", ylabel="words that stand in the text, share", ylim=(0, 1.02))
    caption(middle)
    _draw_texts(right, made)
    numbers = {
        **{f"{kind}: loss": loss for kind, loss in losses.items()},
        **{f"{kind}: known words at {t:g}": known[kind][t] for kind in writers for t in SHOWN},
        "best order": float(best.split("-")[0]),
        "known words, cool": float(np.mean([known[kind][SHOWN[0]] for kind in writers])),
        "known words, hot": float(np.mean([known[kind][SHOWN[-1]] for kind in writers])),
    }
    said = (
        f"After {len(text):,} characters of {name} the loss a character is {losses[best]:.2f} nats "
        f"for the {best}, {losses['LSTM']:.2f} for the LSTM and {losses['GPT']:.2f} for the GPT; "
        f"{numbers['known words, cool']:.0%} of the words exist at temperature {SHOWN[0]} and "
        f"{numbers['known words, hot']:.0%} at {SHOWN[-1]}."
    )
    return Outcome(figure, numbers, said)


def _draw_losses(ax: Axes, fitted: dict[str, Any], losses: dict[str, float]) -> None:
    """Draw the networks' curves, and a line for each order of counting."""
    for kind, colour in (("LSTM", COLOURS[1]), ("GPT", COLOURS[2])):
        curve = [line["val_loss"] for line in fitted[kind].history_]
        ax.plot(range(1, len(curve) + 1), curve, "o-", ms=3.5, color=colour, label=kind)
    grams = [loss for kind, loss in losses.items() if kind.endswith("gram")]
    for n, loss in zip(ORDERS, grams, strict=True):
        ax.axhline(loss, color=COLOURS[0], lw=0.9, alpha=0.7)
        ax.text(
            0.01,
            loss,
            f"{n}-gram",
            color=COLOURS[0],
            size=8.5,
            va="bottom",
            transform=ax.get_yaxis_transform(),
        )
    ax.set(xlabel="epoch", ylabel="loss on a new scene, nats a character")
    whole_ticks(ax.xaxis)
    caption(ax)


def _draw_texts(ax: Axes, made: dict[str, dict[float, list[str]]]) -> None:
    """Write one sample of each model at three temperatures."""
    rows = [(kind, t, texts[t][0]) for kind, texts in made.items() for t in SHOWN]
    for i, (kind, t, text) in enumerate(rows):
        colour = COLOURS[i // len(SHOWN)]
        line = whole_words(text.replace("$", ""), LONG - 10)
        ax.text(0, -i - 0.1, f"{kind}, {t:g}", color=INK, size=8, va="bottom")
        ax.text(0, -i - 0.15, line, color=colour, size=7.8, va="top", family="monospace")
    for i in range(len(SHOWN), len(rows), len(SHOWN)):
        ax.axhline(0.35 - i, color=INK, lw=0.6, alpha=0.4)
    ax.set(xlim=(0, 1), ylim=(-len(rows) + 0.3, 0.4), xticks=[], yticks=[])
    ax.grid(False)
    ax.spines[:].set_visible(False)
