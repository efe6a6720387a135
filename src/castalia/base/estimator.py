"""The estimator contract: constructor parameters only, ``fit`` a fixed template, two hooks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base.input_checks import (
    check_rows,
    check_target,
    check_weight,
    split_target,
    take_rows,
)
from castalia.base.params import Interval, RandomState, check_parameters
from castalia.base.run_recorder import open_recorder
from castalia.base.sklearn_callbacks import CallbackSupportMixin, SklearnCallbacks, with_callbacks
from castalia.base.tasks import Target
from castalia.base.watched import Watched, watchers
from castalia.data.batches import Samples
from castalia.data.row_splits import SMALLEST, holdout
from castalia.data.table_adapter import TableAdapter
from castalia.errors import InvalidParameter
from castalia.protocols import Objective, Spec, Stage
from castalia.train import (
    Training,
    build_strategy,
    check_training,
    evaluation_rows,
    resolve_precision,
    step_work,
    train,
)
from castalia.utils.devices import cpu_scope, resolve_device
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["Estimator"]


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(Watched, CallbackSupportMixin, BaseEstimator):
    """Base of everything trained by gradients.

    A subclass says which ``adapter`` reads its data, and gives two hooks: ``_network(spec)`` and
    ``_objective(spec)``. A task mixin to the left of this class encodes targets and turns outputs
    into predictions.

    Parameters
    ----------
    epochs
        Passes over the training rows.
    batch_size
        Rows of a step.
    lr
        Learning rate.
    training
        Everything else about the loop; None takes ``Training()``.
    random_state
        Seed. The same seed gives the same weights; no global random state is read or changed.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, to take out and use anywhere.
    history_ : list of dict
        One line an epoch: loss, val_loss, lr, seconds.
    n_iter_ : int
        Epochs done.
    settings_ : dict
        What was resolved: device, precision, threads, seed …
    diagnosis_ : castalia.diagnose.Diagnosis
        What the doctor found, of trainings that were watched (``Training.watch``).
    """

    adapter: ClassVar[type] = TableAdapter
    _unsaved: ClassVar[tuple[str, ...]] = ()
    _wants_validation_outputs: ClassVar[bool] = True  # in ``_after_fit``
    _wants_target: ClassVar[bool] = True  # whether ``fit`` needs a y

    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None
    random_state: Annotated[Any, RandomState()] = None

    def _adapter(self) -> Any:
        """Make the adapter that reads the data, not yet fitted."""
        return self.adapter()

    def _check_target(self, X: Any, y: Any) -> Any:
        """Return y checked against the rows X, which are checked already."""
        return check_target(self, X, y)

    def _network(self, spec: Spec) -> nn.Module:
        """Build the network for this data."""
        raise NotImplementedError

    def _objective(self, spec: Spec) -> Objective | Sequence[Stage]:
        """Say what is minimised: an objective, or stages in order."""
        raise NotImplementedError

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Estimator:
        """Train on rows X and targets y.

        Parameters
        ----------
        X
            Array, frame, or ``castalia.data.Dataset``.
        y
            Targets; with a ``Dataset``, the name of the column, or None when the data set names its
            target.
        sample_weight
            How often each row counts; 0 leaves it out.

        Returns
        -------
        self
        """
        training = self.training if self.training is not None else Training()
        check_parameters(self)
        check_training(training)
        X, y = split_target(X, y)
        adapter = self._adapter()
        X = check_rows(self, adapter, X, reset=True, y=y if self._wants_target else "unasked")
        y = self._check_target(X, y)
        X, y, weight = _drop_weightless(X, y, check_weight(self, X, sample_weight))
        target = self._encode_target(y, weight)  # type: ignore[attr-defined]
        self.adapter_ = adapter.fit(X, target.weight)
        self.spec_ = Spec(
            adapter.inputs,
            target.outputs,
            tuple(adapter.categories),
            rows=len(y),
            extra=dict(adapter.extra),
        )
        self._train(X, y, target, training)
        return self

    def _train(self, X: Any, y: Any, target: Target, training: Training) -> None:
        device = resolve_device(training.device)
        drawn = build_strategy(training, device).agree(seed_from(self.random_state))
        recorder = open_recorder(self, training, X, target.y, target.weight, drawn)
        seed = recorder.seed
        with seed_scope(seed, device):
            net = self._network(self.spec_)
            work = step_work(net, self.adapter_.shape, self.batch_size)
            rows = self.spec_.rows if self.adapter is TableAdapter else sys.maxsize
            precision = resolve_precision(training.precision, device, rows=rows, work=work)
            samples = self._samples(X, target, precision.dtype)
            kept, held = self._split(samples, target, training, seed, precision.dtype)
            objective = self._objective(self.spec_)
            steps = self.epochs * kept.n_batches(self.batch_size)
            doctor = watchers(self, training, recorder, device, work=work, steps=steps)
            state = train(
                net,
                objective if isinstance(objective, Sequence) else [Stage("train", objective)],
                kept,
                training,
                epochs=self.epochs,
                batch_size=self.batch_size,
                lr=self.lr,
                seed=seed,
                device=device,
                precision=precision,
                validation=held,
                callbacks=[*SklearnCallbacks.of(self, X, y, net), *doctor],
                recorder=recorder,
            )
        self.module_ = net if state.weights is None else self._plain(state.weights, precision.dtype)
        self.history_ = state.history
        self.n_iter_ = len(state.history)
        self.best_ = state.best
        self.stopped_ = state.stopped
        self.settings_ = {
            **state.settings,
            "seed": seed,
            "rows": len(kept),
            "validation_rows": len(held),
        }
        self.run_ = None if recorder.run is None else str(recorder.run.folder)
        self._remember(doctor)
        self._after_fit(*self._validation_outputs(held))  # type: ignore[attr-defined]

    def _plain(self, weights: dict[str, Tensor], dtype: torch.dtype) -> nn.Module:
        """Build the network again, whole, around weights that were gathered from shards."""
        with seed_scope(0):
            net = self._network(self.spec_).to(dtype)
        net.load_state_dict(weights)
        return net.eval()

    def _samples(self, X: Any, target: Target, dtype: torch.dtype) -> Samples:
        rows = self.adapter_.rows(X, _NUMPY[dtype])
        y = target.y.to(dtype) if target.y.is_floating_point() else target.y
        weight = None if target.weight is None else torch.from_numpy(target.weight).to(dtype)
        samples = Samples(rows, y, weight)
        return samples if samples.lengths is None else self._padded_rows(samples)

    def _padded_rows(self, samples: Samples) -> Samples:
        """Let batches be made of padded rows of like lengths."""
        lengths: Any = samples.lengths
        tokens, longest = getattr(self, "batch_tokens", None), int(lengths.max())
        if tokens is not None and tokens < longest:
            raise InvalidParameter(
                f"{type(self).__name__}: `batch_tokens` must be at least {longest}, the tokens of "
                f"the longest text; got {tokens}. Lower `context` to cut long texts."
            )
        return replace(samples, tokens=tokens)

    def _split(
        self, samples: Samples, target: Target, training: Training, seed: int, dtype: torch.dtype
    ) -> tuple[Samples, Samples]:
        """Cut off the validation rows, or encode those that were given."""
        if isinstance(training.validation, tuple):
            X, y = training.validation
            X = check_rows(self, self.adapter_, X, reset=False)
            held = self._reencode_target(self._check_target(X, y))  # type: ignore[attr-defined]
            return samples, self._samples(X, held, dtype)
        kept, held_rows = holdout(
            len(samples), training.validation, seed=seed, labels=target.labels, smallest=SMALLEST
        )
        if not len(held_rows):
            return samples, samples.subset(held_rows)
        return samples.subset(kept), samples.subset(held_rows)

    @torch.inference_mode()
    def _validation_outputs(self, held: Samples) -> tuple[Tensor | None, Tensor | None]:
        if not len(held) or not self._wants_validation_outputs:
            return None, None
        device = next(self.module_.parameters()).device
        outputs, targets = [], []
        for window, order in held.windows(None, 0):
            for index in order.split(evaluation_rows(self.adapter_.shape, 8192)):
                batch = window.batch(index)
                outputs.append(self.module_(batch.x.to(device)).cpu())
                targets.append(batch.y)
        return torch.cat(outputs), torch.cat(targets)

    def _forward(self, X: Any) -> Iterator[Tensor]:
        """Yield the network's outputs for rows X block by block, on the CPU."""
        return self._through(self._checked(X))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "module_")
        return check_rows(self, self.adapter_, X, reset=False)

    def _through(self, X: Any) -> Iterator[Tensor]:
        parameter = next(self.module_.parameters())
        device, dtype = parameter.device, parameter.dtype
        self.module_.eval()
        for block in self.adapter_.blocks(X, _NUMPY[dtype]):
            work = step_work(self.module_, self.adapter_.shape, len(block))
            with torch.inference_mode(), cpu_scope(device, work):
                outputs = self.module_(torch.as_tensor(block).to(device)).detach().cpu()
            yield outputs

    def _outputs(self, X: Any) -> Tensor:
        """Return the network's outputs for rows X, on the CPU."""
        X = self._checked(X)
        blocks = self._through(X)
        first = next(blocks, torch.empty(0, self.spec_.outputs))
        if len(first) == len(X):
            return first
        result, stop = first.new_empty(len(X), *first.shape[1:]), 0
        for block in chain([first], blocks):
            start, stop = stop, stop + len(block)
            result[start:stop] = block
        return result

    def set_params(self, **params: Any) -> Estimator:
        """Set parameters; ``training__optimizer`` works from the default ``training=None`` too.

        Parameters
        ----------
        **params
            Names and values.
        """
        if (
            self.training is None
            and "training" not in params
            and any(k.startswith("training__") for k in params)
        ):
            self.training = Training()
        return super().set_params(**params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = self._wants_target
        return tags


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _drop_weightless(
    X: Any, y: Any, weight: np.ndarray | None
) -> tuple[Any, Any, np.ndarray | None]:
    """Leave out rows of weight 0: they are as good as absent."""
    if weight is None or weight.all():
        return X, y, weight
    kept = np.flatnonzero(weight)
    return take_rows(X, kept), take_rows(y, kept), weight[kept]
