"""The arms of the four comparisons: each is trained, asked for topics, and charged for its work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from castalia.data.batches import Samples
from castalia.data.text import TokenRows
from castalia.lab.transfer.invented_language import OBJECTIVES, PAD, TASKS, Pairs, task, unlabelled
from castalia.lab.transfer.transfer_networks import ARCHITECTURES, block_parameters, forward_flops
from castalia.objectives import SequenceCrossEntropy
from castalia.protocols import Stage
from castalia.train import Precision, Training, train
from castalia.utils.seeds import seed_scope

__all__ = ["Arm", "Plan", "architectures", "objectives", "scalings", "strategies"]

TARGET = "topic"  # the task that is asked for in the end
BACKWARD = 3  # a step costs three passes forward
PRETRAINING, TUNING = 3e-3, 1e-3  # learning rates

Part = Callable[[int], Pairs]  # so many pairs of a kind


@dataclass(frozen=True)
class Plan:
    """How much an arm learns.

    Attributes
    ----------
    steps, tune
        Steps of the pretraining and of the fine-tuning.
    batch
        Pairs of a step.
    depth
        Blocks of each half.
    labels
        Examples of each task.
    seed
        Of weights and data.
    """

    steps: int = 150
    tune: int = 30
    batch: int = 16
    depth: int = 2
    labels: int = 12
    seed: int = 0


@dataclass
class Learner:
    """A network, and the operations its training took.

    Attributes
    ----------
    net
        The network.
    flops
        Operations of the blocks in all steps: those of one pair times the pairs that really went
        through.
    """

    net: nn.Module
    flops: int = 0

    def learn(self, pairs: Pairs, plan: Plan, lr: float) -> None:
        """Train on pairs once, in an order of the seed, and charge for it."""
        samples = Samples(TokenRows(pairs.sources.int()), pairs.answers, None)
        state = train(
            self.net,
            [Stage("train", SequenceCrossEntropy(pad=PAD, start=PAD))],
            samples,
            Training(validation=0, verbose=False),
            epochs=1,
            batch_size=plan.batch,
            lr=lr,
            seed=plan.seed,
            device=torch.device("cpu"),
            precision=Precision("float32", torch.float32),
        )
        self.flops += BACKWARD * forward_flops(self.net) * len(samples) * len(state.history)


@dataclass(frozen=True)
class Arm:
    """What became of one arm.

    Attributes
    ----------
    name
        What is different in it.
    score
        Share of new sentences whose topic it names.
    parameters
        Weights of its blocks.
    flops
        Operations of its training.
    steps
        Steps of its training.
    """

    name: str
    score: float
    parameters: int
    flops: int
    steps: int


def _judged(name: str, learners: Sequence[Learner], plan: Plan) -> Arm:
    """Ask networks together for the topics of sentences they have not seen."""
    asked = task(TARGET, 400, seed=10_000 + plan.seed)
    chosen = torch.tensor(asked.candidates)
    logits = torch.stack([_first_word(one.net, asked.sources) for one in learners])
    said = chosen[logits.log_softmax(dim=-1).mean(dim=0)[:, chosen].argmax(dim=1)]
    score = float((said == asked.answers[:, 0]).double().mean())
    parameters = sum(block_parameters(one.net) for one in learners)
    flops = sum(one.flops for one in learners)
    return Arm(name, score, parameters, flops, (plan.steps + plan.tune) * len(learners))


@torch.no_grad()
def _first_word(net: Any, sources: Tensor) -> Tensor:
    """Return the logits of the first word of each answer, (n, V)."""
    start = torch.full_like(sources[:, :1], PAD)
    found: Tensor = net.eval()(sources, start, keep=sources != PAD)[:, 0]
    return found


def _new(architecture: str, plan: Plan) -> Learner:
    with seed_scope(plan.seed):
        return Learner(ARCHITECTURES[architecture](plan.depth))


def _labelled(name: str, plan: Plan, rows: int) -> Pairs:
    """Return the few examples of a task, again and again."""
    few = task(name, plan.labels, seed=1_000 + plan.seed)
    again = torch.arange(rows) % plan.labels
    return Pairs(few.sources[again], few.answers[again])


def _mixed(parts: Sequence[Part], rows: int) -> Pairs:
    """Return equal shares of several kinds of pairs."""
    shares = [part(len(range(k, rows, len(parts)))) for k, part in enumerate(parts)]
    return Pairs(
        torch.cat([share.sources for share in shares]),
        torch.cat([share.answers for share in shares]),
    )


def _tune(learner: Learner, plan: Plan) -> Learner:
    learner.learn(_labelled(TARGET, plan, plan.tune * plan.batch), plan, TUNING)
    return learner


@cache  # the baseline stands in all four comparisons
def _transferred(plan: Plan, objective: str, architecture: str) -> Learner:
    """Pretrain on sentences and fine-tune on the task."""
    learner = _new(architecture, plan)
    learner.learn(unlabelled(plan.steps * plan.batch, objective, plan.seed), plan, PRETRAINING)
    return _tune(learner, plan)


def _transfer(
    name: str,
    plan: Plan,
    *,
    objective: str = "masked words",
    architecture: str = "encoder–decoder",
    members: int = 1,
) -> Arm:
    """Return the baseline with one thing changed."""
    plans = [replace(plan, seed=plan.seed + 100 * member) for member in range(members)]
    return _judged(name, [_transferred(own, objective, architecture) for own in plans], plan)


def objectives(plan: Plan) -> list[Arm]:
    """Return the labels alone, and one arm an unsupervised objective; all are one network."""
    scratch = _judged(
        "labels alone", [_tune(_new("encoder–decoder", plan), plan)], replace(plan, steps=0)
    )
    return [scratch, *(_transfer(name, plan, objective=name) for name in OBJECTIVES)]


def architectures(plan: Plan) -> list[Arm]:
    """Return one arm a network; all learn from the same pairs."""
    return [_transfer(name, plan, architecture=name) for name in ARCHITECTURES]


def strategies(plan: Plan) -> list[Arm]:
    """Return the five orders in which sentences and tasks may be learnt, in equal steps."""

    def sentences(rows: int) -> Pairs:
        return unlabelled(rows, seed=plan.seed)

    def examples(name: str) -> Part:
        return lambda rows: _labelled(name, plan, rows)

    every = [examples(name) for name in TASKS]
    others = [examples(name) for name in TASKS if name != TARGET]
    mixtures: dict[str, tuple[list[Part], bool]] = {
        "multi-task": ([sentences, *every], False),
        "multi-task, fine-tune": ([sentences, *every], True),
        "leave one out, fine-tune": ([sentences, *others], True),
        "supervised, fine-tune": (every, True),
    }
    found = [_transfer("pretrain, fine-tune", plan)]
    for name, (parts, tuned) in mixtures.items():
        learner = _new("encoder–decoder", plan)
        steps = plan.steps + (0 if tuned else plan.tune)
        learner.learn(_mixed(parts, steps * plan.batch), plan, PRETRAINING)
        found.append(_judged(name, [_tune(learner, plan) if tuned else learner], plan))
    return found


def scalings(plan: Plan) -> list[Arm]:
    """Return the baseline, and five ways to spend four times its compute."""

    def longer(factor: int) -> dict[str, int]:
        return {"steps": factor * plan.steps, "tune": factor * plan.tune}

    plans = {
        "baseline": (plan, 1),
        "4 × steps": (replace(plan, **longer(4)), 1),
        "4 × batch": (replace(plan, batch=4 * plan.batch), 1),
        "2 × size, 2 × steps": (replace(plan, depth=2 * plan.depth, **longer(2)), 1),
        "4 × size": (replace(plan, depth=4 * plan.depth), 1),
        "4 members": (plan, 4),
    }
    return [_transfer(name, own, members=count) for name, (own, count) in plans.items()]
