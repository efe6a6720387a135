"""Training many networks of one shape at once, member by member side by side in one tensor.

for epoch in epochs:
    for batch in order(seed of each member, epoch):      x is (M, B, D)
        outputs = forward of all members                 one batched product a layer
        loss = sum over members of their mean loss       so that each gets its own gradient
        step                                             the optimizers work element by element

Shapes: M members, S steps of an epoch, B rows of a batch, D inputs, K outputs, N rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from castalia.base import Estimator, check_parameters
from castalia.base.estimator import _NUMPY
from castalia.base.input_checks import check_target, check_X
from castalia.data import Dataset
from castalia.data.batches import BLOCK, WINDOW, Samples
from castalia.data.row_splits import SMALLEST, holdout
from castalia.data.table_adapter import TableAdapter
from castalia.errors import Diverged
from castalia.models.ensemble.batches import Batches
from castalia.models.ensemble.stack import Stack
from castalia.objectives import (
    LIKELIHOODS,
    AbsoluteError,
    BinaryCrossEntropy,
    CrossEntropy,
    Likelihood,
    SquaredError,
)
from castalia.optim import build_optimizer, build_schedule, fused_step
from castalia.protocols import Spec
from castalia.train import Training, check_training, resolve_precision, step_work
from castalia.utils.devices import cpu_scope, resolve_device
from castalia.utils.seeds import derive, generator, seed_from, seed_scope

__all__ = ["fit_together", "outputs_together"]

# Optimizers whose update of a number looks at that number alone.
ELEMENTWISE = ("sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop", "adadelta")
OBJECTIVES = (CrossEntropy, BinaryCrossEntropy, SquaredError, AbsoluteError, *LIKELIHOODS.values())
MOST_NUMBERS = 2**26  # of the stacked weights, and of the stacked row numbers


def fit_together(
    members: Sequence[Any], X: Any, y: Any, weight: np.ndarray | None, counts: np.ndarray | None
) -> bool:
    """Fit the members at once, where this is possible; the result is that of fitting each.

    They share one reading of the data (columns, scales, classes) and have their own seeds, weights,
    orders and, with ``Training(validation=…)``, held-out rows.

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
        False where it does not know this kind of member; then they have to be fitted one by one.
    """
    head = members[0]
    if not _ordinary(head, X):
        return False
    training = head.training if head.training is not None else Training()
    check_parameters(head)
    check_training(training)
    X = check_X(head, X, reset=True, y=y)
    target = head._encode_target(check_target(head, X, y), weight)
    head.adapter_ = head.adapter().fit(X, target.weight)
    spec = Spec(
        head.adapter_.inputs, target.outputs, tuple(head.adapter_.categories), rows=len(target.y)
    )
    head.spec_ = spec
    objective = head._objective(spec)
    nets = []
    device = resolve_device(training.device)
    for member in members:
        member.random_state = seed_from(member.random_state)
        with seed_scope(member.random_state, device):
            nets.append(member._network(spec))
    if type(objective) not in OBJECTIVES or not Stack.can_hold(nets[0]):
        return False
    precision = resolve_precision(
        training.precision,
        device,
        rows=len(target.y),
        work=step_work(nets[0], torch.Size([spec.inputs]), head.batch_size),
    )
    samples = head._samples(X, target, precision.dtype)
    for part in _groups(len(members), nets[0], len(target.y)):
        share = None if counts is None else _member_weights(counts[part], target.weight, weight)
        group = _Group(members[part], nets[part], samples, share, target.labels, training)
        group.run(objective, device, precision)
    return True


def _ordinary(est: Any, X: Any) -> bool:
    """Whether an estimator is fitted by the plain loop with settings that are known here."""
    training = getattr(est, "training", None) or Training()
    return (
        isinstance(est, Estimator)
        and type(est).fit is Estimator.fit
        and type(est)._train is Estimator._train
        and est.adapter is TableAdapter
        and isinstance(training, Training)
        and training.optimizer in ELEMENTWISE
        and training.clip is None
        and training.accumulate == 1
        and training.average is None
        and training.patience is None
        and not isinstance(training.validation, tuple)
        and training.compile in ("auto", False)
        and training.strategy in ("auto", "single")
        and not training.callbacks
        and training.run is None
        and not getattr(est, "_skl_callbacks", None)
        and not (isinstance(X, Dataset) and X.streaming)
        and len(X) <= BLOCK * WINDOW
    )


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

    def run(self, objective: Any, device: torch.device, precision: Any) -> None:
        """Train, and hand every member what it learnt."""
        head, training = self.members[0], self.training
        self.objective, self.device, self.precision = objective, device, precision
        self.x = self.samples.x.x.to(device)  # type: ignore[attr-defined]
        self.y = self.samples.y.to(device)  # type: ignore[union-attr]
        self.weight = self._weight()
        self.stack = Stack(self.nets, device, precision.dtype)
        schedule = build_schedule(training.schedule)
        updates, groups = self._optimizers()
        batches = Batches([len(k) for k in self.kept], head.batch_size, device)
        histories: list[list[dict[str, Any]]] = [[] for _ in self.members]
        work = step_work(self.stack, torch.Size(), head.batch_size)
        with (
            # Plain BLAS serves batched products of small matrices better at any size.
            cpu_scope(device, min(work, 0.0)) as cores,
            precision.products(device),
            seed_scope(self.seeds[0], device),
        ):
            for epoch in range(head.epochs):
                started, losses, rate = time.perf_counter(), [], head.lr
                self.stack.train()
                order = self._order(epoch, batches)
                for step in range(batches.steps):
                    factor = schedule(epoch * batches.steps + step, head.epochs * batches.steps)
                    rate = head.lr * factor
                    for group in groups:
                        group["lr"] = rate
                    index, share = batches.take(order, self.weight, step)
                    losses.append(self._step(index, share, updates))
                self._record(histories, epoch, losses, batches, rate, time.perf_counter() - started)
        self._hand_out(histories, {"device": str(device), "precision": precision.name, **cores})

    def _weight(self) -> Tensor | None:
        """Return row weights (M, N), or None when every row counts the same."""
        shared = self.samples.weight
        if self.weights is not None:
            return torch.from_numpy(self.weights).to(self.device, self.precision.dtype)
        return None if shared is None else shared.to(self.device).expand(len(self.members), -1)

    def _optimizers(self) -> tuple[list[Any], list[dict[str, Any]]]:
        """One for matrices and one for biases: stacking hides from them which is which."""
        parameters = list(self.stack.parameters())
        matrices = [p for p in parameters if p.ndim >= 3]
        biases = [p for p in parameters if p.ndim < 3]
        decay = self.training.weight_decay
        made = [
            build_optimizer(
                self.training.optimizer, chosen, lr=self.members[0].lr, weight_decay=decay
            )
            for chosen in (matrices, biases)
            if chosen
        ]
        if decay and biases:
            made[-1].param_groups[0]["weight_decay"] = 0.0
        updates = [fused_step(optimizer) or optimizer.step for optimizer in made]
        return updates, [group for optimizer in made for group in optimizer.param_groups]

    def _order(self, epoch: int, batches: Batches) -> Tensor:
        """Return each member's rows in the order of this epoch, (M, most rows)."""
        order = torch.zeros(len(self.kept), batches.most, dtype=torch.long, device=self.device)
        for i, (kept, seed) in enumerate(zip(self.kept, self.seeds, strict=True)):
            rows = kept.to(self.device)
            if batches.steps > 1:  # a single batch has no order worth shuffling
                source = generator(derive(seed, 0), epoch, device=self.device)
                rows = rows[torch.randperm(len(rows), generator=source, device=self.device)]
            order[i, : len(rows)] = rows
        return order

    def _losses(self, index: Tensor, share: Tensor) -> Tensor:
        """Return the mean loss of each member, (M,), over its rows of a batch."""
        members, size = index.shape
        flat = index.flatten()
        x = self.x.index_select(0, flat).view(members, size, -1)  # (M, B, D)
        y = self.y.index_select(0, flat)
        with self.precision.autocast(self.device):
            outputs = self.stack(x).flatten(0, 1)  # (M B, K)
            rows = _row_losses(self.objective, outputs, y)
        return (rows.view(members, size) * share).sum(dim=1)

    def _step(self, index: Tensor, share: Tensor, updates: list[Any]) -> Tensor:
        for parameter in self.stack.parameters():
            parameter.grad = None
        losses = self._losses(index, share)
        losses.sum().backward()
        for update in updates:
            update()
        return losses.detach()

    def _record(
        self,
        histories: list[list[dict[str, Any]]],
        epoch: int,
        losses: list[Tensor],
        batches: Batches,
        rate: float,
        seconds: float,
    ) -> None:
        """Add a line to each member's history, and stop at a loss that is not a number."""
        found = torch.stack(losses).double().cpu()  # (S, M)
        bad = (~found.isfinite()).nonzero()
        if len(bad):
            step, member = bad[0].tolist()
            raise Diverged(
                f"Training: the loss of member {member} became {found[step, member].item()} in "
                f"epoch {epoch + 1}, with lr={rate:g}. Lower `lr`, or check the data for extreme "
                "values.",
                step=epoch * batches.steps + step + 1,
                epoch=epoch,
                term="loss",
                lr=rate,
            )
        sizes = batches.sizes.T.double().cpu()  # (S, M)
        means = ((found * sizes).sum(dim=0) / sizes.sum(dim=0)).tolist()
        checks = self._validate()
        for i, history in enumerate(histories):
            line = {"epoch": epoch, "stage": "train", "loss": means[i]}
            line |= {} if checks is None else {"val_loss": checks[i]}
            history.append(line | {"lr": rate, "seconds": seconds / len(histories)})

    @torch.no_grad()
    def _validate(self) -> list[float] | None:
        """Return each member's mean loss over its held-out rows."""
        if not len(self.held[0]):
            return None
        self.stack.eval()
        batches = Batches([len(h) for h in self.held], 1024, self.device)
        rows = torch.zeros(len(self.held), batches.most, dtype=torch.long)
        for i, held in enumerate(self.held):
            rows[i, : len(held)] = held
        total = torch.zeros(len(self.held), 2, dtype=torch.float64)
        for step in range(batches.steps):
            index, weight = batches.take(rows.to(self.device), self.weight, step, mean=False)
            whole = weight.sum(dim=1)
            losses = self._losses(index, weight)
            total += torch.stack([losses, whole], dim=1).double().cpu()
        return (total[:, 0] / total[:, 1]).tolist()

    def _hand_out(self, histories: list[list[dict[str, Any]]], settings: dict[str, Any]) -> None:
        fitted = {k: v for k, v in vars(self.members[0]).items() if k.endswith("_")}
        for i, (member, net) in enumerate(zip(self.members, self.nets, strict=True)):
            vars(member).update(fitted)
            member.module_ = self.stack.unstack(i, net).eval()
            member.history_, member.n_iter_ = histories[i], len(histories[i])
            member.best_, member.stopped_, member.run_ = _best(histories[i]), None, None
            member.settings_ = {
                **settings,
                "strategy": "single",
                "processes": 1,
                "together": len(self.members),
                "seed": self.seeds[i],
                "rows": len(self.kept[i]),
                "validation_rows": len(self.held[i]),
            }
            held = self.samples.subset(self.held[i])
            member._after_fit(*member._validation_outputs(held))


def _row_losses(objective: Any, outputs: Tensor, y: Tensor) -> Tensor:
    """Return the loss of each row."""
    if isinstance(objective, Likelihood):
        return -objective.distribution(outputs).log_prob(y)
    return objective.rows(outputs, y)


def _best(history: list[dict[str, Any]]) -> dict[str, Any] | None:
    if "val_loss" not in history[0]:
        return None
    line = min(history, key=lambda line: line["val_loss"])
    return {"epoch": line["epoch"], "stage": 0, "val_loss": line["val_loss"]}


@torch.inference_mode()
def outputs_together(members: Sequence[Any], X: Any) -> Tensor:
    """Return the outputs of members that were fitted together, (M, N, K), on the CPU.

    Parameters
    ----------
    members
        What ``fit_together`` fitted.
    X
        Rows, already checked.
    """
    head = members[0]
    parameter = next(head.module_.parameters())
    device, dtype = parameter.device, parameter.dtype
    stack = Stack([member.module_ for member in members], device, dtype).eval()
    found = []
    with cpu_scope(device, 0.0):
        for block in head.adapter_.blocks(X, _NUMPY[dtype]):
            for rows in torch.from_numpy(block).split(1024):
                found.append(stack(rows.to(device).expand(len(members), -1, -1)).cpu())
    return torch.cat(found, dim=1)
