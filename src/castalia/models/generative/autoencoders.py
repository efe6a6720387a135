"""Autoencoders: codes from which a row can be made again, plain or with something to learn by."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import nn

from castalia.base import Interval, OneOf
from castalia.errors import InvalidParameter, TrainingWarning
from castalia.models.generative.autoencoder_base import AutoencoderBase, code_width
from castalia.models.generative.row_estimator import row_width
from castalia.nets.generative import TiedAutoencoder
from castalia.objectives import CodeNorm, CodeSparsity, Contractive, Objective, Reconstruction
from castalia.protocols import Spec
from castalia.utils.row_noise import RowNoise
from castalia.utils.seeds import derive, seed_from

__all__ = [
    "Autoencoder",
    "ContractiveAutoencoder",
    "DenoisingAutoencoder",
    "LinearAutoencoder",
    "SparseAutoencoder",
    "StochasticAutoencoder",
]

STREAM = 2**21  # numbers the seeds of draws apart from those of training


def _tied(owner: Any, spec: Spec, **settings: Any) -> nn.Module:
    """Return a network whose decoder is its encoder transposed."""
    if spec.categories or (spec.extra.get("size") and owner.width):
        raise InvalidParameter(
            f"{type(owner).__name__}: `tied` must be False for categories and for convolutions; "
            "got True. Use width=0 for images."
        )
    return TiedAutoencoder(row_width(spec), code_width(owner.code, spec), **settings)


@dataclass(kw_only=True, eq=False, repr=False)
class Autoencoder(AutoencoderBase):
    """Deep autoencoder of the rows of a table, or of images.

    Minimises 1/2 ||x_hat - x||^2 between a row and what comes back of its code, and cross-entropies
    for categories. With a code narrower than a row it keeps what most rows need, along curves where
    ``PCA`` keeps straight lines. Rows that come back badly are unlike those of ``fit``: ``detect``.

    Parameters
    ----------
    dropout
        Probability of zeroing a unit of the code in training.
    code_norm
        Weight of ||code||^2 in the loss; larger values keep codes small.
    tied
        Whether the decoder's matrices are the encoder's transposed: half the weights.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.
    history_ : list of dict
        Loss and validation loss of every epoch.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images (n, H, W), (n, H, W, C).  Codes: (n, code).

    Notes
    -----
    A code as wide as a row without dropout or penalty can copy it and learn nothing: a warning says
    so. Missing numbers do not count in the loss; ``impute`` fills them in.

    References
    ----------
    1986, Rumelhart, Hinton, Williams. 2006, Hinton, Salakhutdinov, Reducing the dimensionality of
    data with neural networks, Science 313.

    See Also
    --------
    PCA : the best linear code, at once.
    VariationalAutoencoder : also draws new rows.

    Examples
    --------
    >>> t = np.linspace(-1, 1, 200)
    >>> X = np.column_stack([t, t**2])
    >>> model = Autoencoder(code=1, hidden=(16,), lr=1e-2, random_state=0).fit(X)
    >>> bool(np.square(model.reconstruct(X) - X).mean() < 0.01)
    True
    >>> model.detect([[0.0, 9.0]]).tolist()
    [True]
    """

    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.0
    code_norm: Annotated[float, Interval(0)] = 0.0
    tied: Annotated[bool, OneOf(True, False)] = False

    def _network(self, spec: Spec) -> nn.Module:
        if self.tied:
            settings = {"hidden": self.hidden, "activation": self.activation}
            return _tied(self, spec, dropout=self.dropout, **settings)
        return self._pair(spec, dropout=self.dropout)

    def _objective(self, spec: Spec) -> Objective:
        code, width = code_width(self.code, spec), row_width(spec)
        if self.code is not None and code >= width > 1 and not (self.dropout or self.code_norm):
            _warn_of_copies("Autoencoder", code, width)
        objective = Reconstruction(self._row_likelihood(spec))
        return objective + CodeNorm(self.code_norm) if self.code_norm else objective


def _warn_of_copies(owner: str, code: int, width: int) -> None:
    warnings.warn(
        f"{owner}: a code of {code} for rows of {width} numbers can copy them and learn nothing. "
        "Lower `code`, or use `dropout` or `code_norm` of Autoencoder, SparseAutoencoder or "
        "DenoisingAutoencoder.",
        TrainingWarning,
        stacklevel=3,
    )


@dataclass(kw_only=True, eq=False, repr=False)
class LinearAutoencoder(AutoencoderBase):
    """Autoencoder without non-linearities: gradients find the space of ``PCA``.

    Minimises 1/2 ||x - W^T W x||^2 over the standardised rows. At the optimum the rows of W span
    the first principal components, and the error is the sum of the squared singular values left
    out.

    Parameters
    ----------
    tied
        Whether the decoder is W^T; otherwise a matrix of its own.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.

    Shapes
    ------
    X: (n, D) numbers, or images.  Codes: (n, code).

    Notes
    -----
    Columns are standardised, so the components are those of the correlation matrix. A lesson;
    ``PCA`` has the answer at once.

    References
    ----------
    1989, Baldi, Hornik, Neural networks and principal component analysis, Neural Networks 2.

    See Also
    --------
    PCA : the same space in closed form.
    Autoencoder : with non-linear layers.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2)) @ [[1.0, 1.0, 0.0], [0.0, 0.1, 1.0]]
    >>> model = LinearAutoencoder(code=2, lr=1e-2, random_state=0).fit(X)
    >>> bool(np.square(model.reconstruct(X) - X).mean() < 1e-3)
    True
    """

    tied: Annotated[bool, OneOf(True, False)] = True
    hidden: ClassVar[tuple[int, ...]] = ()  # type: ignore[misc]
    activation: ClassVar[str] = "identity"  # type: ignore[misc]
    width: ClassVar[int] = 0  # type: ignore[misc]

    def _network(self, spec: Spec) -> nn.Module:
        return _tied(self, spec) if self.tied and not spec.categories else self._pair(spec)

    def _objective(self, spec: Spec) -> Objective:
        if self.code is not None and self.code > row_width(spec):
            _warn_of_copies("LinearAutoencoder", self.code, row_width(spec))
        return Reconstruction(self._row_likelihood(spec))


@dataclass(kw_only=True, eq=False, repr=False)
class SparseAutoencoder(AutoencoderBase):
    """Autoencoder whose codes have few active units: a dictionary of parts of rows.

    Minimises 1/2 ||x_hat - x||^2 + Omega(h). The code may be wider than a row: sparsity keeps it
    from copying.

    Parameters
    ----------
    sparsity
        Weight of Omega; larger values leave fewer active units.
    penalty
        ``"l1"``: Omega = sum |h_j| of rectified units; ``"kl"``: sum KL(target || mean of unit j)
        of sigmoid units.
    target
        Mean activation to which ``"kl"`` draws every unit.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.  Codes: (n, code), none negative.

    Notes
    -----
    ``code=None`` takes twice the width of a row, at most 256.

    References
    ----------
    1996, Olshausen, Field, Emergence of simple-cell receptive field properties, Nature 381. 2011,
    Ng, Sparse autoencoder, CS294A notes.

    See Also
    --------
    Autoencoder : a narrow code instead.

    Examples
    --------
    >>> X = np.random.default_rng(0).exponential(size=(200, 4))
    >>> codes = SparseAutoencoder(epochs=5, random_state=0).fit(X).transform(X)
    >>> codes.shape, bool((codes >= 0).all())
    ((200, 8), True)
    """

    _over: ClassVar[bool] = True
    sparsity: Annotated[float, Interval(0)] = 1e-2
    penalty: Annotated[str, OneOf("l1", "kl")] = "l1"
    target: Annotated[float, Interval(0, 1, closed="neither")] = 0.05

    def _network(self, spec: Spec) -> nn.Module:
        return self._pair(spec, code_activation="relu" if self.penalty == "l1" else "sigmoid")

    def _objective(self, spec: Spec) -> Objective:
        objective = Reconstruction(self._row_likelihood(spec))
        if self.penalty == "kl":
            return objective + CodeSparsity(self.sparsity, self.target)
        return objective + CodeNorm(self.sparsity, q=1.0)


@dataclass(kw_only=True, eq=False, repr=False)
class DenoisingAutoencoder(AutoencoderBase):
    """Autoencoder that is given corrupted rows and asked for the clean ones.

    Minimises L(x, g(f(x + noise))). What comes back is the conditional mean of the clean row, and
    the step r(x) - x is sigma^2 times the score, the gradient of log p of the noisy rows:
    ``score_field``.

    Parameters
    ----------
    noise
        Deviation of the noise in standardised units, or the share of masked values.
    corruption
        ``"gaussian"`` or ``"mask"``.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.  Codes: (n, code).

    Notes
    -----
    ``code=None`` takes twice the width of a row, at most 256: the noise keeps it from copying.

    References
    ----------
    2010, Vincent, Larochelle, Lajoie, Bengio, Manzagol, Stacked denoising autoencoders, JMLR 11.
    2014, Alain, Bengio, What regularized auto-encoders learn from the data-generating distribution,
    JMLR 15.

    See Also
    --------
    DiffusionModel : denoises at many levels of noise, and so draws rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 1))
    >>> model = DenoisingAutoencoder(noise=1.0, lr=1e-2, epochs=30, random_state=0).fit(X)
    >>> bool(abs(model.reconstruct([[2.0]])[0, 0] - 1.0) < 0.3)
    True
    """

    _over: ClassVar[bool] = True
    noise: Annotated[float, Interval(0, closed="neither")] = 0.3
    corruption: Annotated[str, OneOf("gaussian", "mask")] = "gaussian"

    def _objective(self, spec: Spec) -> Objective:
        likelihood = self._row_likelihood(spec)
        return Reconstruction(likelihood, noise=self.noise, corruption=self.corruption)

    def score_field(self, X: Any) -> np.ndarray:
        """Return (r(x) - x) / noise^2 at each row of numbers, (n, D), in standardised units.

        It estimates the gradient of log p(x) of the data with noise, and points to where data are.
        """
        numbers = row_width(self.spec_)
        found = self._each(X, lambda x: self._returned(x)[:, :numbers] - x.flatten(1)[:, :numbers])
        return torch.cat(list(found)).numpy() / self.noise**2


@dataclass(kw_only=True, eq=False, repr=False)
class ContractiveAutoencoder(AutoencoderBase):
    """Autoencoder whose codes hardly change when a row does, but along the data.

    Minimises 1/2 ||x_hat - x||^2 + contraction ||df(x)/dx||_F^2, f the encoder.

    Parameters
    ----------
    contraction
        Weight of the squared norm of the encoder's Jacobian; larger values flatten the code.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.  Codes: (n, code).

    Notes
    -----
    The Jacobian costs a backward pass for each unit of the code.

    References
    ----------
    2011, Rifai, Vincent, Muller, Glorot, Bengio, Contractive auto-encoders, ICML.

    See Also
    --------
    DenoisingAutoencoder : contracts by example, at the price of one pass.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> ContractiveAutoencoder(code=2, epochs=3, random_state=0).fit(X).transform(X).shape
    (100, 2)
    """

    contraction: Annotated[float, Interval(0)] = 0.1
    activation: Annotated[str, OneOf("sigmoid", "tanh", "softplus", "elu", "swish")] = "tanh"

    def _objective(self, spec: Spec) -> Objective:
        return Reconstruction(self._row_likelihood(spec)) + Contractive(self.contraction)


@dataclass(kw_only=True, eq=False, repr=False)
class StochasticAutoencoder(AutoencoderBase):
    """Autoencoder of distributions: h ~ p_enc(h | x), x ~ p_dec(x | h).

    p_enc is normal around f(x) with deviation ``noise``; p_dec is normal with learnt deviations for
    numbers, and has probabilities for categories. Minimises -log p_dec(x | h) over draws of h.

    Parameters
    ----------
    noise
        Deviation of the code around f(x), above 0: larger values spread codes further apart.

    Attributes
    ----------
    module_ : torch.nn.Module
        The trained network, with ``encode`` and ``decode``.
    code_ : int
        Width of the code.
    threshold_ : float
        Score below which a row is an anomaly.

    Shapes
    ------
    X: (n, D) numbers, a frame of any kind, or images.  Codes: (n, code).

    Notes
    -----
    Codes have no prior, so new rows cannot be drawn from nothing; ``draw`` draws rows like given
    ones.

    References
    ----------
    2016, Goodfellow, Bengio, Courville, Deep learning, chapter 14.4.

    See Also
    --------
    VariationalAutoencoder : with a prior on codes, so that rows can be drawn.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = StochasticAutoencoder(code=2, epochs=3, random_state=0).fit(X)
    >>> model.draw(X[:2]).shape
    (2, 3)
    """

    _spread: ClassVar[bool] = True
    noise: Annotated[float, Interval(0, closed="neither")] = 0.1

    def _network(self, spec: Spec) -> nn.Module:
        return self._pair(spec, noise=self.noise)

    def _objective(self, spec: Spec) -> Objective:
        return Reconstruction(self._row_likelihood(spec))

    @torch.inference_mode()
    def draw(self, X: Any, *, random_state: Any = None) -> Any:
        """Return a draw of x ~ p_dec(x | h), h ~ p_enc(h | x), for each row."""
        codes = self._device_tensor(self.transform(X))
        given = random_state if random_state is not None else self.random_state
        likelihood, parts = self._row_likelihood(), []
        for block in RowNoise.blocks(len(codes), derive(seed_from(given), STREAM)):
            some, codes = codes[: block.rows], codes[block.rows :]
            z = some + self.noise * block.normal(some.shape[1]).to(some)
            parts.append(likelihood.sample(self.module_.decode(z), block))  # type: ignore[operator]
        return self._values(torch.cat(parts))
