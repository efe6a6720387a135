"""The encoder's bottleneck: one vector cannot hold a long sentence, and attention need not try.

Recurrent encoders and decoders copy symbols from a noisy source, or write them backwards. Without
attention all the decoder knows of the source is one vector of fixed width, and its answers get
worse the longer the source is; with attention it reads each place when it needs it: along the
diagonal for a copy, against it for a reversal. A decoder that reads its own answers instead of the
true ones does worse, and the more so the longer they get: it was never trained on its own mistakes
(exposure bias).
References: 2015, Bahdanau, Cho, Bengio, Neural machine translation by jointly learning to align and
translate, arXiv 1409.0473; 2015, Bengio, Vinyals, Jaitly, Shazeer, Scheduled sampling, arXiv
1506.03099.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from castalia.lab.experiments import Outcome
from castalia.lab.figure_panels import panels
from castalia.nets.language import Seq2Seq, generate
from castalia.utils.figure_style import COLOURS, caption, heat
from castalia.utils.seeds import seed_scope

__all__ = ["run"]

SYMBOLS, START = 32, 32
NOISE = 0.05  # share of the source's symbols that are replaced by any
LENGTHS = (4, 8, 12, 16, 20, 30)
SHORT = (4, 8)
ALIGNED = 8  # symbols of the sentences whose alignments are drawn


@dataclass(frozen=True)
class Task:
    """Symbols, none of them twice but for some noise, and what is to be written without it."""

    backwards: bool = False

    def draw(self, rows: int, length: int, source: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return sources and answers, (rows, length) each."""
        true = torch.rand(rows, SYMBOLS, generator=source).argsort(dim=1)[:, :length]
        wrong = torch.rand(rows, length, generator=source) < NOISE
        x = torch.where(wrong, torch.randint(SYMBOLS, (rows, length), generator=source), true)
        return x, true.flip(1) if self.backwards else true


def given(y: Tensor) -> Tensor:
    """Return what the decoder reads when it is forced: the start, then the true answers."""
    return torch.cat([torch.full((len(y), 1), START), y[:, :-1]], dim=1)


def length_of(step: int, steps: int, longest: int) -> int:
    """Return how many symbols a batch has: one in three stays short, the others grow."""
    if step % 3 == 0:
        return SHORT[step // 3 % len(SHORT)]
    return round(6 * (longest / 6) ** (step / steps))


def train(task: Task, attention: str, *, steps: int, longest: int) -> Seq2Seq:
    """Train on sentences that get longer; the learning rate falls in the last third."""
    with seed_scope(0):
        net = Seq2Seq(SYMBOLS + 1, dim=32, hidden=64, cell="gru", attention=attention)
    adam, source = torch.optim.Adam(net.parameters(), lr=1e-2), torch.Generator().manual_seed(0)
    rate = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: min(1.0, 3 * (1 - step / steps)))
    for step in range(steps):
        x, y = task.draw(64, length_of(step, steps, longest), source)
        adam.zero_grad()
        nn.functional.cross_entropy(net(x, given(y)).flatten(0, 1), y.flatten()).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        rate.step()
    return net.eval()


@torch.no_grad()
def accuracies(net: Seq2Seq, task: Task, length: int) -> tuple[float, float]:
    """Return the share of right symbols when true answers are read, and when its own are."""
    x, y = task.draw(64, length, torch.Generator().manual_seed(1))
    forced = net(x, given(y)).argmax(dim=-1)
    free = generate(net, x, tokens=length, start=START)
    return float((forced == y).float().mean()), float((free == y).float().mean())


def alignment(net: Seq2Seq, task: Task) -> Tensor:
    """Return the mean attention of each answer to each place of the source."""
    x, y = task.draw(64, ALIGNED, torch.Generator().manual_seed(2))
    return net.alignments(x, given(y)).mean(dim=0)


def slope(weights: Tensor) -> float:
    """Return how many places attention moves on with an answer, by least squares."""
    place = torch.arange(float(len(weights)))
    means, centred = weights @ place, place - place.mean()
    return float((centred * means).sum() / centred.square().sum())


def run(*, quick: bool = False) -> Outcome:
    """Train three translators, and draw accuracy by length and alignments."""
    copy, reverse = Task(), Task(backwards=True)
    steps, longest, lengths = (90, 16, LENGTHS[:-1]) if quick else (600, LENGTHS[-1], LENGTHS)
    looking, fixed = (
        train(copy, kind, steps=steps, longest=longest) for kind in ("additive", "none")
    )
    turning = train(reverse, "additive", steps=steps // 2, longest=ALIGNED)
    figure, (left, *maps) = panels(3, (11, 3.4))
    numbers: dict[str, float] = {}
    for name, net, colour in (("attention", looking, COLOURS[0]), ("fixed", fixed, COLOURS[1])):
        forced, free = zip(*(accuracies(net, copy, n) for n in lengths), strict=True)
        left.plot(lengths, forced, "o-", ms=3.5, color=colour, label=name)
        left.plot(lengths, free, "o--", ms=3.5, color=colour)
        for length, a, b in zip(lengths, forced, free, strict=True):
            numbers[f"{name}, length {length}"] = a
            numbers[f"{name}, length {length}, own answers"] = b
    left.set(xlabel="symbols", ylabel="right (dashed: own answers)", ylim=(0, 1.03))
    caption(left)
    for ax, name, net, task in zip(
        maps, ("copy", "reversal"), (looking, turning), (copy, reverse), strict=True
    ):
        weights = alignment(net, task)
        numbers[f"{name}: places for each answer"] = slope(weights)
        ax.imshow(weights.numpy(), cmap=heat())
        ax.set(title=name, xlabel="place in the source", ylabel="place in the answer")
        ax.grid(False)
    long = lengths[-1]
    said = (
        f"Of {long} symbols, {numbers[f'attention, length {long}']:.0%} are right with attention "
        f"and {numbers[f'fixed, length {long}']:.0%} from one vector."
    )
    return Outcome(figure, numbers, said)
