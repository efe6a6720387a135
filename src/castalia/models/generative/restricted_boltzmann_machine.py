"""Restricted Boltzmann machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from castalia.base import DirectEstimator, Interval, OneOf
from castalia.base.direct_descent import descend
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.generative.restricted_boltzmann_partition import Partition, partition
from castalia.nets.generative.restricted_boltzmann_network import (
    ENUMERABLE,
    RestrictedBoltzmannNetwork,
)
from castalia.objectives.contrastive_divergence import ContrastiveDivergence, ExactLikelihood
from castalia.objectives.objective import Objective
from castalia.sampling import block_gibbs
from castalia.train import Training
from castalia.utils.seeds import derive, generator, seed_from, seed_scope

__all__ = ["RestrictedBoltzmannMachine"]

ROWS = 4096  # rows that are processed at a time
EDGE = 0.01  # how near to 0 and 1 the means of visible units may lie where biases begin


@dataclass(kw_only=True, eq=False, repr=False)
class RestrictedBoltzmannMachine(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, DirectEstimator
):
    """Distribution over rows with hidden 0/1 units, each joined to every column.

    p(v) = exp(-F(v)) / Z, F(v) = -b.v - sum_j softplus(c_j + v.W_j). ``transform`` gives
    P(h_j = 1 | v), features for another model; ``sample`` draws rows; ``log_likelihood`` gives
    log p(v).

    Parameters
    ----------
    hidden
        Number H of hidden units.
    visible
        ``"bernoulli"``: columns are 0 or 1, or probabilities in between; ``"gaussian"``: numbers,
        which are standardised; ``"auto"``: the first where all numbers lie between 0 and 1.
    noise
        Standard deviation of a normal column given the hidden units, as a share of its own.
    method
        ``"pcd"``: chains that go on from step to step, the better likelihood; ``"cd"``: chains that
        start at the data, the better features in few epochs; ``"exact"``: the true gradient, up to
        20 units in the smaller layer.
    k
        Steps of Gibbs sampling in each update.
    chains
        Persistent chains of ``"pcd"``; None: as many as a batch has rows.
    sparsity
        Share of rows for which a hidden unit should be on; None does not mind.
    sparsity_weight
        Strength of that wish.
    momentum
        Share of the last step that is added to the next.
    weight_decay
        Decay of the weights W.
    epochs, batch_size, lr
        Passes over the rows, rows of a step and learning rate, which falls linearly to zero.
    training
        Another way for the loop to run; its optimizer then stands in place of momentum, decay and
        the falling rate.

    Attributes
    ----------
    weights_ : ndarray of shape (D, H)
        W.
    visible_bias_ : ndarray of shape (D,)
        b.
    hidden_bias_ : ndarray of shape (H,)
        c.
    visible_ : str
        ``"bernoulli"`` or ``"gaussian"``.
    mean_, scale_ : ndarray of shape (D,)
        What normal columns were standardised by; 0 and 1 otherwise.
    base_ : ndarray of shape (D,)
        Visible biases of independent columns, at which annealing begins.
    history_ : list of dict
        One line an epoch; ``reconstruction`` is a monitor, not what is minimised.

    Shapes
    ------
    X (N, D): an array, a frame, or a tensor; transformed (N, H).

    Notes
    -----
    ``log_likelihood`` needs log Z. With at most 20 units in the smaller layer it is summed exactly;
    otherwise annealed importance sampling estimates it once, with an interval
    (``log_partition()``). Contrastive divergence follows the gradient only roughly; the loss of the
    history is a difference of free energies and need not fall.

    References
    ----------
    2002, Hinton, Training products of experts by minimizing contrastive divergence, Neural
    Computation 14. 2008, Tieleman, Training restricted Boltzmann machines using approximations to
    the likelihood gradient, ICML. 2012, Hinton, A practical guide to training restricted Boltzmann
    machines.

    See Also
    --------
    castalia.DeepBeliefNetwork : a stack of them.

    Examples
    --------
    >>> X = np.repeat([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]], 50, axis=0)
    >>> model = RestrictedBoltzmannMachine(
    ...     hidden=2, method="exact", lr=0.5, momentum=0.9, epochs=100, random_state=0
    ... ).fit(X)
    >>> bool(np.exp(model.log_likelihood(X[:1]))[0] > 0.4)
    True
    """

    hidden: Annotated[int, Interval(1, whole=True)] = 256
    visible: Annotated[str, OneOf("auto", "bernoulli", "gaussian")] = "auto"
    noise: Annotated[float, Interval(0, closed="neither")] = 1.0
    method: Annotated[str, OneOf("pcd", "cd", "exact")] = "pcd"
    k: Annotated[int, Interval(1, whole=True)] = 1
    chains: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    sparsity: Annotated[float | None, Interval(0, 1, closed="neither", optional=True)] = None
    sparsity_weight: Annotated[float, Interval(0)] = 0.1
    momentum: Annotated[float, Interval(0, 1, closed="left")] = 0.5
    weight_decay: Annotated[float, Interval(0)] = 1e-4
    epochs: Annotated[int, Interval(1, whole=True)] = 50
    batch_size: Annotated[int, Interval(1, whole=True)] = 64
    lr: Annotated[float, Interval(0, closed="neither")] = 0.05
    training: Training | None = None

    def fit(self, X: Any, y: Any = None) -> RestrictedBoltzmannMachine:  # type: ignore[override]
        """Fit on rows X; y is not used."""
        self.__dict__.pop("_partition", None)
        super().fit(X)
        return self

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        X = np.asarray(X.cpu() if isinstance(X, Tensor) else X, dtype=np.float32)
        self._learn_columns(X)
        rows = self._encode_rows(X)
        seed = seed_from(self.random_state)
        with seed_scope(derive(seed, 0) % 2**31):
            net = RestrictedBoltzmannNetwork(
                X.shape[1], self.hidden, gaussian=self.visible_ == "gaussian"
            )
        with torch.no_grad():
            net.visible_bias.copy_(torch.from_numpy(self.base_))
        objective = self._objective(net, min(self.batch_size, len(X)))
        state = descend(
            self,
            net,
            objective,
            rows,
            torch.zeros(len(rows)),
            training=self._loop(),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
        )
        self._keep(net)
        self.history_ = state.history

    def _learn_columns(self, X: np.ndarray) -> None:
        unit = bool(X.min() >= 0 and X.max() <= 1)
        self.visible_ = self.visible
        if self.visible == "auto":
            self.visible_ = "bernoulli" if unit else "gaussian"
        elif self.visible == "bernoulli" and not unit:
            wrong = X[(X < 0) | (X > 1)][0]
            raise InvalidData(
                "RestrictedBoltzmannMachine: X must lie between 0 and 1 where visible='bernoulli'; "
                f"got {wrong:g}. Scale it, or set visible='gaussian'."
            )
        mean = X.mean(axis=0, dtype=np.float64)
        if self.visible_ == "bernoulli":
            self.mean_, self.scale_ = np.zeros_like(mean), np.ones_like(mean)
            odds = mean.clip(EDGE, 1 - EDGE)
            self.base_ = np.log(odds / (1 - odds)).astype(np.float32)
            return
        spread = X.std(axis=0, dtype=np.float64)
        self.mean_, self.scale_ = mean, self.noise * np.where(spread > 0, spread, 1.0)
        self.base_ = np.zeros(len(mean), dtype=np.float32)

    def _objective(self, net: RestrictedBoltzmannNetwork, batch: int) -> Objective:
        if self.method == "exact":
            if not net.enumerable:
                raise InvalidParameter(
                    "RestrictedBoltzmannMachine: method='exact' sums over all states of the "
                    f"smaller layer, which must have at most {ENUMERABLE} units; got "
                    f"{tuple(net.weight.shape)}. Use 'pcd'."
                )
            return ExactLikelihood()
        persistent = (self.chains or batch) if self.method == "pcd" else 0
        return ContrastiveDivergence(
            self.k,
            persistent=persistent,
            sparsity=self.sparsity,
            sparsity_weight=self.sparsity_weight,
        )

    def _loop(self) -> Training:
        if self.training is not None:
            return self.training
        return Training(
            optimizer=("sgd", {"momentum": self.momentum}),
            schedule="linear_decay",
            weight_decay=self.weight_decay,
            validation=0,
            watch=False,
            verbose=False,
            device=self.device,
        )

    def _keep(self, net: RestrictedBoltzmannNetwork) -> None:
        self.weights_ = net.weight.detach().cpu().numpy().copy()
        self.visible_bias_ = net.visible_bias.detach().cpu().numpy().copy()
        self.hidden_bias_ = net.hidden_bias.detach().cpu().numpy().copy()

    # -- what it can be asked --

    @property
    def _machine(self) -> RestrictedBoltzmannNetwork:
        """The network, on the device."""
        check_is_fitted(self, "weights_")
        inputs, hidden = self.weights_.shape
        with torch.random.fork_rng(devices=[]):
            net = RestrictedBoltzmannNetwork(inputs, hidden, gaussian=self.visible_ == "gaussian")
        values = (self.weights_, self.visible_bias_, self.hidden_bias_)
        for parameter, value in zip(net.parameters(), values, strict=True):
            parameter.data = self._tensor(value)
        return net.requires_grad_(False)

    def _encode_rows(self, X: np.ndarray) -> np.ndarray:
        if self.visible_ == "bernoulli":
            return X
        return ((X - self.mean_) / self.scale_).astype(np.float32)

    def _each(self, X: Any, ask: Any) -> np.ndarray:
        """Return what the network says of rows, a block at a time."""
        net = self._machine
        X = self._matrix(X)
        X = np.asarray(X.cpu() if isinstance(X, Tensor) else X, dtype=np.float32)
        with torch.inference_mode():
            rows = torch.from_numpy(self._encode_rows(X)).split(ROWS)
            found = [ask(net, self._tensor(part)).cpu() for part in rows]
        return torch.cat(found).numpy()

    def transform(self, X: Any) -> np.ndarray:
        """Return P(h_j = 1 | v) of each row, (N, H)."""
        return self._each(X, lambda net, v: net(v))

    def reconstruct(self, X: Any) -> np.ndarray:
        """Return what one step down from the hidden probabilities makes of rows, (N, D)."""
        back = self._each(X, lambda net, v: net.reconstruct(net(v)))
        return self._decode_rows(torch.from_numpy(back))

    def free_energy(self, X: Any) -> np.ndarray:
        """Return F(v) of each row, (N,); differences compare rows, log Z is not needed."""
        return self._each(X, lambda net, v: net.double().free_energy(v.double()))

    def log_partition(self, *, runs: int = 100, betas: int = 1000, exact: bool = True) -> Partition:
        """Return log Z with the interval it lies in: summed exactly, or estimated by annealing.

        Parameters
        ----------
        runs, betas
            Runs of the annealing side by side, and its temperatures.
        exact
            Whether to sum over all states where the smaller layer has at most 20 units.
        """
        net = self._machine
        if exact and net.enumerable:
            net = net.double()
        base = self._tensor(self.base_).to(net.weight)
        seed = derive(seed_from(self.random_state), 2)
        return partition(net, base, runs=runs, betas=betas, random_state=seed % 2**31, exact=exact)

    @functools.cached_property
    def _partition(self) -> Partition:
        return self.log_partition()

    def log_likelihood(self, X: Any) -> np.ndarray:
        """Return log p(v) of each row, (N,)."""
        constant = self._partition.log_z + float(np.log(self.scale_).sum())
        return -self.free_energy(X) - constant

    def score_samples(self, X: Any) -> np.ndarray:
        """Return log p(v) of each row, (N,)."""
        return self.log_likelihood(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood of rows: the higher the better."""
        return float(self.log_likelihood(X).mean())

    def pseudo_likelihood(self, X: Any) -> np.ndarray:
        """Return sum_i log p(v_i | all others) of each row of zeros and ones, (N,); no Z needed."""
        if self.visible_ != "bernoulli":
            raise InvalidParameter(
                "RestrictedBoltzmannMachine: the pseudo-likelihood is that of columns of 0 and 1; "
                "this machine has normal ones."
            )

        def ask(net: RestrictedBoltzmannNetwork, v: Tensor) -> Tensor:
            return torch.cat([_pseudo_rows(net, part) for part in v.split(64)])

        return self._each(X, ask)

    def sample(self, n: int = 1, *, steps: int = 1000, random_state: Any = None) -> np.ndarray:
        """Draw rows by long block Gibbs sampling from a random start, (n, D).

        Parameters
        ----------
        n
            Rows: so many chains run side by side, and each gives its last state.
        steps
            Steps of every chain.
        random_state
            Seed; None takes the model's.
        """
        net = self._machine
        given = self.random_state if random_state is None else random_state
        seed = derive(seed_from(given), 3) % 2**31
        first = torch.Generator().manual_seed(seed)
        start = torch.rand(n, len(self.base_), generator=first).round()
        updates = [net.gibbs]
        chains = block_gibbs(
            updates, self._tensor(start), steps=steps, thin=steps, random_state=seed
        )
        return self._decode_rows(chains.last)

    def draw_visible(self, hidden: Any, *, random_state: Any = None) -> np.ndarray:
        """Draw rows given states of the hidden units, (N, H) to (N, D)."""
        net = self._machine
        seed = seed_from(self.random_state if random_state is None else random_state)
        h = self._tensor(np.asarray(hidden, dtype=np.float32))
        return self._decode_rows(net.draw_visible(h, generator(seed, device=h.device)))

    def _decode_rows(self, rows: Tensor) -> np.ndarray:
        found = rows.cpu().numpy()
        return found if self.visible_ == "bernoulli" else found * self.scale_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return len(self.hidden_bias_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _pseudo_rows(net: RestrictedBoltzmannNetwork, v: Tensor) -> Tensor:
    """Return sum_i log p(v_i | others), (B,): F with each unit flipped, by its change alone."""
    drive = net.drive(v)[:, None]  # (B, 1, H)
    flip = 1 - 2 * v  # (B, D)
    changed = torch.nn.functional.softplus(drive + flip[:, :, None] * net.weight)  # (B, D, H)
    gain = flip * net.visible_bias + changed.sum(dim=2)
    gain = gain - torch.nn.functional.softplus(drive).sum(dim=2)  # log p~(flipped) - log p~(v)
    return -torch.nn.functional.softplus(gain).sum(dim=1)
