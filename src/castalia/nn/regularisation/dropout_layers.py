"""Dropout in its four forms: original, inverted, sampled and exact.

Units are kept with probability q. Texts call q or 1 - q by the same letter p; here arguments say
``keep`` for q, and torch's ``nn.Dropout(p)`` drops with probability p = 1 - q.

=========  ==============================  =============================  ==========================
form       in training                     at inference                   here
=========  ==============================  =============================  ==========================
original   mask * x                        q x                            ``OriginalDropout(keep)``
inverted   mask * x / q                    x                              ``nn.Dropout(1 - keep)``
sampled    either                          mean over random masks         ``MonteCarloDropout(net)``
exact      --                              geometric mean over all masks  ``geometric_ensemble``
=========  ==============================  =============================  ==========================

Shapes: B batch, D inputs, K outputs, S samples, M masks.
References: 2014, Srivastava, Hinton, Krizhevsky, Sutskever, Salakhutdinov, Dropout, JMLR 15. 2016,
Gal, Ghahramani, Dropout as a Bayesian approximation, arXiv 1506.02142.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from castalia.errors import InvalidParameter
from castalia.nn.network_modes import evaluating

__all__ = ["MonteCarloDropout", "OriginalDropout", "check_keep", "dropout_on"]


class OriginalDropout(nn.Module):
    """Dropout as first published: a mask in training, multiplication by ``keep`` at inference.

    Parameters
    ----------
    keep
        Probability that a unit is kept, above 0 and at most 1. In an input layer 0.8 is usual.

    See Also
    --------
    scale_weights : moves the factor ``keep`` into the weights of the next layer.

    Examples
    --------
    >>> layer = OriginalDropout(keep=0.5).eval()
    >>> layer(torch.tensor([[2.0, -4.0]]))
    tensor([[ 1., -2.]])
    """

    def __init__(self, keep: float = 0.5) -> None:
        super().__init__()
        self.keep = check_keep("OriginalDropout", keep)

    def forward(self, x: Tensor) -> Tensor:
        """Return mask * x in training, keep * x otherwise."""
        if self.training:
            return x * torch.empty_like(x).bernoulli_(self.keep)
        return x * self.keep

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"keep={self.keep}"


# What draws masks while in training mode; the last three do it inside.
DROPOUT: tuple[type[nn.Module], ...] = (
    OriginalDropout,
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
    nn.RNNBase,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
)


def dropout_on(net: nn.Module) -> AbstractContextManager[nn.Module]:
    """Draw masks although the network is in evaluation mode; the rest of it stays there.

    Batch normalisation uses and keeps its running statistics. Afterwards every module has its own
    mode back.

    Examples
    --------
    >>> net = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3)).eval()
    >>> with dropout_on(net):
    ...     [module.training for module in net]
    [True, False]
    """
    return evaluating(net, awake=DROPOUT)


class MonteCarloDropout(nn.Module):
    """A network with dropout that predicts with the mean over masks, and knows its spread.

    The error of the mean against that over all masks falls as 1/sqrt(samples); 10 to 20 are often
    enough. The spread grows where the sub-networks disagree, as they do far from the data.

    Parameters
    ----------
    net
        The network; it is not copied, and is left as it was after each call.
    samples
        How many masks are drawn.
    link
        What turns outputs into what is averaged, such as a softmax; None averages outputs.

    Notes
    -----
    Each sample is a pass over the batch, so memory does not grow with ``samples`` beyond the
    outputs. Every row has masks of its own.

    Examples
    --------
    >>> net = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)).eval()
    >>> mean, spread = MonteCarloDropout(net, samples=100).moments(torch.ones(4, 3))
    >>> mean.shape, bool((spread > 0).all())
    (torch.Size([4, 2]), True)
    """

    def __init__(
        self,
        net: nn.Module,
        samples: int = 20,
        link: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        if samples < 1:
            raise InvalidParameter(
                f"MonteCarloDropout: `samples` must be at least 1; got {samples}."
            )
        if not any(isinstance(module, DROPOUT) for module in net.modules()):
            raise InvalidParameter(
                f"MonteCarloDropout: the network must have dropout; got {type(net).__name__} "
                "without. Build it with dropout, or see `with_dropout`."
            )
        self.net, self.samples, self.link = net, samples, link

    def sample(self, x: Tensor) -> Tensor:
        """Return the predictions under every mask drawn, (S, B, …)."""
        with dropout_on(self.net):
            return torch.stack([self._once(x) for _ in range(self.samples)])

    def _once(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.net(x)
        return outputs if self.link is None else self.link(outputs)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation over masks, (B, …) each."""
        drawn = self.sample(x)
        return drawn.mean(dim=0), drawn.std(dim=0, correction=0)

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean over masks, (B, …)."""
        return self.sample(x).mean(dim=0)


def check_keep(owner: str, keep: float) -> float:
    """Return a probability to keep a unit, or say that it is none."""
    if not 0 < keep <= 1:
        raise InvalidParameter(
            f"{owner}: `keep` must be above 0 and at most 1, the probability that a unit stays; "
            f"got {keep}."
        )
    return keep
