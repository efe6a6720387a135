"""The penalised negative log-likelihoods of logistic and softmax regression.

f(theta) = sum_n v_n nll_n(theta) + ridge/2 |W|^2 with weights v that sum to one; intercepts go
free. theta is (K, P): a row an output, the intercept last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from castalia.models.linear.solvers.affine_design import Affine

__all__ = ["Bernoulli", "Categorical", "Likelihood"]


@dataclass(frozen=True)
class Likelihood:
    """What both share.

    Attributes
    ----------
    design
        The rows.
    y
        Class numbers, (N,).
    weight
        Row weights that sum to one, (N,).
    ridge
        Factor of half the squared norm of the coefficients.
    classes
        How many there are.
    lasso
        Factor of the sum of absolute coefficients, for the solver; not part of the value.
    """

    design: Affine
    y: Tensor
    weight: Tensor
    ridge: float
    classes: int
    lasso: float = 0.0

    @property
    def outputs(self) -> int:
        """Number of rows of theta."""
        return self.classes

    def thin(self, every: int) -> Likelihood:
        """Return the problem of each ``every``-th row."""
        weight = self.weight[::every]
        total = weight.sum().clamp_min(torch.finfo(weight.dtype).tiny)
        return replace(
            self, design=self.design.thin(every), y=self.y[::every], weight=weight / total
        )

    def losses(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return each row's loss, (N,), and its gradient by the outputs, (N, K)."""
        raise NotImplementedError

    def hessian(self, theta: Tensor) -> Tensor:
        """Return the matrix of second derivatives, (K P, K P), where Newton's method needs it."""
        raise NotImplementedError

    def __call__(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return value and gradient."""
        rows, slope = self.losses(self.design.forward(theta))
        shrunk = self.penalised(theta)
        value = self.weight.double() @ rows.double()
        value = value + self.ridge / 2 * shrunk.double().square().sum()
        gradient = self.design.backward(slope.mul_(self.weight[:, None]))
        return value, gradient + self.ridge * shrunk

    def penalised(self, theta: Tensor) -> Tensor:
        """Return theta with its intercepts at zero."""
        if not self.design.intercept:
            return theta
        return F.pad(theta[:, :-1], (0, 1))

    def curvature(self, theta: Tensor) -> Tensor:
        """Return the penalty's second derivatives, the diagonal (K P,)."""
        return self.ridge * self.penalised(torch.ones_like(theta)).ravel()


class Bernoulli(Likelihood):
    """Two classes, one output: nll = log(1 + e^z) - y z; its slope is sigma(z) - y."""

    @property
    def outputs(self) -> int:
        """Number of rows of theta."""
        return 1

    def losses(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return each row's loss and its slope."""
        z = outputs[:, 0]
        y = self.y.to(z.dtype)
        rest = z.abs().neg_().exp_().log1p_()  # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|)
        return z.clamp_min(0).add_(rest).addcmul_(y, z, value=-1), (z.sigmoid() - y)[:, None]

    def hessian(self, theta: Tensor) -> Tensor:
        """Return X^T diag(p (1 - p)) X, (P, P)."""
        p = torch.sigmoid(self.design.forward(theta)[:, 0])
        found = self.design.gram(self.weight * p * (1 - p))
        found.diagonal().add_(self.curvature(theta))
        return found


class Categorical(Likelihood):
    """K classes, K outputs: nll = log sum_k e^z_k - z_y; its slope is softmax(z) - onehot(y).

    Adding a constant to every z_k changes nothing; theta's mean over the classes stays at zero.
    """

    def losses(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return each row's loss and its slope."""
        log_p = torch.log_softmax(outputs, dim=1)
        true = self.y[:, None]
        rows = -log_p.gather(1, true)[:, 0]
        return rows, log_p.exp_().scatter_add_(1, true, -torch.ones_like(log_p[:, :1]))

    def hessian(self, theta: Tensor) -> Tensor:
        """Return the K x K blocks X^T diag(p_j (1[j = k] - p_k)) X, (K P, K P)."""
        p = torch.softmax(self.design.forward(theta), dim=1)
        K, P = theta.shape
        blocks = theta.new_empty(K, P, K, P)
        for j in range(K):
            for k in range(j + 1):
                block = self.design.gram(self.weight * p[:, j] * (float(j == k) - p[:, k]))
                blocks[j, :, k] = blocks[k, :, j] = block
        self.fix_constant(blocks)
        found = blocks.view(K * P, K * P)
        found.diagonal().add_(self.curvature(theta))
        return found

    @staticmethod
    def fix_constant(blocks: Tensor) -> None:
        """Curve the directions that change nothing; no gradient ever points there."""
        K, P = blocks.shape[:2]
        index = torch.arange(P, device=blocks.device)
        own = torch.stack([blocks[k, index, k, index] for k in range(K)]).mean(dim=0)
        for j in range(K):
            for k in range(K):
                blocks[j, index, k, index] += own / K
