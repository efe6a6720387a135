"""Multi-layer perceptron: a composition of affine maps and elementwise non-linearities.

h(l) = g(W(l) h(l-1) + b(l)),  f(x) = W(L) h(L-1) + b(L).  Shapes: B batch, D inputs, K outputs.
Reference: 1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors,
Nature 323.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from castalia.nn import TableEmbedding, activation

__all__ = ["MLP"]


class MLP(nn.Module):
    """Dense network with a linear output layer.

    Parameters
    ----------
    inputs
        Width of a row, category codes included.
    outputs
        Number of outputs.
    hidden
        Widths of the hidden layers; empty gives a linear model.
    activation
        Name of the non-linearity after each hidden layer.
    dropout
        Probability of zeroing a hidden unit during training.
    categories
        Sizes of the categorical columns, which are the last columns of a row.

    Examples
    --------
    >>> import torch
    >>> MLP(4, 3, hidden=(8,))(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        dropout: float = 0.0,
        categories: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.embed = TableEmbedding(inputs - len(categories), categories) if categories else None
        widths = [self.embed.width if self.embed is not None else inputs, *hidden]
        layers: list[nn.Module] = []
        for fan_in, fan_out in zip(widths, widths[1:], strict=False):
            layers += _layer(fan_in, fan_out, activation, dropout)
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, x: Tensor) -> Tensor:  # (B, D)
        """Return the outputs."""
        if self.embed is not None:
            x = self.embed(x)
        return self.layers(x)  # (B, K)

    def can_backprop(self) -> bool:
        """Whether ``backprop`` covers this network: dense layers and simple activations only."""
        layers: list[Any] = list(self.layers)
        return (
            self.embed is None
            and all(type(linear) is nn.Linear and linear.bias is not None for linear in layers[::2])
            and all(type(g) in WRITTEN_OUT for g in layers[1::2])
            and len({id(p) for linear in layers[::2] for p in (linear.weight, linear.bias)})
            == 2 * len(layers[::2])  # each used in one place
        )

    @torch.no_grad()
    def backprop(
        self, x: Tensor, loss_gradient: Callable[[Tensor], tuple[Tensor, Tensor]]
    ) -> Tensor:
        """Back-propagation written out; sets every gradient and returns the loss.

        With h(0) = x, delta(L) = dl/df and going down from l = L:
        dl/dW(l) = delta(l)^T h(l-1),  dl/db(l) = sum_b delta(l),  delta(l-1) = delta(l) W(l) * g'.

        Parameters
        ----------
        x
            Inputs, (B, D).
        loss_gradient
            From the outputs to the loss and its gradient by them.
        """
        layers: list[Any] = list(self.layers)
        weights = [(linear.weight, linear.bias) for linear in layers[::2]]
        rules = [WRITTEN_OUT[type(g)] for g in layers[1::2]]
        h = [x]  # h(l), the input of layer l + 1
        for (weight, bias), (g, _) in zip(weights, rules, strict=False):
            h.append(g(F.linear(h[-1], weight, bias)))
        loss, delta = loss_gradient(F.linear(h[-1], *weights[-1]))
        for i in reversed(range(len(h))):
            weight, bias = weights[i]
            weight.grad = delta.t() @ h[i]
            bias.grad = delta.sum(dim=0)
            if i:
                delta = rules[i - 1][1](delta @ weight, h[i])
        return loss


# Activation: g in place, and delta times g'(a) written by h = g(a).
WRITTEN_OUT: dict[type[nn.Module], tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    nn.ReLU: (torch.relu_, lambda delta, h: torch.ops.aten.threshold_backward(delta, h, 0)),
    nn.Tanh: (torch.tanh_, torch.ops.aten.tanh_backward),
    nn.Sigmoid: (torch.sigmoid_, torch.ops.aten.sigmoid_backward),
    nn.Identity: (lambda a: a, lambda delta, h: delta),
}


def _layer(fan_in: int, fan_out: int, name: str, dropout: float) -> list[nn.Module]:
    layer = [nn.Linear(fan_in, fan_out), activation(name)]
    return [*layer, nn.Dropout(dropout)] if dropout else layer
