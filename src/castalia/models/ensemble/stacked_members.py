"""Members of one shape trained at once, as one network in the one loop.

network     ``Stack``: all members side by side, one batched product a layer
objective   ``StackedLoss``: the sum of the members' mean losses, so that each has its own gradient
samples     ``MemberSamples``: each member's rows in its own order
callback    ``MemberHistories``: a line an epoch for each member

Shapes: M members, S steps of an epoch, B rows of a batch, K outputs, N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor, nn

from castalia.base import Estimator, check_parameters
from castalia.base.estimator import _NUMPY
from castalia.base.input_checks import check_target, check_X
from castalia.base.watched import is_watched, remember
from castalia.data import Dataset
from castalia.data.batches import Samples
from castalia.data.row_splits import SMALLEST, holdout
from castalia.data.table_adapter import TableAdapter
from castalia.errors import Diverged
from castalia.models.ensemble.member_samples import MemberSamples
from castalia.models.ensemble.stack import Stack
from castalia.objectives import Objective
from castalia.protocols import Batch, Phase, RowLosses, Spec, Stage
from castalia.train import (
    Callback,
    Training,
    TrainState,
    check_training,
    resolve_precision,
    step_work,
    train,
)
from castalia.utils.devices import cpu_scope, resolve_device
from castalia.utils.overrides import is_current
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["fit_stacked", "stacked_outputs"]

# Optimizers whose update of a number depends on that number alone.
ELEMENTWISE = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop", "adadelta")
# Settings under which members side by side do not influence each other. Any other setting that is
# not at its default, present or future, has members fitted one by one.
INDEPENDENT = {
    "device",
    "optimizer",
    "precision",
    "schedule",
    "validation",
    "verbose",
    "watch",
    "weight_decay",
}
MOST_NUMBERS = 2**26  # of the stacked weights, and of the stacked row numbers


def fit_stacked(
    members: Sequence[Any], X: Any, y: Any, weight: np.ndarray | None, counts: np.ndarray | None
) -> bool:
    """Fit the members at once, where this is possible; the result is that of fitting each.

    They share one encoding of the data (columns, scales, classes) and have their own seeds,
    weights, orders and, with ``Training(validation=…)``, held-out rows.

    Parameters
    ----------
    members
        Estimators with equal parameters but for ``random_state``; changed in place.
    X, y, weight
        Rows, targets and row weights, already checked.
    counts
        How often each member counts each row, (M, N), or None: as ``weight`` says.

    Returns
    -------
    bool
        False where members cannot be stacked or the doctor would watch each of them; then they
        have to be fitted one by one.
    """
    head = members[0]
    training = getattr(head, "training", None) or Training()
    if not (_is_table_model(head, X) and _is_independent(training)):
        return False
    check_parameters(head)
    check_training(training)
    X = check_X(head, X, reset=True, y=y)
    adapter = head.adapter.of(head)
    target = head.codec.fit(head, adapter, X, check_target(head, X, y), weight)
    head.adapter_ = adapter.fit(X, target.weight)
    spec = head.spec_ = Spec(
        head.adapter_.inputs, target.outputs, tuple(head.adapter_.categories), rows=len(target.y)
    )
    objective, device = head._objective(spec), resolve_device(training.device)
    nets = []
    for member in members:
        member.random_state = seed_from(member.random_state)
        with seed_scope(member.random_state, device):
            nets.append(member._network(spec))
    work = step_work(nets[0], torch.Size([spec.inputs]), head.batch_size)
    steps = head.epochs * -(-len(target.y) // head.batch_size)
    if (
        not isinstance(objective, RowLosses)
        or not is_current(objective, "rows", "terms")
        or not Stack.can_hold(nets[0])
        or is_watched(training, device, work=work, steps=steps)
    ):
        return False
    precision = resolve_precision(training.precision, device, rows=len(target.y), work=work)
    samples = head._samples(X, target, precision.dtype)
    for part in _groups(len(members), nets[0], len(target.y)):
        share = None if counts is None else _member_weights(counts[part], target.weight, weight)
        group = _Group(members[part], nets[part], samples, share, target.labels, training)
        group.run(objective, device, precision)
    return True


def _is_table_model(est: Any, X: Any) -> bool:
    """Whether an estimator is trained by the loop on a table in memory, with no other listener."""
    return (
        isinstance(est, Estimator)
        and est.adapter is TableAdapter
        and not getattr(est, "_skl_callbacks", None)
        and not (isinstance(X, Dataset) and X.streaming)
        and not issparse(X)  # its rows are made dense batch by batch
    )


def _is_independent(training: Any) -> bool:
    """Whether settings other than the default leave stacked members alone."""
    if not isinstance(training, Training) or isinstance(training.validation, tuple):
        return False
    changed = {f.name for f in fields(training) if getattr(training, f.name) != f.default}
    return changed <= INDEPENDENT and training.optimizer in ELEMENTWISE


def _groups(members: int, net: Any, rows: int) -> list[slice]:
    """Cut the members into groups that fit into memory side by side."""
    numbers = max(sum(p.numel() for p in net.parameters()), rows, 1)
    size = max(1, MOST_NUMBERS // numbers)
    return [slice(start, start + size) for start in range(0, members, size)]


def _member_weights(
    counts: np.ndarray, with_classes: np.ndarray | None, weight: np.ndarray | None
) -> np.ndarray:
    """Return counts times class weights; the row weights have already steered the draws."""
    if with_classes is None or with_classes is weight:
        return counts
    return counts * (with_classes if weight is None else with_classes / weight)


class StackedLoss(Objective):
    """The sum over members of their mean losses.

    Parameters
    ----------
    objective
        The loss of each row.

    Attributes
    ----------
    losses
        Of the members, (M,) a step, since somebody emptied the list.
    """

    def __init__(self, objective: RowLosses) -> None:
        self.objective = objective
        self.losses: list[Tensor] = []

    def phases(self, net: nn.Module) -> list[Phase]:
        """One phase; the members' axis does not make a matrix of a bias."""
        weights = list(net.parameters())
        return [Phase("train", weights, decayed=[p.ndim >= 3 for p in weights])]

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the sum; keep its parts."""
        share: Any = batch.weight
        outputs = net(batch.x).flatten(0, 1)  # (M B, K)
        rows = self.objective.rows(outputs, batch.y).view_as(share)  # (M, B)
        losses = (rows * share).sum(dim=1)
        self.losses.append(losses.detach())
        return {"loss": losses.sum()}


class MemberHistories(Callback):
    """Writes a history for each member, with the loss on its own held-out rows.

    Parameters
    ----------
    loss, samples
        Of the training.
    held
        Positions of each member's held-out rows.
    """

    def __init__(self, loss: StackedLoss, samples: MemberSamples, held: Sequence[Tensor]) -> None:
        self.loss, self.held = loss, replace(samples, kept=held)
        self.lines: list[list[dict[str, Any]]] = [[] for _ in held]

    def on_epoch_end(self, state: TrainState) -> None:
        """Add a line to each member's history."""
        line, (found, self.loss.losses) = state.history[-1], (self.loss.losses, [])
        losses = torch.stack(found).double().cpu()  # (S, M)
        sizes = state.stepper.window.samples.cuts.sizes.T.double().cpu()
        means = ((losses * sizes).sum(dim=0) / sizes.sum(dim=0)).tolist()
        checks = self._validate(state) if len(self.held.kept[0]) else None
        seconds = line["seconds"] / len(self.lines)
        for i, history in enumerate(self.lines):
            own = {"epoch": line["epoch"], "stage": line["stage"], "loss": means[i]}
            own |= {} if checks is None else {"val_loss": checks[i]}
            history.append(own | {"lr": line["lr"], "seconds": seconds})

    @torch.no_grad()
    def _validate(self, state: TrainState) -> list[float]:
        """Return each member's mean loss over its held-out rows."""
        state.net.eval()
        device = state.stepper.parts.device
        total = torch.zeros(2, len(self.lines), dtype=torch.float64)
        window: Any
        for window, order, _ in self.held.to(device).batches(1024, None, 0, device):
            for step in order:
                self.loss.terms(state.net, window.batch(step), "train")
                counted = window.drawn(step)[1].sum(dim=1).double().cpu()
                total += torch.stack([self.loss.losses.pop().double().cpu() * counted, counted])
        return (total[0] / total[1]).tolist()


class _Group:
    """Members that are trained side by side."""

    def __init__(
        self,
        members: Sequence[Any],
        nets: list[Any],
        samples: Samples,
        weights: np.ndarray | None,
        labels: np.ndarray | None,
        training: Training,
    ) -> None:
        self.members, self.nets, self.samples, self.training = members, nets, samples, training
        self.seeds = [member.random_state for member in members]
        self.weights = weights
        rows = [
            np.arange(len(samples)) if weights is None else np.flatnonzero(weights[i])
            for i in range(len(members))
        ]
        parts = [
            holdout(
                len(r),
                training.validation,
                seed=seed,
                labels=None if labels is None else labels[r],
                smallest=SMALLEST,
            )
            for r, seed in zip(rows, self.seeds, strict=True)
        ]
        self.kept = [torch.from_numpy(r[kept]) for r, (kept, _) in zip(rows, parts, strict=True)]
        self.held = [torch.from_numpy(r[held]) for r, (_, held) in zip(rows, parts, strict=True)]

    def member_samples(self, dtype: torch.dtype) -> MemberSamples:
        """Return what the loop draws batches from."""
        shared, members = self.samples.weight, len(self.members)
        if self.weights is not None:
            shares: Tensor | None = torch.from_numpy(self.weights).to(dtype)
        else:
            shares = None if shared is None else shared.expand(members, -1)
        return MemberSamples(
            x=self.samples.x, y=self.samples.y, kept=self.kept, seeds=self.seeds, shares=shares
        )

    def run(self, objective: Any, device: torch.device, precision: Any) -> None:
        """Train, and give every member its weights and its history."""
        head = self.members[0]
        stack = Stack(self.nets, device, precision.dtype)
        loss, samples = StackedLoss(objective), self.member_samples(precision.dtype)
        histories = MemberHistories(loss, samples, self.held)
        try:
            with seed_scope(self.seeds[0], device):
                state = train(
                    stack,
                    [Stage("train", loss)],
                    samples,
                    # A graph would be recorded for batches of one member.
                    replace(self.training, compile=False, validation=0),
                    epochs=head.epochs,
                    batch_size=head.batch_size,
                    lr=head.lr,
                    seed=self.seeds[0],
                    device=device,
                    precision=precision,
                    callbacks=[histories],
                    work=0.0,  # plain BLAS serves batched products of small matrices best
                )
        except Diverged as error:
            raise _named(error, loss.losses) from error
        self._finish(stack, histories.lines, state.settings)

    def _finish(
        self, stack: Stack, histories: list[list[dict[str, Any]]], settings: dict[str, Any]
    ) -> None:
        fitted = {k: v for k, v in vars(self.members[0]).items() if k.endswith("_")}
        for i, (member, net) in enumerate(zip(self.members, self.nets, strict=True)):
            vars(member).update(fitted)
            member.module_ = stack.unstack(i, net).eval()
            member.history_, member.n_iter_ = histories[i], len(histories[i])
            member.best_, member.stopped_, member.run_ = _best(histories[i]), None, None
            member.settings_ = {
                **settings,
                "together": len(self.members),
                "seed": self.seeds[i],
                "rows": len(self.kept[i]),
                "validation_rows": len(self.held[i]),
            }
            remember(member, [])  # nobody watched
            held = self.samples.subset(self.held[i])
            member.codec.conclude(member, *member._validation_outputs(held))


def _named(error: Diverged, losses: list[Tensor]) -> Diverged:
    """Say which member diverged first."""
    found = torch.stack(losses).cpu()  # (S, M)
    step, member = (~found.isfinite()).nonzero()[0].tolist()
    value = found[step, member].item()
    return Diverged(
        f"Training: the loss of member {member} became {value} in epoch {error.epoch + 1}, with "
        f"lr={error.lr:g}. Lower `lr`, or check the data for extreme values.",
        step=error.step,
        epoch=error.epoch,
        term="loss",
        lr=error.lr,
    )


def _best(history: list[dict[str, Any]]) -> dict[str, Any] | None:
    if "val_loss" not in history[0]:
        return None
    line = min(history, key=lambda line: line["val_loss"])
    return {"epoch": line["epoch"], "stage": 0, "val_loss": line["val_loss"]}


@torch.inference_mode()
def stacked_outputs(members: Sequence[Any], X: Any) -> Tensor:
    """Return the outputs of members that were fitted at once, (M, N, K), on the CPU."""
    head = members[0]
    parameter = next(head.module_.parameters())
    device, dtype = parameter.device, parameter.dtype
    stack = Stack([member.module_ for member in members], device, dtype).eval()
    found = []
    with cpu_scope(device, 0.0, wait=False):
        for block in head.adapter_.blocks(X, _NUMPY[dtype]):
            for rows in block.split(1024):
                found.append(stack(rows.to(device).expand(len(members), -1, -1)).cpu())
    return torch.cat(found, dim=1)
