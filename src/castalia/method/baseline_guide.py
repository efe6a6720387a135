"""Which model to begin with, by the kind of data.

Begin with the simplest model that has a chance; take the structure of the data from its kind;
regularise mildly from the start; normalise batches only where optimisation proves hard.
Reference: 2016, Goodfellow, Bengio, Courville, Deep learning, chapter 11.
"""

from __future__ import annotations

from dataclasses import dataclass

from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["KINDS", "Baseline", "recommend_baseline"]

KINDS = ("table", "image", "sequence")
_NETWORKS = {
    "table": ("dense network", "relu"),
    "image": ("convolutional network", "relu"),
    "sequence": ("gated recurrent network", "tanh"),
}


@dataclass(frozen=True)
class Baseline:
    """Settings to begin with.

    Attributes
    ----------
    model
        The kind of model.
    activation
        Of its hidden units; None for a model without.
    optimizers
        Names for ``Training(optimizer=…)``, either of which will do.
    regularisation
        What to begin with.
    batch_norm
        Whether to normalise batches from the start.
    """

    model: str
    activation: str | None
    optimizers: tuple[str, ...]
    regularisation: tuple[str, ...]
    batch_norm: bool = False


def recommend_baseline(
    kind: str, *, simple: bool = False, hard_to_optimise: bool = False
) -> Baseline:
    """Return the model to begin with on some kind of data.

    Examples
    --------
    >>> recommend_baseline("image").model, recommend_baseline("table", simple=True).model
    ('convolutional network', 'logistic regression')
    """
    if kind not in KINDS:
        raise InvalidParameter(
            f"recommend_baseline: `kind` must be {listing(KINDS)}; got "
            f"{kind!r}.{did_you_mean(str(kind), KINDS)}"
        )
    if simple:
        return Baseline("logistic regression", None, ("lbfgs",), ("L2",))
    model, activation = _NETWORKS[kind]
    mild = ("early stopping", "dropout")
    return Baseline(model, activation, ("momentum", "adam"), mild, hard_to_optimise)
