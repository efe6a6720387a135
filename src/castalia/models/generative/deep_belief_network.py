"""Deep belief network: restricted Boltzmann machines on top of each other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import DirectEstimator, Interval, OneOf, Sizes
from castalia.base.direct_descent import descend
from castalia.base.targets import encode_classes
from castalia.errors import InvalidParameter
from castalia.models.generative.restricted_boltzmann_machine import RestrictedBoltzmannMachine
from castalia.objectives import CrossEntropy
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.seeds import derive, seed_from, seed_scope

__all__ = ["DeepBeliefNetwork"]

ROWS = 4096  # rows that are processed at a time


@dataclass(kw_only=True, eq=False, repr=False)
class DeepBeliefNetwork(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, DirectEstimator
):
    """Classifier whose layers are first learnt one by one without labels, then together with them.

    Each restricted Boltzmann machine learns the features of the one below; their weights start a
    network of sigmoid layers, which cross-entropy then fine-tunes. The machines stay as they were:
    ``sample`` draws rows from the stack.

    Parameters
    ----------
    hidden
        Numbers of hidden units, from below.
    visible
        Kind of columns, as in ``RestrictedBoltzmannMachine``.
    pretrain_epochs, pretrain_lr
        Passes and learning rate of each machine.
    method, k
        How the machines are trained, as in ``RestrictedBoltzmannMachine``.
    epochs, batch_size, lr
        Passes, rows of a step and learning rate (Adam's) of the fine-tuning.
    training
        Another way for the loop of the fine-tuning to run.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    machines_ : list of RestrictedBoltzmannMachine
        The stack as it was learnt without labels.
    module_ : torch.nn.Sequential
        The fine-tuned network.
    history_ : list of dict
        One line an epoch of the fine-tuning.

    Shapes
    ------
    X (N, D), y (N,) labels; transformed (N, hidden[-1]).

    Notes
    -----
    The likelihood of the stack has a lower bound that each further layer can raise; fine-tuning
    leaves that aside.

    References
    ----------
    2006, Hinton, Osindero, Teh, A fast learning algorithm for deep belief nets, Neural Computation
    18. 2007, Bengio, Lamblin, Popovici, Larochelle, Greedy layer-wise training of deep networks.

    See Also
    --------
    castalia.RestrictedBoltzmannMachine : one layer.
    castalia.MLPClassifier : without the start by machines.

    Examples
    --------
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], 20, axis=0)
    >>> model = DeepBeliefNetwork(hidden=(4, 4), epochs=60, lr=0.05, random_state=0)
    >>> model.fit(X, X[:, 0]).predict(X[[0, 20]]).tolist()
    [1.0, 0.0]
    """

    hidden: Annotated[tuple[int, ...], Sizes()] = (256, 256)
    visible: Annotated[str, OneOf("auto", "bernoulli", "gaussian")] = "auto"
    method: Annotated[str, OneOf("pcd", "cd")] = "cd"
    k: Annotated[int, Interval(1, whole=True)] = 1
    pretrain_epochs: Annotated[int, Interval(1, whole=True)] = 20
    pretrain_lr: Annotated[float, Interval(0, closed="neither")] = 0.05
    epochs: Annotated[int, Interval(1, whole=True)] = 50
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 1e-3
    training: Training | None = None

    def fit(self, X: Any, y: Any = None) -> DeepBeliefNetwork:  # type: ignore[override]
        """Learn the layers from rows X, then fine-tune them with labels y."""
        super().fit(X, y)
        return self

    def _solve(self, X: Any, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        if not self.hidden:
            raise InvalidParameter(
                "DeepBeliefNetwork: `hidden` must hold at least one number of units; got none."
            )
        self.classes_, codes = encode_classes(self, y)
        X = np.asarray(X.cpu() if isinstance(X, Tensor) else X, dtype=np.float32)
        seed = seed_from(self.random_state)
        self.machines_ = self._greedy(X, seed)
        self.spec_ = Spec(X.shape[1], len(self.classes_), rows=len(X))
        with seed_scope(derive(seed, 100) % 2**31):
            self.module_ = self._network(self.spec_)
        self._start_from_machines()
        state = descend(
            self,
            self.module_,
            CrossEntropy(),
            self._rows(X),
            torch.from_numpy(codes),
            training=self._loop(),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
        )
        self.module_.eval()
        self.history_ = state.history

    def _network(self, spec: Spec) -> nn.Sequential:
        widths = [spec.inputs, *self.hidden]
        layers: list[nn.Module] = []
        for below, above in pairwise(widths):
            layers += [nn.Linear(below, above), nn.Sigmoid()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], spec.outputs))

    def _greedy(self, X: np.ndarray, seed: int) -> list[RestrictedBoltzmannMachine]:
        """Train a machine on the rows, the next on its hidden probabilities, and so on."""
        machines: list[RestrictedBoltzmannMachine] = []
        for number, units in enumerate(self.hidden):
            machine = RestrictedBoltzmannMachine(
                hidden=units,
                visible=self.visible if number == 0 else "bernoulli",
                method=self.method,
                k=self.k,
                epochs=self.pretrain_epochs,
                batch_size=self.batch_size,
                lr=self.pretrain_lr,
                device=self.device,
                random_state=derive(seed, number + 1) % 2**31,
            ).fit(X)
            machines.append(machine)
            X = machine.transform(X)
        return machines

    def _start_from_machines(self) -> None:
        linear = [layer for layer in self.module_ if isinstance(layer, nn.Linear)]
        with torch.no_grad():
            for layer, machine in zip(linear, self.machines_, strict=False):
                layer.weight.copy_(torch.from_numpy(machine.weights_.T))
                layer.bias.copy_(torch.from_numpy(machine.hidden_bias_))

    def _loop(self) -> Training:
        if self.training is not None:
            return self.training
        return Training(validation=0, watch=False, verbose=False, device=self.device)

    def _rows(self, X: np.ndarray) -> np.ndarray:
        return self.machines_[0]._encode_rows(X)

    # -- what it can be asked --

    def _through(self, X: Any, last: int | None) -> np.ndarray:
        check_is_fitted(self, "module_")
        X = self._matrix(X)
        X = np.asarray(X.cpu() if isinstance(X, Tensor) else X, dtype=np.float32)
        net = self.module_[:last]
        with torch.inference_mode():
            parts = torch.from_numpy(self._rows(X)).split(ROWS)
            return torch.cat([net(part) for part in parts]).numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, (N, K)."""
        logits = self._through(X, None).astype(np.float64)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, (N,)."""
        best = self._through(X, None).argmax(axis=1)
        return self.classes_[best]

    def transform(self, X: Any) -> np.ndarray:
        """Return the activations of the last hidden layer, (N, hidden[-1])."""
        return self._through(X, -1)

    def sample(self, n: int = 1, *, steps: int = 1000, random_state: Any = None) -> np.ndarray:
        """Draw rows, (n, D): long Gibbs sampling in the top machine, then down layer by layer."""
        check_is_fitted(self, "module_")
        given = self.random_state if random_state is None else random_state
        seed = seed_from(given)
        rows = self.machines_[-1].sample(n, steps=steps, random_state=seed)
        for number, machine in enumerate(reversed(self.machines_[:-1])):
            rows = machine.draw_visible(rows, random_state=derive(seed, number) % 2**31)
        return rows

    @property
    def _n_features_out(self) -> int:
        return self.hidden[-1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags
