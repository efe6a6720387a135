"""Several multi-layer perceptrons side by side, whose outputs are averaged.

h_m(l) = g(h_m(l-1) W_m(l) + b_m(l)) for every member m in one batched product,
f(x) = 1/M sum_m f_m(x).  Shapes: M members, B batch, D inputs, K outputs.
References: 1996, Breiman, Bagging predictors, Machine Learning 24. 2024, Gorishniy, Kotelnikov,
Babenko, TabM: advancing tabular deep learning with parameter-efficient ensembling, arXiv
2410.24210. Departs from the latter: members share batches, not weights.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from castalia.nets.dense.mlp import WRITTEN_OUT
from castalia.nn import TableFeatures, activation

__all__ = ["MLPEnsemble"]


class MemberLinear(nn.Module):
    """An affine map for each member, drawn as ``nn.Linear`` draws its own.

    Parameters
    ----------
    members, inputs, outputs
        Sizes.
    """

    def __init__(self, members: int, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = max(inputs, 1) ** -0.5
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, outputs).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:  # (M, B, inputs)
        """Return the outputs of every member, (M, B, outputs)."""
        return torch.baddbmm(self.bias.unsqueeze(1), x, self.weight)

    def set_gradients(self, x: Tensor, delta: Tensor) -> None:  # (M, B, inputs), (M, B, outputs)
        """Set dl/dW = x^T delta and dl/db = sum_b delta from delta = dl/d(outputs)."""
        self.weight.grad = x.transpose(1, 2) @ delta
        self.bias.grad = delta.sum(dim=1)


class FeatureLinear(MemberLinear):
    """The first layer: all members have the same features, but every second one without pieces.

    Parameters
    ----------
    members, inputs, outputs
        Sizes.
    pieces
        How many of the features, the last ones, only members 0, 2, … see.
    """

    def __init__(self, members: int, inputs: int, outputs: int, pieces: int) -> None:
        super().__init__(members, inputs, outputs)
        self.whole = inputs - pieces

    def forward(self, x: Tensor) -> Tensor:  # (B, inputs), or (M, B, inputs) for rows of its own
        """Return the outputs of every member, (M, B, outputs)."""
        x, cut = self._each(x), self.whole
        out = torch.baddbmm(self.bias.unsqueeze(1), x[..., :cut], self.weight[:, :cut])
        if cut < x.shape[-1]:
            out[::2] += x[::2, :, cut:] @ self.weight[::2, cut:]
        return out

    def set_gradients(self, x: Tensor, delta: Tensor) -> None:
        """As for any layer; what a member does not see has the gradient 0."""
        x, cut = self._each(x).transpose(1, 2), self.whole
        gradient = torch.zeros_like(self.weight)
        gradient[:, :cut] = x[:, :cut] @ delta
        gradient[::2, cut:] = x[::2, cut:] @ delta[::2]
        self.weight.grad, self.bias.grad = gradient, delta.sum(dim=1)

    def _each(self, x: Tensor) -> Tensor:
        return x.expand(len(self.weight), *x.shape) if x.ndim == 2 else x


class MLPEnsemble(nn.Module):
    """Perceptrons on one encoding of a table's row.

    Parameters
    ----------
    inputs
        Width of a row, category codes included.
    outputs
        Number of outputs.
    hidden
        Widths of the hidden layers of each member.
    members
        How many perceptrons.
    activation
        Name of the non-linearity after each hidden layer.
    dropout
        Probability of zeroing a hidden unit during training.
    categories
        Sizes of the categorical columns, which are the last columns of a row.
    quantiles
        Of the numbers, as for ``castalia.nn.TableFeatures``. Every second member sees the numbers
        whole, the others also piece by piece: smooth functions and steps both have their learners.

    Examples
    --------
    >>> import torch
    >>> net = MLPEnsemble(4, 3, hidden=(8,), members=5)
    >>> net.member_outputs(torch.zeros(2, 4)).shape, net(torch.zeros(2, 4)).shape
    (torch.Size([5, 2, 3]), torch.Size([2, 3]))
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        hidden: Sequence[int] = (64, 64),
        members: int = 8,
        activation: str = "relu",
        dropout: float = 0.0,
        categories: Sequence[int] = (),
        quantiles: Sequence[Sequence[float]] = (),
    ) -> None:
        super().__init__()
        self.members = members
        self.features = TableFeatures(inputs - len(categories), categories, quantiles)
        widths = [self.features.width, *hidden, outputs]
        layers: list[nn.Module] = [
            FeatureLinear(members, widths[0], widths[1], self.features.pieces)
        ]
        for fan_in, fan_out in zip(widths[1:], widths[2:], strict=False):
            layers += [*_between(activation, dropout), MemberLinear(members, fan_in, fan_out)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return the mean of the members' outputs."""
        return self.member_outputs(x).mean(dim=0)  # (B, K)

    def member_outputs(self, x: Tensor, rows: Tensor | None = None) -> Tensor:  # (B, D)
        """Return the outputs of every member, of all rows or of its own ``rows``, (M, R)."""
        features = self.features(x)
        return self.layers(features if rows is None else features[rows])  # (M, B or R, K)

    def held_out_outputs(self, x: Tensor, held: Tensor) -> Tensor:  # (B, D), (B, M)
        """Return the mean outputs of the members from which a row is held out."""
        share = (held > 0).T.unsqueeze(2)  # (M, B, 1)
        return (self.member_outputs(x) * share).sum(dim=0) / share.sum(dim=0)  # (B, K)

    def can_backprop(self) -> bool:
        """Whether ``backprop`` covers this network: simple activations, no dropout."""
        return all(type(g) in WRITTEN_OUT for g in list(self.layers)[1::2])

    @torch.no_grad()
    def backprop(
        self, x: Tensor, loss_gradient: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Back-propagation written out, as in ``MLP``, for all members at once.

        Parameters
        ----------
        x
            Inputs, (B, D).
        loss_gradient
            From the outputs of all members to the loss and its gradient by them.
        """
        layers: list[Any] = list(self.layers)
        linears, rules = layers[::2], [WRITTEN_OUT[type(g)] for g in layers[1::2]]
        h = [self.features(x)]  # h(l), the input of layer l + 1
        for linear, (g, _) in zip(linears, rules, strict=False):
            h.append(g(linear(h[-1])))
        loss, delta = loss_gradient(linears[-1](h[-1]))
        for i in reversed(range(len(h))):
            linears[i].set_gradients(h[i], delta)
            if i:
                delta = rules[i - 1][1](delta @ linears[i].weight.transpose(1, 2), h[i])
        return loss


def _between(name: str, dropout: float) -> list[nn.Module]:
    """Return what stands between two layers."""
    return [activation(name), nn.Dropout(dropout)] if dropout else [activation(name)]
