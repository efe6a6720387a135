"""Normalizing flows of tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from castalia.base import Interval, OneOf, Sizes
from castalia.errors import InvalidData
from castalia.models.generative.anomaly_methods import Anomalies, ScoredCodec
from castalia.models.generative.code_methods import Codes
from castalia.models.generative.row_estimator import RowEstimator
from castalia.models.generative.sample_methods import Samples
from castalia.nets.generative import CouplingFlow
from castalia.objectives import NegativeLogLikelihood, RowLikelihood
from castalia.protocols import Spec
from castalia.train import Training
from castalia.utils.row_noise import RowNoise
from castalia.utils.text import listing

__all__ = ["NormalizingFlow"]

HALF = 0.5  # whole numbers are scored in the middle of their unit


class FlowCodec(ScoredCodec):
    """No targets; refuses images, and columns that have no density."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Return zeros."""
        found = super().check(est, adapter, X, y)
        if not adapter.tabular(X):
            raise InvalidData(
                "NormalizingFlow: X must be a table; got images. Use DiffusionModel or "
                "VariationalAutoencoder for those."
            )
        if isinstance(X, np.ndarray):
            constant = np.flatnonzero(np.nanmax(X, axis=0) == np.nanmin(X, axis=0))
            if len(constant) and len(X) > 1:
                names = listing([f"column {i}" for i in constant], "and", 5)
                raise InvalidData(
                    f"NormalizingFlow: columns must vary to have a density; constant: {names}. "
                    "Drop them."
                )
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class NormalizingFlow(Samples, Anomalies, Codes, RowEstimator):
    """Exact density of the rows of a table: an invertible network from rows to normal numbers.

    log p(x) = log N(f(x)) + log |det df/dx| is maximised; f is a stack of couplings, each of which
    changes some columns by what the others say. Scores rows exactly, draws rows, and has codes as
    wide as rows. The right one where a density of some columns of numbers is wanted.

    Parameters
    ----------
    coupling
        ``"spline"``: monotone rational-quadratic splines; ``"affine"``: scale and shift (Real NVP),
        quicker and less flexible.
    depth
        Number of couplings.
    hidden
        Widths of the network in each coupling.
    bins
        Bins of a spline.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained ``castalia.nets.generative.CouplingFlow``, with ``log_prob``.
    code_ : int
        Width of the code: that of a row.
    threshold_ : float
        Score below which a row is an anomaly.
    history_ : list of dict
        Loss, -log p of standardised rows, of every epoch.

    Shapes
    ------
    X: (n, D) numbers, or a frame of any kind.  Codes: (n, D).

    Notes
    -----
    ``score_samples`` are log-densities in the units of X. Categories and indicators of missing
    numbers are whole numbers: uniform noise is added in training, and they are scored at its
    middle.

    References
    ----------
    2017, Dinh, Sohl-Dickstein, Bengio, Density estimation using Real NVP, arXiv 1605.08803. 2019,
    Durkan, Bekasov, Murray, Papamakarios, Neural spline flows, arXiv 1906.04032.

    See Also
    --------
    GaussianMixture : few parameters, for small tables.
    VariationalAutoencoder : a code narrower than a row.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(3, 2, size=(300, 2))
    >>> model = NormalizingFlow(depth=2, hidden=(8,), epochs=5, random_state=0).fit(X)
    >>> model.score_samples(X).shape, model.sample(4).shape
    ((300,), (4, 2))
    >>> np.allclose(model.inverse_transform(model.transform(X)), X, atol=1e-3)
    True
    """

    codec: ClassVar[Any] = FlowCodec()
    usual_training: ClassVar[Training] = Training(patience=20, clip=5.0)

    coupling: Annotated[str, OneOf("spline", "affine")] = "spline"
    depth: Annotated[int, Interval(1, whole=True)] = 6
    hidden: Annotated[tuple[int, ...], Sizes()] = (64, 64)
    bins: Annotated[int, Interval(2, whole=True)] = 8

    @property
    def code_(self) -> int:
        """Width of the code."""
        return self.spec_.inputs

    def _network(self, spec: Spec) -> nn.Module:
        bins = self.bins if self.coupling == "spline" else 0
        return CouplingFlow(spec.inputs, depth=self.depth, hidden=self.hidden, bins=bins)

    def _objective(self, spec: Spec) -> NegativeLogLikelihood:
        return NegativeLogLikelihood(spec.inputs - spec.extra["numbers"])

    def _row_likelihood(self) -> RowLikelihood:
        return Given()

    def _middle(self, x: Tensor) -> Tensor:
        """Return rows with whole numbers moved to the middle of their unit."""
        x = x.clone()
        x[:, self.spec_.extra["numbers"] :] += HALF
        return x

    def _row_scores(self, x: Tensor) -> Tensor:
        found = self.module_.log_prob(self._middle(x))  # type: ignore[operator]
        return found.double() - self.adapter_.log_scale

    def _decoded(self, z: Tensor) -> Tensor:
        x = self.module_.decode(z)  # type: ignore[operator]
        numbers = self.spec_.extra["numbers"]
        sizes = [2] * len(self.spec_.extra["missing"]) + list(self.spec_.categories)
        most = torch.tensor(sizes, dtype=x.dtype, device=x.device) - 1
        whole = torch.minimum(x[:, numbers:].floor().clamp_min(0), most)
        return torch.cat([x[:, :numbers], whole], dim=1)

    def _draw(self, noise: RowNoise, y: Tensor | None) -> Tensor:
        parameter = next(self.module_.parameters())
        return self._decoded(noise.normal(self.spec_.inputs).to(parameter))


class Given(RowLikelihood):
    """Outputs that are rows themselves."""

    def mode(self, outputs: Tensor) -> Tensor:
        """Return them."""
        return outputs
