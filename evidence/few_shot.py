"""Omniglot: characters known by one drawing or five, by a prototypical network and by MAML.

The split of Vinyals et al. (2016): 4,800 classes to train on and 1,692 to test with, where turns of
a character by 90 degrees are classes of their own. Accuracy over 1,000 episodes of 5 or 20 test
classes with 15 queries each. Published: prototypes (2017, Snell, Swersky, Zemel, arXiv 1703.05175)
98.8 / 99.7 % with 1 / 5 shots of 5 classes, 96.0 % with 1 shot of 20; MAML (2017, Finn, Abbeel,
Levine, arXiv 1703.03400) 98.7 / 99.9 / 95.8 %. MAML normalises by the rows of a task that are
asked for together, as there. Drawings are turned, moved and scaled a little in training. FEW_SHOT
names what is fitted, all by default: "ProtoNet", "MAML", or one row of them ("MAML 20 1"),
FEW_SHOT_SECONDS how long each network is trained, FEW_SHOT_STEPS the inner steps of MAML,
FEW_SHOT_VIEWS how far drawings are changed, "near" or "far", FEW_SHOT_POOLING what halves the maps
of MAML's network: "max", or "stride" as in its paper, FEW_SHOT_WIDTHS the channels, such as
"64,96,128,256", FEW_SHOT_QUERIES the rows of a class that a task of MAML asks for in training.
FEW_SHOT_MIRRORED adds mirror images of all classes as classes to train on. Networks are saved
beside the figures where OUT is set; FEW_SHOT_START names one from which MAML's training goes on,
and FEW_SHOT_LR its rate. MAML is asked twice: as in its paper, and with every drawing of a test
episode at five places, a pixel apart, where known ones are learnt from at all of them and asked
ones get the mean answer.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call, vmap

from castalia.data.augment import Augment, Rotate, Shift, Zoom
from castalia.models.meta import MAML, ProtoNet
from castalia.models.meta.maml import StartAndRates
from castalia.models.meta.prototype_network import prototype_scores
from castalia.models.meta.starting_weights import adapted, task_loss
from castalia.models.vision import ConvNetClassifier
from castalia.objectives import CrossEntropy
from castalia.train import Callback, Training, TrainState
from evidence.clock import EPOCHS, Clock
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table

EPISODES, QUERIES = 1000, 15
PLACES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))  # pixels down and across
PUBLISHED = {
    "ProtoNet": {(5, 1): "98.8", (20, 1): "96.0", (5, 5): "99.7"},
    "MAML": {(5, 1): "98.7", (5, 5): "99.9", (20, 1): "95.8"},
}


def classes(part: str) -> np.ndarray:
    """Return the drawings of every class of a part of the split, (K, 20, 28, 28) bytes."""
    home = folder() / "omniglot"
    data = np.load(home / "omniglot28.npz")
    names, images = [str(name) for name in data["alphabet_names"]], data["images"]
    marks = zip(data["alphabet"], data["character_in_alphabet"], strict=True)
    place: dict[tuple[str, int], list[int]] = {}
    for i, (alphabet, character) in enumerate(marks):
        place.setdefault((names[alphabet], int(character)), []).append(i)
    lines = gzip.decompress((home / f"vinyals_split_{part}.txt.gz").read_bytes()).decode().split()
    found = []
    for line in lines:
        alphabet, character, turn = line.split("/")
        rows = place[alphabet, int(character.removeprefix("character"))]
        found.append(np.rot90(images[rows], int(turn[3:]) // 90, axes=(1, 2)))
    print(f"{part}: {len(found):,} classes", flush=True)
    return (255 * np.stack(found)).astype(np.uint8)


def views(angle: float, shift: float, zoom: float) -> Augment:
    """Turn, move and scale drawings by up to so much."""
    edge: dict[str, Any] = {"padding": "border"}
    return Rotate(angle, **edge) | Shift(shift, **edge) | Zoom(1 - zoom, 1 + zoom, **edge)


VIEWS = {"near": views(8, 0.06, 0.1), "far": views(15, 0.1, 0.2)}


class GoOn(Callback):
    """Begin with the weights and rates of a network that was saved."""

    def __init__(self, path: str) -> None:
        self.path = path

    @torch.no_grad()
    def on_fit_start(self, state: TrainState) -> None:
        """Copy them."""
        net, rates = torch.load(self.path, weights_only=False, map_location="cpu")
        trained = cast(StartAndRates, state.net)
        trained.net.load_state_dict(net.state_dict())
        for name, rate in trained.rates().items():
            rate.copy_(rates[name])


def convnet(quick: bool, seconds: float, **settings: Any) -> ConvNetClassifier:
    """Four convolutions, of 64 channels as in both papers where nothing else is asked for."""
    clock, start = Clock(seconds), os.environ.get("FEW_SHOT_START")
    training = Training(
        schedule=clock, validation=0, watch=False, clip=10.0,
        callbacks=[clock, GoOn(start)] if start else [clock],
        compile=bool(os.environ.get("FEW_SHOT_COMPILE")) or "auto",
    )  # fmt: skip
    named = "8,8,8,8" if quick else os.environ.get("FEW_SHOT_WIDTHS", "64,64,64,64")
    widths = tuple(int(width) for width in named.split(","))
    augment = VIEWS[os.environ.get("FEW_SHOT_VIEWS", "near")]
    own: dict[str, Any] = {"widths": widths, "convs": 1, "augment": augment}
    return ConvNetClassifier(training=training, **own, **settings)


def prototypes(ways: int, shots: int, quick: bool, seconds: float) -> ProtoNet:
    """60 classes an episode, as in the paper."""
    ways = 10 if quick else 60
    return ProtoNet(
        convnet(quick, seconds),
        dim=64,
        ways=ways,
        shots=shots,
        queries=5,
        epochs=EPOCHS,
        lr=1e-3,
        random_state=0,
    )


def start(ways: int, shots: int, quick: bool, seconds: float) -> MAML:
    """An inner step with learnt rates, or two where there are many classes; second order."""
    many, pooling = ways > 5, os.environ.get("FEW_SHOT_POOLING", "max")
    steps = int(os.environ.get("FEW_SHOT_STEPS", 1 + many))
    return MAML(
        convnet(quick, seconds, batch_norm="own", pooling=pooling),
        ways=ways, shots=shots, queries=int(os.environ.get("FEW_SHOT_QUERIES", 5)),
        inner_lr=0.4 / steps, inner_steps=steps, rates="learnt",
        tasks=2 if quick else 8 if many else 16, epochs=EPOCHS, random_state=0,
        lr=float(os.environ.get("FEW_SHOT_LR", 1e-3)),
    )  # fmt: skip


def device() -> str:
    """Where networks are asked."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def episodes(x: Tensor, ways: int, shots: int, n: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield known rows and queries of n episodes, (W, S, …) and (W, Q, …), from (K, 20, …)."""
    random = np.random.default_rng(0)
    for _ in range(n):
        drawn = torch.from_numpy(random.choice(len(x), ways, replace=False)).to(x.device)
        order = torch.from_numpy(random.permutation(20)[: shots + QUERIES]).to(x.device)
        some = x[drawn][:, order]
        yield some[:, :shots], some[:, shots:]


def nearest(model: ProtoNet, test: np.ndarray, ways: int, shots: int, n: int) -> list[float]:
    """Return the share of queries whose nearest prototype is the right one, by episode."""
    model.module_.to(device())
    codes = torch.from_numpy(model.encode(test.reshape(-1, 28, 28))).view(len(test), 20, -1)
    truth = torch.arange(ways).repeat_interleave(QUERIES)
    found = []
    for known, asked in episodes(codes, ways, shots, n):
        scores = prototype_scores(asked.flatten(0, 1), known.mean(dim=1))
        found.append(float((scores.argmax(dim=1) == truth).double().mean()))
    return found


def moved(x: Tensor, places: Sequence[tuple[int, int]]) -> Tensor:
    """Return drawings of each class at every place, (W, P S, …) from (W, S, …)."""
    return torch.cat([x.roll(place, dims=(-2, -1)) for place in places], dim=1)


def after_a_step(
    model: MAML, test: np.ndarray, ways: int, shots: int, n: int, places: Any = PLACES[:1]
) -> list[float]:
    """Return the share of queries that the adapted networks know, by episode; 20 at a time."""
    inner: Any = model.estimator_
    net, loss = inner.module_.to(device()), CrossEntropy()
    images = inner._checked(test.reshape(-1, 28, 28))
    rows = torch.cat(list(inner.adapter_.blocks(images, np.float32)))
    x = rows.to(device()).unflatten(0, (len(test), 20))
    weights = {name: w.detach() for name, w in net.named_parameters()}
    rates = {name: rate.to(device()) for name, rate in model.rates_.items()}
    labels, truth = (
        torch.arange(ways, device=device()).repeat_interleave(k)
        for k in (shots * len(places), QUERIES)
    )

    def right(known: Tensor, asked: Tensor) -> Tensor:
        here = task_loss(net, loss, moved(known, places).flatten(0, 1), labels)
        fast = adapted(here, weights, rates, model.inner_steps)
        answers = [
            functional_call(net, fast, (moved(asked, [place]).flatten(0, 1),)).softmax(dim=1)
            for place in places
        ]
        return torch.stack(answers).mean(dim=0).argmax(dim=1) == truth

    drawn, found = list(episodes(x, ways, shots, n)), []
    for i in range(0, n, 20):
        known, asked = (torch.stack(part) for part in zip(*drawn[i : i + 20], strict=True))
        with torch.no_grad():
            found += vmap(right)(known, asked).double().mean(dim=1).tolist()
    return found


def percent(found: list[float]) -> dict[str, float]:
    """Return the mean in per cent and 1.96 standard errors."""
    return {
        "accuracy": 100 * float(np.mean(found)),
        "error": 196 * float(np.std(found)) / len(found) ** 0.5,
    }


def run(quick: bool = False) -> None:
    """Train a network for each number of shots, and try it on classes never seen."""
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    train, test = classes("trainval"), classes("test")
    if quick:
        train, test = train[:60], test[:40]
    if os.environ.get("FEW_SHOT_MIRRORED"):
        train = np.concatenate([train, train[..., ::-1]])
    kept, rows, models = Kept("few_shot"), [], dict[Any, Any]()
    X, y = train.reshape(-1, 28, 28), np.repeat(np.arange(len(train)), 20)
    seconds = 1.0 if quick else float(os.environ.get("FEW_SHOT_SECONDS", 45))

    def work(name: str, ways: int, shots: int) -> dict[str, Any]:
        make, ask = (prototypes, nearest) if name == "ProtoNet" else (start, after_a_step)
        key = (name, shots, 0 if name == "ProtoNet" else ways)  # prototypes serve any ways
        if key not in models:
            models[key] = make(ways, shots, quick, seconds).fit(X, y)
            if "OUT" in os.environ:
                learnt = [models[key].estimator_.module_, getattr(models[key], "rates_", None)]
                torch.save(learnt, Path(os.environ["OUT"]) / f"{name}-{ways}-{shots}.pt")
        n = 20 if quick else EPISODES
        figures = percent(ask(models[key], test, ways, shots, n))
        if ask is after_a_step:
            shifted = percent(ask(models[key], test, ways, shots, n, PLACES))
            figures |= {f"{k}, five places": value for k, value in shifted.items()}
        return figures | {"epochs": len(models[key].estimator_.history_)}

    for name, figures in PUBLISHED.items():
        for (ways, shots), said in figures.items():
            if not f"{name} {ways} {shots}".startswith(os.environ.get("FEW_SHOT", "")):
                continue
            found = kept.find(
                f"{name}, {ways} ways, {shots} shots", partial(work, name, ways, shots)
            )
            asked = [
                f"{found[f'accuracy{how}']:.2f} ± {found[f'error{how}']:.2f}"
                if f"accuracy{how}" in found
                else ""
                for how in ("", ", five places")
            ]
            rows.append([name, str(ways), str(shots), *asked, said, f"{found['seconds']:.0f}"])
    columns = ["", "ways", "shots", "% right", "at five places", "published", "s"]
    print_table("Omniglot, few shots", columns, rows)
