"""A density over sequences: each step given those before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from castalia.base import Interval, OneOf, TargetCodec
from castalia.data.adapter_base import Reads
from castalia.data.sequences import SequenceAdapter
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.sequence.recurrent_parameters import ReadsSequences, RecurrentEstimator
from castalia.models.sequence.sequence_conditions import ConditionCodec, conditions
from castalia.nets.sequence import StepEmbedding, StepPredictor
from castalia.objectives import (
    BernoulliLikelihood,
    GaussianLikelihood,
    LaplaceLikelihood,
    Likelihood,
    MixtureLikelihood,
    MultinoulliLikelihood,
    NextStep,
    NextSymbol,
    PoissonLikelihood,
)
from castalia.protocols import Batch, Spec
from castalia.utils.seeds import seed_from, seed_scope

__all__ = ["RNNGenerator"]

_LIKELIHOODS: dict[str, Callable[[int], Likelihood]] = {
    "gaussian": lambda m: GaussianLikelihood(),
    "laplace": lambda m: LaplaceLikelihood(),
    "mixture": MixtureLikelihood,
    "poisson": lambda m: PoissonLikelihood(),
    "bernoulli": lambda m: BernoulliLikelihood(),
    "symbols": lambda m: MultinoulliLikelihood(),
}


class DensityCodec(ConditionCodec):
    """No y, or a condition; sequences must be what the likelihood can give a probability to."""

    def check(self, est: Any, adapter: Any, X: Any, y: Any) -> np.ndarray:
        """Refuse numbers out of range, and return zeros or the conditions."""
        if est.likelihood in ("bernoulli", "poisson"):
            most = 1.0 if est.likelihood == "bernoulli" else np.inf
            rule = "from 0 to 1" if est.likelihood == "bernoulli" else "of at least 0"
            for place, each in enumerate(X):
                values = each.astype(np.float64)
                bad = (values < 0) | (values > most)
                if bad.any():
                    raise InvalidData(
                        f"{type(est).__name__}: sequences must hold numbers {rule} for the "
                        f"likelihood {est.likelihood!r}; sequence {place} holds "
                        f"{values[bad][0]:g}."
                    )
        return super().check(est, adapter, X, y)


@dataclass(kw_only=True, eq=False, repr=False)
class RNNGenerator(ReadsSequences, RecurrentEstimator):
    """Recurrent network that learns how sequences go on, and makes new ones.

    log p(x) = sum_t log p(x_t | x_1 … x_(t-1)); its mean over steps is maximised. Says how usual a
    sequence is (``score_samples``), where it turns odd (``step_log_prob``), and draws others
    (``sample``). For text use a language model.

    Parameters
    ----------
    likelihood
        Of a step: ``"gaussian"``, ``"laplace"`` or ``"mixture"`` of normals for numbers,
        ``"poisson"`` for counts, ``"bernoulli"`` for channels of 0 and 1 (notes, spikes), or
        ``"symbols"`` for one channel of categories, of which the end is one.
    components
        Normals of a mixture.
    conditional
        Whether sequences are made for something: y holds a class for each, or numbers, (n,) of a
        float type or (n, K), which the network reads at every step.

    Attributes
    ----------
    classes_ : ndarray (K,) or None
        Classes of a conditional model; None where conditions are numbers.
    module_ : torch.nn.Module
        The trained ``castalia.nets.sequence.StepPredictor``, which reads the step before.
    history_ : list of dict
        Negative log-likelihood a step, of every epoch.

    Shapes
    ------
    X: n sequences, as for ``RNNClassifier``.  ``score_samples`` gives (n,), ``step_log_prob`` n
    arrays (T,), ``sample`` n arrays (T, C), or lists of symbols.

    Notes
    -----
    Log-likelihoods are in the units of X. The first step is predicted too, from nothing.

    References
    ----------
    2013, Graves, Generating sequences with recurrent neural networks, arXiv 1308.0850. 2012,
    Boulanger-Lewandowski, Bengio, Vincent, Modeling temporal dependencies in high-dimensional
    sequences, arXiv 1206.6392.

    See Also
    --------
    castalia.models.language.RNNLanguageModel : the same for text.

    Examples
    --------
    >>> X = [list("abab"), list("ababab")] * 40
    >>> model = RNNGenerator(likelihood="symbols", hidden=16, epochs=40, lr=0.02, random_state=0)
    >>> model.fit(X).sample(2, random_state=0)[0][:4]
    ['a', 'b', 'a', 'b']

    One for each class:

    >>> X, y = [list("ab"), list("ba")] * 40, ["up", "down"] * 40
    >>> model.set_params(conditional=True).fit(X, y).sample(2, y=["down", "up"], random_state=0)
    [['b', 'a'], ['a', 'b']]
    """

    adapter: ClassVar[Any] = Reads(SequenceAdapter, "categorical", "missing", scaled="_scaled")
    codec: ClassVar[TargetCodec] = DensityCodec()

    likelihood: Annotated[str, OneOf(*_LIKELIHOODS)] = "gaussian"
    components: Annotated[int, Interval(1, whole=True)] = 3
    conditional: Annotated[bool, OneOf(True, False)] = False

    def _density(self) -> Likelihood:
        return _LIKELIHOODS[self.likelihood](self.components)

    @property
    def _scaled(self) -> bool:
        return self._density().scaled

    @property
    def _of_symbols(self) -> bool:
        return self.likelihood == "symbols"

    def _network(self, spec: Spec) -> nn.Module:
        self._check_channels(spec)
        wanted = spec.categories[0] + 1 if self._of_symbols else spec.inputs
        given = spec.outputs if self.conditional else 0
        embed = StepEmbedding(spec.inputs + given, spec.categories, **spec.extra)
        layers = embed, self._stack(embed.width)
        return StepPredictor(*layers, self._density().outputs(wanted), dropout=self.dropout)

    def _check_channels(self, spec: Spec) -> None:
        fits = spec.inputs == len(spec.categories) == 1 if self._of_symbols else not spec.categories
        if not fits:
            rule = "one channel of categories" if self._of_symbols else "channels of numbers only"
            raise InvalidParameter(
                f"RNNGenerator: the likelihood {self.likelihood!r} must have {rule}; got "
                f"{spec.inputs - len(spec.categories)} of numbers and {len(spec.categories)} of "
                "categories."
            )

    def _objective(self, spec: Spec) -> NextStep:
        usual, given = self.adapter_.usual, self.conditional
        if self._of_symbols:
            return NextSymbol(usual + 1, given)
        return NextStep(self._density(), usual, given)

    def step_log_prob(self, X: Any, y: Any = None) -> list[np.ndarray]:
        """Return log p of each step given those before it, n arrays; of symbols, the end too.

        Parameters
        ----------
        X
            Sequences.
        y
            Of a conditional model: the condition of each, or one for all.
        """
        X, objective = self._checked(X), self._objective(self.spec_)
        given = conditions(self, y, len(X), "step_log_prob")
        net = self.module_.eval()
        parameter = next(net.parameters())
        found: list[np.ndarray] = []
        unit = np.log(self.adapter_.deviation).sum() if self._scaled else 0.0
        kind = np.float64 if parameter.dtype == torch.float64 else np.float32
        for block in self.adapter_.blocks(X, kind):
            each = len(block[0] if isinstance(block, tuple) else block)
            mine = None if given is None else torch.tensor(given[len(found) : len(found) + each])
            batch = Batch(block, mine).to(parameter.device)
            with torch.inference_mode():
                losses, real = objective.losses(net, batch.x, batch.y)
            pairs = zip(losses.cpu().numpy(), real.cpu().numpy(), strict=True)
            found += [-row[there].astype(np.float64) - unit for row, there in pairs]
        return found

    def score_samples(self, X: Any, y: Any = None) -> np.ndarray:
        """Return log p of each sequence, (n,); of a conditional model, given y."""
        return np.array([part.sum() for part in self.step_log_prob(X, y)])

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p of a step."""
        return float(np.mean(np.concatenate(self.step_log_prob(X, y))))

    def sample(
        self,
        n: int = 1,
        length: int = 100,
        prefix: Any = None,
        random_state: Any = None,
        y: Any = None,
    ) -> list[Any]:
        """Draw sequences.

        Parameters
        ----------
        n
            How many.
        length
            Steps of each; of symbols, at most.
        prefix
            Steps that all begin with, (T, C) or a list of symbols; they are not returned.
        random_state
            Seed.
        y
            Of a conditional model: the condition of each, or one for all.

        Returns
        -------
        list
            Arrays (T, C); or lists of symbols, each up to its end.
        """
        net: Any = self.module_.eval()
        device = next(net.parameters())
        x = torch.zeros(n, 1, self.spec_.inputs, dtype=device.dtype, device=device.device)
        if prefix is not None:
            kind = np.float64 if device.dtype == torch.float64 else np.float32
            (block,) = self.adapter_.blocks(self._checked([prefix]), kind)
            x = torch.cat([x, block.to(x).expand(n, -1, -1)], dim=1)
        given = conditions(self, y, n, "sample")
        condition = None if given is None else torch.tensor(given).to(x)
        inputs = self._objective(self.spec_).inputs
        steps, states = [], None
        with torch.inference_mode(), seed_scope(seed_from(random_state), x.device):
            for _ in range(length):
                outputs, states = net.carried(inputs(x, condition), states)
                drawn = self._density_of(outputs[:, -1]).sample()
                x = drawn.to(x.dtype).reshape(n, 1, -1)
                steps.append(x)
                if self._of_symbols:
                    x = x * (x < self.spec_.categories[0])  # the end is no input
        return self._decoded(torch.cat(steps, dim=1).cpu())

    def _density_of(self, outputs: Tensor) -> Distribution:
        if self._of_symbols:  # what was never seen is never drawn
            outputs = outputs.index_fill(
                1, torch.zeros(1, dtype=torch.long).to(outputs.device), -1e9
            )
        return self._density().distribution(outputs)

    def _decoded(self, steps: Tensor) -> list[Any]:
        if not self._of_symbols:
            values = steps.double().numpy() * self.adapter_.deviation + self.adapter_.middle
            return list(values)
        words, end, found = self.adapter_.words[0], self.spec_.categories[0], []
        for row in steps[..., 0].long().tolist():
            whole = row[: row.index(end)] if end in row else row
            found.append([words[code - 1] for code in whole])
        return found
