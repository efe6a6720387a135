"""Energy-based models: P(x) = exp(-E(x)) / Z, for any energy of discrete states.

Every state has a positive probability, and energies that add up are factors that multiply.
Shapes: N rows, n variables.
Reference: 2006, LeCun et al., A tutorial on energy-based learning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.probabilistic.learnt_potentials import learn
from castalia.nets.probabilistic.energy_network import EnergyNetwork
from castalia.sampling import AnnealedEstimate, Chains, annealed_importance, gibbs
from castalia.sampling.gibbs_chains import draw_states
from castalia.utils.seeds import generator, seed_from
from castalia.utils.text import did_you_mean, listing

__all__ = ["EnergyModel"]

ENUMERABLE = 2**20  # states
METHODS = ("contrastive", "pseudo")


class EnergyModel:
    """A distribution given by an energy: low energy, high probability.

    Parameters
    ----------
    energy
        From rows of state numbers, (N, n), to energies, (N,); torch or numpy arithmetic. A
        ``torch.nn.Module`` can be learnt from rows, by ``fit``.
    sizes
        Number of states of each variable.

    Examples
    --------
    >>> model = EnergyModel(lambda x: -(x[:, 0] == x[:, 1]).double(), [2, 2])
    >>> p = model.probabilities()
    >>> bool((p > 0).all()), round(float(p[0, 0] / p[0, 1]), 4)
    (True, 2.7183)
    """

    def __init__(self, energy: Callable[[Tensor], Tensor], sizes: Sequence[int]) -> None:
        self.function, self.sizes = energy, [int(k) for k in sizes]
        if not self.sizes or min(self.sizes) < 1:
            raise InvalidParameter(
                f"EnergyModel: `sizes` must be whole numbers of at least 1; got {list(sizes)!r}."
            )

    def fit(
        self,
        x: Any,
        *,
        method: str = "contrastive",
        alpha: float = 1e-4,
        epochs: int = 100,
        lr: float = 0.05,
        random_state: Any = None,
    ) -> Self:
        """Learn the parameters of an energy that is a ``torch.nn.Module``, in place.

        Parameters
        ----------
        x
            Rows of state numbers, (N, n).
        method
            ``"contrastive"``: persistent chains against the rows, which follows the likelihood;
            ``"pseudo"``: each variable given the others, which needs no chains.
        alpha
            L2 penalty.
        epochs, lr
            Passes over the rows and learning rate of ``"contrastive"``.
        random_state
            Seed.
        """
        module, rows = self.function, np.asarray(x)
        if not isinstance(module, nn.Module) or not any(True for _ in module.parameters()):
            raise InvalidParameter(
                "EnergyModel: `energy` must be a torch.nn.Module with parameters to be learnt; got "
                f"{type(module).__name__}."
            )
        if method not in METHODS:
            raise InvalidParameter(
                f"EnergyModel: `method` must be {listing(METHODS)}; got {method!r}."
                f"{did_you_mean(str(method), METHODS)}"
            )
        self._check_states(rows)
        net = EnergyNetwork(module, self.sizes)
        settings = {"alpha": alpha, "epochs": epochs, "lr": lr, "random_state": random_state}
        learn(net, rows, None, method=method, **settings)
        return self

    def _check_states(self, rows: np.ndarray) -> None:
        wide = rows.ndim == 2 and rows.shape[1] == len(self.sizes) and len(rows) > 0
        if not wide or not (rows == rows.astype(np.int64)).all():
            raise InvalidData(
                f"EnergyModel: x must hold rows of {len(self.sizes)} state numbers; got shape "
                f"{rows.shape}."
            )
        out = (rows < 0) | (rows >= np.array(self.sizes))
        if out.any():
            row, column = np.argwhere(out)[0].tolist()
            raise InvalidData(
                f"EnergyModel: variable {column} has the states 0 to {self.sizes[column] - 1}; got "
                f"{rows[row, column]} in row {row}."
            )

    def energy(self, x: Any) -> Tensor:
        """Return E of rows, (N,)."""
        rows = torch.as_tensor(np.asarray(x) if not isinstance(x, Tensor) else x)
        found = torch.as_tensor(self.function(rows)).detach().double()
        if found.shape != (len(rows),) or not bool(found.isfinite().all()):
            raise InvalidData(
                f"EnergyModel: `energy` must give one finite number a row, ({len(rows)},); got "
                f"shape {tuple(found.shape)} or numbers that are not finite."
            )
        return found

    def states(self) -> Tensor:
        """Return every state, (prod sizes, n), where they are few enough."""
        count = float(np.prod([float(k) for k in self.sizes]))
        if count > ENUMERABLE:
            raise InvalidData(
                f"EnergyModel: at most {ENUMERABLE:,} states are summed one by one; got "
                f"{count:.3g}. Use `annealed_log_partition`."
            )
        return torch.from_numpy(np.indices(self.sizes).reshape(len(self.sizes), -1).T.copy())

    def log_partition(self) -> float:
        """Return ln Z, the sum over every state."""
        return float((-self.energy(self.states())).logsumexp(dim=0))

    def probabilities(self) -> Tensor:
        """Return the table of all probabilities, one axis a variable."""
        return (-self.energy(self.states())).softmax(dim=0).reshape(self.sizes)

    def log_prob(self, x: Any) -> Tensor:
        """Return ln P of rows, (N,)."""
        return -self.energy(x) - self.log_partition()

    def _conditional(self, x: Tensor, i: int) -> Tensor:
        """Return -E for every state of variable i, the others as they are, (N, K)."""
        k = self.sizes[i]
        tried = x.repeat_interleave(k, dim=0)
        tried[:, i] = torch.arange(k).repeat(len(x))
        return -self.energy(tried).reshape(len(x), k)

    def _uniform(self, chains: int, seed: int) -> Tensor:
        source = generator(seed, 1)
        return torch.stack([torch.randint(k, (chains,), generator=source) for k in self.sizes], 1)

    def gibbs(
        self,
        *,
        steps: int = 1000,
        burn_in: int = 100,
        thin: int = 1,
        chains: int = 16,
        random_state: Any = None,
    ) -> Chains:
        """Draw states by Gibbs sampling, many chains at once."""
        return gibbs(
            self._conditional,
            self._uniform(chains, seed_from(random_state)),
            steps=steps,
            burn_in=burn_in,
            thin=thin,
            random_state=random_state,
        )

    def annealed_log_partition(
        self, *, runs: int = 100, betas: int = 200, random_state: Any = None
    ) -> AnnealedEstimate:
        """Estimate ln Z by annealed importance sampling from equal chances, with its error."""

        def step(x: Tensor, beta: float, source: torch.Generator) -> Tensor:
            for i in range(len(self.sizes)):
                x[:, i] = draw_states(beta * self._conditional(x, i), source)
            return x

        return annealed_importance(
            lambda x, beta: -beta * self.energy(x),
            step,
            self._uniform(runs, seed_from(random_state)),
            log_z=float(np.log(self.sizes).sum()),
            betas=betas,
            random_state=random_state,
        )
