"""Original dropout put into a stack of layers, and taken out again with its weights scaled."""

import copy

import torch
from torch import nn

from castalia.errors import InvalidParameter
from castalia.nn.regularisation.dropout_layers import OriginalDropout
from castalia.utils.text import listing

__all__ = ["scale_weights", "with_dropout"]

# Layers that are linear in their input up to a bias, and modules that a factor passes through.
WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPARENT = (nn.Identity, nn.Flatten, nn.Unflatten, nn.Dropout, OriginalDropout)


def with_dropout(net: nn.Sequential, *, inputs: float = 0.8, hidden: float = 0.5) -> nn.Sequential:
    """Put original dropout before every layer with weights of a plain stack.

    Parameters
    ----------
    net
        Layers in order; they are used as they are, not copied.
    inputs, hidden
        Probabilities to keep an input and to keep a hidden unit; 1 adds no dropout there.

    Examples
    --------
    >>> with_dropout(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    Sequential(
      (0): OriginalDropout(keep=0.8)
      (1): Linear(in_features=4, out_features=8, bias=True)
      (2): ReLU()
      (3): OriginalDropout(keep=0.5)
      (4): Linear(in_features=8, out_features=2, bias=True)
    )
    """
    layers: list[nn.Module] = []
    keep = inputs
    for layer in net:
        if isinstance(layer, WEIGHTED):
            layers += [OriginalDropout(keep)] if keep != 1 else []
            keep = hidden
        layers.append(layer)
    return nn.Sequential(*layers)


def scale_weights(net: nn.Module) -> nn.Module:
    """Return a copy without original dropout: outgoing weights are multiplied by ``keep`` instead.

    The weight-scaling inference rule. The copy is in evaluation mode and computes what the network
    computes there. Inverted dropout needs nothing of the kind: it scaled in training.

    Parameters
    ----------
    net
        A network in which a linear or convolutional layer follows every ``OriginalDropout`` within
        an ``nn.Sequential``.

    Examples
    --------
    >>> net = nn.Sequential(OriginalDropout(0.5), nn.Linear(2, 1))
    >>> _ = nn.init.constant_(net[1].weight, 3.0)
    >>> scale_weights(net)[1].weight
    Parameter containing:
    tensor([[1.5000, 1.5000]], requires_grad=True)
    """
    scaled = copy.deepcopy(net).eval()
    for stack in list(scaled.modules()):
        if isinstance(stack, nn.Sequential):
            _fold(scaled, stack)
    left = [name for name, m in scaled.named_modules() if isinstance(m, OriginalDropout)]
    if left:
        raise InvalidParameter(
            "scale_weights: a linear or convolutional layer must follow every OriginalDropout "
            f"inside an nn.Sequential; none follows {listing(left, 'and')}."
        )
    return scaled


def _fold(net: nn.Module, stack: nn.Sequential) -> None:
    """Move the factors of a stack's dropout layers into the weights after them."""
    layers = list(stack)
    for i, layer in enumerate(layers):
        if isinstance(layer, OriginalDropout):
            after = next((m for m in layers[i + 1 :] if not isinstance(m, TRANSPARENT)), None)
            if isinstance(after, WEIGHTED):
                _refuse_shared(net, after)
                with torch.no_grad():
                    after.weight.mul_(layer.keep)
                stack[i] = nn.Identity()


def _refuse_shared(net: nn.Module, layer: nn.Module) -> None:
    """Refuse weights with a second use, which must not be scaled there."""
    uses = [
        name
        for name, module in net.named_modules(remove_duplicate=False)
        if getattr(module, "weight", None) is layer.weight
    ]
    if len(uses) > 1:
        raise InvalidParameter(
            "scale_weights: weights after an OriginalDropout must be used in one place; got "
            f"{listing(uses, 'and')}. Keep the dropout: in evaluation mode it does the same."
        )
