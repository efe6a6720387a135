"""The variational autoencoder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from sklearn.utils.metaestimators import available_if
from torch import Tensor, nn

from castalia.base import Interval, OneOf, Sizes
from castalia.errors import InvalidParameter
from castalia.models.generative.anomaly_methods import Anomalies
from castalia.models.generative.autoencoder_base import code_width
from castalia.models.generative.code_methods import Codes
from castalia.models.generative.row_estimator import LIKELIHOODS, RowEstimator, row_likelihood
from castalia.models.generative.sample_methods import Samples
from castalia.nets.generative import VariationalNetwork, decoder, encoder
from castalia.nn import ACTIVATIONS
from castalia.objectives import (
    ELBO,
    Objective,
    PartlyLabelledELBO,
    RowLikelihood,
    log_normal,
    reparametrise,
)
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.row_noise import BLOCK, RowNoise
from castalia.utils.seeds import generator

__all__ = ["VariationalAutoencoder"]

DRAWS = 64  # importance samples by which rows are scored
PART = 64  # of them decoded together
STREAM = 2**22  # numbers the seeds of estimates apart from those of samples


def _guesses(est: Any) -> bool:
    return est.unlabelled is not None


@dataclass(kw_only=True, eq=False, repr=False)
class VariationalAutoencoder(Samples, Anomalies, Codes, RowEstimator):
    """Latent-variable density of the rows of a table, or of images, learnt by a bound.

    z ~ N(0, I), x ~ p(x | z). An encoder gives q(z | x) = N(mu, s^2), and the evidence lower bound
    E_q log p(x | z) - KL(q(z | x) || p(z)) is maximised through z = mu + s eps. Draws rows, gives
    codes, and scores rows by an estimate of log p(x).

    Parameters
    ----------
    code
        Width of the code; None: half the width of a row, at most 16.
    hidden
        Widths of the encoder's hidden layers; the decoder has them backwards.
    activation
        Non-linearity of hidden layers, a name from ``castalia.nn.ACTIVATIONS``.
    width
        For images: channels of the first of the convolutions that halve them; 0 takes dense layers.
    likelihood
        For images ``"gaussian"``, ``"bernoulli"``, ``"logistic"`` (discretised, over the levels of
        a byte) or ``"categorical"`` (each level by itself); ``"auto"`` is Bernoulli. Columns of
        tables have one by their kind.
    spread
        Whether numbers have a deviation for each ``"column"``, or ``"one"`` for all: with linear
        layers the latter is probabilistic PCA, the former factor analysis.
    beta
        Weight of the divergence; above 1 codes are simpler, below 1 reconstructions better.
    free_bits
        Nats of each dimension that cost nothing, against codes that are not used.
    warm_up
        Epochs over which ``beta`` rises from 0.
    bound_samples
        Above 1: the importance-weighted bound with as many draws, which is tighter and slower.
    conditional
        Whether y is given, and the decoder draws rows of a class.
    unlabelled
        What stands in y where the class is unknown, such as -1; the classes of those rows are
        learnt too (semi-supervised, "M2"), and ``predict`` gives them. None: all are known.
    label_weight
        How much the labels that are known teach it, beside the bound.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``posterior``, ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    classes_ : ndarray
        Classes of a conditional model.
    threshold_ : float
        Score below which a row is an anomaly.
    history_ : list of dict
        Loss, ``reconstruction`` and ``kl`` of every epoch, in nats a row.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.  Codes: (n, code).

    Notes
    -----
    ``score_samples`` is an importance-sampled lower bound of log p(x) with 64 draws;
    ``log_likelihood`` takes as many as are wanted and gives the standard error. A conditional model
    scores rows by the mean over classes.

    References
    ----------
    2014, Kingma, Welling, Auto-encoding variational Bayes, arXiv 1312.6114. 2014, Rezende, Mohamed,
    Wierstra, Stochastic backpropagation, arXiv 1401.4082. 2016, Burda, Grosse, Salakhutdinov,
    Importance weighted autoencoders, arXiv 1509.00519. 2014, Kingma, Rezende, Mohamed, Welling,
    Semi-supervised learning with deep generative models, arXiv 1406.5298.

    See Also
    --------
    DRAW : the bound over a sequence of codes and a canvas.
    GenerativeAdversarialNetwork : sharper draws, no density.
    NormalizingFlow : exact densities of tables.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> model = VariationalAutoencoder(code=2, epochs=5, random_state=0).fit(X)
    >>> model.sample(3).shape, model.transform(X).shape, sorted(model.history_[-1])[:2]
    ((3, 4), (300, 2), ['epoch', 'kl'])
    """

    usual_training: ClassVar[Training] = Training(patience=20)

    code: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    hidden: Annotated[tuple[int, ...], Sizes()] = (128,)
    activation: Annotated[str, OneOf(*ACTIVATIONS)] = "relu"
    width: Annotated[int, Interval(0, whole=True)] = 32
    likelihood: Annotated[str, OneOf(*LIKELIHOODS)] = "auto"
    spread: Annotated[str, OneOf("column", "one")] = "column"
    beta: Annotated[float, Interval(0)] = 1.0
    free_bits: Annotated[float, Interval(0)] = 0.0
    warm_up: Annotated[float, Interval(0)] = 0.0
    bound_samples: Annotated[int, Interval(1, whole=True)] = 1
    conditional: Annotated[bool, OneOf(True, False)] = False
    unlabelled: Any = None
    label_weight: Annotated[float, Interval(0)] = 10.0

    @property
    def code_(self) -> int:
        """Width of the code."""
        return code_width(self.code, self.spec_)

    def _row_likelihood(self, spec: Spec | None = None) -> RowLikelihood:
        owner = type(self).__name__
        return row_likelihood(self.likelihood, spec or self.spec_, spread=True, owner=owner)

    def _network(self, spec: Spec) -> nn.Module:
        code, likelihood = code_width(self.code, spec), self._row_likelihood(spec)
        shape: dict[str, Any] = {
            "size": tuple(spec.extra.get("size") or ()),
            "hidden": self.hidden,
            "width": self.width,
            "activation": self.activation,
        }
        first = encoder(spec.inputs + spec.outputs, 2 * code, categories=spec.categories, **shape)
        outputs = likelihood.outputs - likelihood.spreads
        last = decoder(code + spec.outputs, outputs, **shape)
        return VariationalNetwork(
            first,
            last,
            spreads=likelihood.spreads,
            shared=self.spread == "one",
            classes=spec.outputs,
            classifier=None if self.unlabelled is None else self._classifier(spec, shape),
        )

    def _classifier(self, spec: Spec, shape: dict[str, Any]) -> nn.Module:
        return encoder(spec.inputs, spec.outputs, categories=spec.categories, **shape)

    def _objective(self, spec: Spec) -> Objective:
        if self.unlabelled is not None:
            likelihood = self._row_likelihood(spec)
            return PartlyLabelledELBO(likelihood, beta=self.beta, label_weight=self.label_weight)
        return ELBO(
            self._row_likelihood(spec),
            beta=self.beta,
            free_bits=self.free_bits,
            samples=self.bound_samples,
            warm_up=self.warm_up,
        )

    def _decoded(self, z: Tensor, y: Tensor | None = None) -> Tensor:
        if self.conditional and y is None:
            raise InvalidParameter(
                f"{type(self).__name__}: rows of codes need a class in a conditional model; use "
                "sample(n, y)."
            )
        return self.module_.decode(z, y)  # type: ignore[operator]

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        parameter = next(self.module_.parameters())
        outputs = self._decoded(noise.normal(self.code_).to(parameter), y)
        likelihood = self._row_likelihood()
        if likelihood.unit and not hasattr(likelihood, "levels"):
            return likelihood.mode(outputs)  # grey values, not black and white ones
        return likelihood.sample(outputs, noise)

    def posterior(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and deviation of q(z | x) of each row, (n, code) each."""
        found = self._each(X, lambda x: torch.stack(self.module_.posterior(x), dim=1))  # type: ignore[operator]
        both = torch.cat(list(found)).numpy()
        return both[:, 0], np.exp(both[:, 1] / 2)

    @available_if(_guesses)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return q(y | x) of each row, (n, classes): there with ``unlabelled`` only."""
        found = self._each(X, lambda x: self.module_.log_classes(x).exp())  # type: ignore[operator]
        return torch.cat(list(found)).numpy()

    @available_if(_guesses)
    def predict(self, X: Any) -> np.ndarray:
        """Return the likeliest class of each row, (n,): there with ``unlabelled`` only."""
        chosen: np.ndarray = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return chosen

    def _row_scores(self, x: Tensor) -> Tensor:
        """Return log p(x) of each row, (B,), estimated from below with 64 draws."""
        return self._estimates(x, DRAWS)[:, 0] - self.adapter_.log_scale

    def log_likelihood(self, X: Any, samples: int = 5000) -> tuple[np.ndarray, np.ndarray]:
        """Estimate log p(x) of each row by importance sampling from q(z | x).

        Parameters
        ----------
        X
            Rows.
        samples
            Draws for each row.

        Returns
        -------
        values, errors : ndarray (n,)
            log 1/k sum_i p(x, z_i) / q(z_i | x), and its standard error by the delta method.
        """
        found = self._each(X, lambda x: self._estimates(x, samples))
        both = torch.cat(list(found)).numpy()
        return both[:, 0] - self.adapter_.log_scale, both[:, 1]

    def _estimates(self, x: Tensor, samples: int) -> Tensor:
        """Return the estimate and its standard error of each row, (B, 2); all by the same noise."""
        chance = generator(self.settings_["seed"], STREAM)
        draws = [torch.randn(part, 1, self.code_, generator=chance) for part in _parts(samples)]
        return torch.cat([self._estimate(part, draws, samples) for part in x.split(BLOCK)])

    def _estimate(self, x: Tensor, draws: list[Tensor], samples: int) -> Tensor:
        """Return the estimate and its standard error, (B, 2)."""
        labels = range(len(self.classes_)) if self.conditional else [None]
        each = torch.stack([self._weights(x, draws, label) for label in labels])  # (Y, samples, B)
        weights = each.double().logsumexp(dim=0) - math.log(len(labels))
        value = weights.logsumexp(dim=0) - math.log(samples)
        spread = (weights - value).exp().std(dim=0, correction=1 if samples > 1 else 0)
        return torch.stack([value, spread / math.sqrt(samples)], dim=1)

    def _weights(self, x: Tensor, draws: list[Tensor], label: int | None) -> Tensor:
        """Return log p(x, z | y) - log q(z | x, y) of draws, (samples, B)."""
        net: Any = self.module_
        likelihood, found = self._row_likelihood(), []
        y = None if label is None else torch.full((len(x),), label, device=x.device)
        mean, log_variance = net.posterior(x, y)
        for noise in draws:  # (part, 1, K)
            z = reparametrise(mean, log_variance, noise.to(mean))  # (part, B, K)
            again = None if y is None else y.repeat(len(z))
            rows = x.flatten(1).repeat(len(z), 1)
            fit = -likelihood.rows(self._decoded(z.flatten(0, 1), again), rows)
            prior = log_normal(z) - log_normal(z, mean, log_variance)
            found.append(fit.view(len(z), -1) + prior)
        return torch.cat(found)


def _parts(samples: int) -> list[int]:
    """Cut draws into parts that are decoded together."""
    return [min(PART, samples - start) for start in range(0, samples, PART)]
