"""Multi-layer perceptron: a composition of affine maps and elementwise non-linearities.

h(l) = g(W(l) h(l-1) + b(l)),  f(x) = W(L) h(L-1) + b(L).  Shapes: B batch, D inputs, K outputs.
Reference: 1986, Rumelhart, Hinton, Williams, Learning representations by back-propagating errors,
Nature 323.
"""

from collections.abc import Sequence

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


def _layer(fan_in: int, fan_out: int, name: str, dropout: float) -> list[nn.Module]:
    layer = [nn.Linear(fan_in, fan_out), activation(name)]
    return [*layer, nn.Dropout(dropout)] if dropout else layer
