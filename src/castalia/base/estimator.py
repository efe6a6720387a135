"""The estimator contract: constructor parameters only, ``fit`` a fixed template, two hooks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self, cast

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base.input_checks import (
    check_rows,
    drop_weightless,
    n_rows,
    named_target,
    split_target,
)
from castalia.base.joint_fit import joint_fit
from castalia.base.output_blocks import join_blocks
from castalia.base.parameter_docs import PlainSignature, document, html_diagram
from castalia.base.params import (
    Interval,
    OneOf,
    RandomState,
    check_parameters,
    check_tokens,
    parameter_names,
)
from castalia.base.recipe import Recipe
from castalia.base.run_recorder import open_recorder
from castalia.base.sklearn_callbacks import CallbackSupportMixin, SklearnCallbacks, with_callbacks
from castalia.base.targets import Target, TargetCodec
from castalia.base.watched import Watched, remember, watchers, without_record
from castalia.data.batches import DiskRows, Samples, wide
from castalia.data.table_adapter import TableAdapter
from castalia.protocols import Batch, Objective, Spec, Stage
from castalia.train import (
    Precision,
    Recorder,
    Training,
    TrainState,
    build_strategy,
    check_training,
    evaluation_rows,
    resolve_precision,
    step_work,
    train,
)
from castalia.train.meta_networks import build_network
from castalia.utils.devices import cpu_scope, forked_threads, resolve_device
from castalia.utils.plain_torch import plain_torch
from castalia.utils.process_ranks import rank_and_world
from castalia.utils.seeds import derive, seed_from, seed_scope
from castalia.utils.tensor_trees import leaves, map_tree

__all__ = ["Estimator"]


@dataclass(kw_only=True, eq=False, repr=False)
class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of everything trained by gradients.

    A subclass says which ``adapter`` reads X and which ``codec`` encodes y (a task mixin to the
    left of this class has one), and gives two hooks: ``_network(spec)`` and ``_objective(spec)``.

    Parameters
    ----------
    epochs
        Passes over the training rows.
    batch_size
        Rows of a step.
    lr
        Learning rate.
    training
        Everything else about the loop; None takes the class's ``usual_training``.
    random_state
        Seed. The same seed gives the same weights; no global random state is read or changed.
    warm_start
        Whether ``fit`` of a fitted model goes on from its weights, for ``epochs`` more, with the
        columns, scales and classes it has learnt.

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

    adapter: ClassVar[Any] = TableAdapter  # an ``Adapter``, or what makes one: ``Reads``
    codec: ClassVar[TargetCodec]
    recipe: ClassVar[Recipe] = Recipe()  # of settings that depend on the data
    usual_training: ClassVar[Training] = Training()  # where ``training`` is None
    _get_param_names: ClassVar[Any] = classmethod(parameter_names)  # type: ignore[arg-type]
    diagnosis_: ClassVar[Any] = Watched()
    __signature__: ClassVar[Any] = PlainSignature()
    _html_repr: ClassVar[Any] = html_diagram
    batch_tokens = cast("int | None", None)  # most tokens of a batch: a field where texts are read
    _unsaved: ClassVar[tuple[str, ...]] = ()
    _optimizers: ClassVar[Any] = None  # an instance has their states between calls of partial_fit

    epochs: Annotated[int, Interval(1, whole=True)] = 100
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None
    random_state: Annotated[Any, RandomState()] = None
    warm_start: Annotated[bool, OneOf(True, False)] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        document(cls)

    def _network(self, spec: Spec) -> nn.Module:
        """Build the network for this data."""
        raise NotImplementedError

    def _objective(self, spec: Spec) -> Objective | Sequence[Stage]:
        """Say what is minimised: an objective, or stages in order."""
        raise NotImplementedError

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        validation: Any = None,
        *,
        target: str | None = None,
    ) -> Self:
        """Train on rows X and targets y.

        Parameters
        ----------
        X
            Array, scipy sparse matrix, frame, or ``castalia.data.Dataset``; with ``target``, all
            that ``castalia.read`` reads, such as ``"parts/*.parquet"``.
        y
            Targets; with a ``Dataset``, the name of the column, or None when the data set names its
            target.
        sample_weight
            How often each row counts; 0 leaves it out.
        validation
            Rows and targets ``(X, y)`` to validate on, or a share of the rows; None: as
            ``training`` says.
        target
            The column to predict, instead of y.

        Returns
        -------
        self
        """
        changes = {} if validation is None else {"validation": validation}
        training = self._resolved_training(**changes)
        again = self.warm_start and hasattr(self, "module_")
        if (training.workers or 1) > 1 and rank_and_world()[1] == 1:
            joint_fit(self, training, X, y, sample_weight, target=target)
            return self
        X = X if target is None else named_target(self, X, y, target)
        read = self._further_rows if again else self._first_rows
        self.__dict__.pop("_optimizers", None)
        with plain_torch():
            return self._train(*read(X, y, sample_weight), training, again=again)

    def partial_fit(
        self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Train for one epoch on some rows, and go on from there in the next call.

        The first call learns columns, scales and classes from its rows; those after keep them, and
        the optimizer keeps its state. Every row is trained on: nothing is held out, the learning
        rate is constant and weights are not averaged.

        Parameters
        ----------
        X, y
            Rows and targets.
        classes
            All classes that y will ever hold, in the first call of a classifier.
        sample_weight
            How often each row counts; 0 leaves it out.

        Returns
        -------
        self
        """
        training = self._resolved_training(
            validation=0, patience=None, schedule=None, average=None, run=None
        )
        again = hasattr(self, "module_")
        self.codec.check_classes(self, y, classes, first=not again)
        read = self._further_rows if again else self._first_rows
        with plain_torch():
            rows = read(X, y, sample_weight, classes)
            return self._train(*rows, training, epochs=1, again=again, keep=True)

    def _resolved_training(self, **changes: Any) -> Training:
        """Return how the loop runs, after checking every parameter."""
        training = self.training if self.training is not None else self.usual_training
        check_parameters(self)
        training = replace(training, **changes) if changes else training
        check_training(training)
        return training

    def _first_rows(
        self, X: Any, y: Any, weight: Any, classes: Any = None
    ) -> tuple[Any, Any, Target]:
        """Check rows and targets, learn how to encode them, and encode the targets."""
        adapter, codec = self.adapter.of(self), self.codec
        X, y, weight = self._checked_rows(adapter, X, y, weight, reset=True)
        if classes is None:
            target = codec.fit(self, adapter, X, y, weight)
        else:
            target = codec.begin(self, y, weight, classes)
        self.adapter_ = adapter.fit(X, target.weight)
        self.spec_ = Spec(
            adapter.inputs,
            target.outputs,
            tuple(adapter.categories),
            rows=len(y),
            extra=dict(adapter.extra),
        )
        return X, y, target

    def _further_rows(
        self, X: Any, y: Any, weight: Any, classes: Any = None
    ) -> tuple[Any, Any, Target]:
        """Check rows and targets, and encode the targets as was learnt before."""
        X, y, weight = self._checked_rows(self.adapter_, X, y, weight, reset=False)
        return X, y, self.codec.more(self, y, weight)

    def _checked_rows(
        self, adapter: Any, X: Any, y: Any, weight: Any, *, reset: bool
    ) -> tuple[Any, Any, np.ndarray | None]:
        codec = self.codec
        X, y = split_target(X, y, required=codec.required)
        X = check_rows(self, adapter, X, reset=reset, y=y if codec.required else "unasked")
        y = codec.check(self, adapter, X, y)
        return drop_weightless(X, y, codec.check_weight(self, X, weight))

    def _train(
        self,
        X: Any,
        y: Any,
        target: Target,
        training: Training,
        *,
        epochs: int | None = None,
        again: bool = False,
        keep: bool = False,
    ) -> Self:
        """Run the loop, from random weights or on from those there are."""
        device = resolve_device(training.device)
        past = list(self.history_) if again else []
        recorder = self._recorder(training, device, X, target, past, again=again)
        amounts = self.recipe.amounts(self)
        amounts = amounts if epochs is None else amounts._replace(epochs=epochs)
        with seed_scope(recorder.seed, device):
            if again:
                net = self._network(self.spec_)
                net.load_state_dict(self.module_.state_dict())
            else:
                net = build_network(lambda: self._network(self.spec_), training)
            work = step_work(net, self.adapter_.shape, amounts.batch_size)
            precision = self._precision(training, device, work)
            kept, held = self._split(X, target, training, precision.dtype, recorder.seed)
            stages = _stages(self._objective(self.spec_))
            total = sum(stage.epochs or amounts.epochs for stage in stages)
            steps = amounts.epochs * kept.n_batches(amounts.batch_size)
            doctor = watchers(self, training, recorder, device, work=work, steps=steps)
            state = train(
                net,
                [replace(stages[-1], epochs=None)] if keep else stages,
                kept,
                training,
                **amounts._asdict(),
                seed=recorder.seed,
                device=device,
                precision=precision,
                validation=held,
                callbacks=[*([] if keep else SklearnCallbacks.of(self, X, y, net, total)), *doctor],
                recorder=recorder,
                optimizers=self._optimizers,
            )
        if keep:
            self.__dict__["_optimizers"] = state.stepper.parts.optimizer_states()
        whole = state.weights  # gathered from shards
        self.module_: nn.Module = net if whole is None else self._plain(whole, precision.dtype)
        counts = {"rows": len(kept), "validation_rows": len(held), **amounts._asdict()}
        self._keep_record(state, past, {"seed": recorder.seed, **counts})
        self.run_ = None if recorder.run is None else str(recorder.run.folder)
        remember(self, doctor)
        judged = kept if self.codec.judges_training and not len(held) else held
        self.codec.conclude(self, *self._validation_outputs(judged))
        return self

    def _recorder(
        self,
        training: Training,
        device: torch.device,
        X: Any,
        target: Target,
        past: list[Any],
        *,
        again: bool,
    ) -> Recorder:
        """Open the run of this fit, under a seed of its own: drawn, or that of a resumed run."""
        seed = build_strategy(training, device).agree(seed_from(self.random_state))
        seed = derive(seed, len(past)) % 2**31 if past else seed
        return open_recorder(self, training, X, target.y, target.weight, seed, again=again)

    def _precision(self, training: Training, device: torch.device, work: float) -> Precision:
        rows = self.spec_.rows if isinstance(self.adapter_, TableAdapter) else sys.maxsize
        return resolve_precision(training.precision, device, rows=rows, work=work)

    def _split(
        self, X: Any, target: Target, training: Training, dtype: torch.dtype, seed: int
    ) -> tuple[Samples, Samples]:
        """Return the samples to train on and those to validate on."""
        samples = self._samples(X, target, dtype)
        validation = self._validation(training.validation, dtype)
        return self.adapter_.split(samples, validation, seed, target.labels)

    def _keep_record(
        self, state: TrainState, past: list[dict[str, Any]], resolved: dict[str, Any]
    ) -> None:
        """Keep the record of the training, after that of earlier ones."""
        for line in state.history:
            line["epoch"] += len(past)
        self.history_: list[dict[str, Any]] = [*past, *state.history]
        self.n_iter_ = len(self.history_)
        self.best_, self.stopped_ = state.best, state.stopped
        self.settings_ = {**state.settings, **resolved}

    def _plain(self, weights: dict[str, Tensor], dtype: torch.dtype) -> nn.Module:
        """Build the network again, whole, around weights that were gathered from shards."""
        with seed_scope(0):
            net = self._network(self.spec_).to(dtype)
        net.load_state_dict(weights)
        return net.eval()

    def _samples(self, X: Any, target: Target, dtype: torch.dtype) -> Samples:
        """Return checked rows and encoded targets as the loop wants them."""
        rows = self.adapter_.rows(X, _NUMPY[dtype])
        y = map_tree(lambda leaf: _cast(leaf, dtype, isinstance(rows, DiskRows)), target.y)
        weight = None if target.weight is None else torch.from_numpy(target.weight).to(dtype)
        samples = Samples(rows, y, weight, tokens=self.batch_tokens)
        check_tokens(self, samples.lengths, self.batch_tokens)
        return samples

    def _validation(self, wanted: Any, dtype: torch.dtype) -> float | Samples:
        """Return the share of rows to hold out, or the rows that were given for it, encoded."""
        if not isinstance(wanted, tuple):
            return float(wanted)
        X = check_rows(self, self.adapter_, wanted[0], reset=False)
        y = self.codec.check(self, self.adapter_, X, wanted[1])
        return self._samples(X, self.codec.encode(self, y), dtype)

    @torch.inference_mode()
    def _validation_outputs(self, held: Samples) -> tuple[Any, Tensor | None]:
        if not len(held) or not self.codec.judges:
            return None, None
        enough = self.codec.most_judged or len(held)
        if enough < len(held):
            held = held.subset(np.linspace(0, len(held) - 1, enough).astype(np.int64))
        device = next(self.module_.parameters()).device
        most = evaluation_rows(self.adapter_.shape, 8192)
        size = self.recipe.amounts(self).batch_size
        outputs, targets = [], []
        with cpu_scope(device, step_work(self.module_, self.adapter_.shape, size)):
            for window, order in held.windows(None, 0):
                for index in order.split(most):
                    batch = window.batch(index)
                    found = self.codec.judged(self, batch.to(device))
                    outputs.append(map_tree(lambda part: part.cpu(), found))
                    targets.append(self.codec.truth(batch))
        wanted = torch.cat(targets)
        return join_blocks(iter(outputs), len(wanted), None), wanted

    def _forward(self, X: Any) -> Iterator[Any]:
        """Yield the network's outputs for rows X block by block, on the CPU."""
        return self._through(self._checked(X))

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self, "module_")
        return check_rows(self, self.adapter_, X, reset=False)

    def _through(self, X: Any) -> Iterator[Any]:
        parameter = next(self.module_.parameters())
        device, dtype = parameter.device, parameter.dtype
        forked_threads()
        self.module_.eval()
        for block in self.adapter_.blocks(X, _NUMPY[dtype]):
            work = step_work(self.module_, self.adapter_.shape, len(next(leaves(block))))
            with torch.inference_mode(), cpu_scope(device, work, wait=False):
                outputs = self.codec.outputs(self, Batch(block).to(device).x)
                outputs = map_tree(lambda part: part.detach().cpu(), outputs)
            yield outputs

    def _outputs(self, X: Any) -> Any:
        """Return the network's outputs for rows X, on the CPU."""
        X = self._checked(X)
        return join_blocks(self._through(X), n_rows(X), torch.empty(0, self.spec_.outputs))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``training__optimizer`` works from the default ``training=None`` too."""
        nested = any(name.startswith("training__") for name in params)
        if nested and self.training is None and "training" not in params:
            self.training = replace(self.usual_training)
        return super().set_params(**params)

    def __getstate__(self) -> dict[str, Any]:
        return without_record(super().__getstate__())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        kind: Any = getattr(self.adapter, "adapter", self.adapter)  # or what ``Reads`` makes
        tags.input_tags.sparse = isinstance(kind, type) and issubclass(kind, TableAdapter)
        tags.target_tags.required = self.codec.required
        return tags


_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


def _stages(objective: Objective | Sequence[Stage]) -> Sequence[Stage]:
    return objective if isinstance(objective, Sequence) else [Stage("train", objective)]


def _cast(leaf: Any, dtype: torch.dtype, on_disk: bool) -> Any:
    """Return fractions in the format of the training, class numbers as losses want them."""
    if not isinstance(leaf, Tensor):
        return leaf
    if leaf.is_floating_point():
        return leaf.to(dtype)
    return leaf if on_disk else wide(leaf)  # of rows on disk, a window at a time
