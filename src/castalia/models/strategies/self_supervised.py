"""Self-supervised learning: features from a task that the rows set themselves.

Contrastive (InfoNCE): two views of each row; z_i and z_j of the same row are to be more alike than
those of others, l_ij = -log exp(z_i z_j / tau) / sum_{k != i} exp(z_i z_k / tau), ||z|| = 1.
Masked: some inputs are hidden and predicted from the others.  Distorted: rows are distinguished
from rows whose columns were mixed.  Shapes: B batch, D inputs, H features, E code.
References: 2020, Chen, Kornblith, Norouzi, Hinton, A simple framework for contrastive learning of
visual representations, arXiv 2002.05709. 2022, Bahri et al., SCARF, arXiv 2106.15147 (views of
tables). 2008, Vincent et al., Extracting and composing robust features (masking).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.utils import TransformerTags
from torch import Tensor, nn

from castalia.base import Interval, NoTarget, OneOf, Target
from castalia.errors import InvalidData, InvalidParameter
from castalia.models.ensemble.ensemble import Ensemble
from castalia.models.strategies.hidden_features import features_of, maps_of
from castalia.models.strategies.strategy_base import Neural
from castalia.models.strategies.training_changes import changed
from castalia.objectives import Objective, weighted_mean
from castalia.protocols import Batch
from castalia.utils.seeds import seed_from, seed_scope

__all__ = [
    "Distorted",
    "InfoNCE",
    "MaskedInputs",
    "Projected",
    "SelfSupervised",
    "info_nce",
    "mixed_columns",
]


def mixed_columns(x: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Replace a share of each row's inputs by those of other rows; also say which, (B, …)."""
    taken = torch.rand(x.shape, device=x.device) < share
    flat = x.flatten(1)
    order = torch.rand(flat.shape, device=x.device).argsort(dim=0)  # another row for every column
    return torch.where(taken, flat.gather(0, order).view_as(x), x), taken


def info_nce(a: Tensor, b: Tensor, temperature: float) -> Tensor:  # (B, E) each
    """Return the loss of each row: its two views among those of all rows, (B,).

    >>> one = torch.eye(2)
    >>> info_nce(one, one, 1.0)  # log(e + 2) - 1: one alike, two at right angles
    tensor([0.5514, 0.5514])
    """
    z = F.normalize(torch.cat([a, b]), dim=1)  # (2 B, E)
    scores = z @ z.T / temperature
    scores = scores.masked_fill(torch.eye(len(z), dtype=torch.bool, device=z.device), -torch.inf)
    partner = torch.arange(len(z), device=z.device).roll(len(a))
    return F.cross_entropy(scores, partner, reduction="none").view(2, -1).mean(dim=0)


class InfoNCE(Objective):
    """Two views of a row agree, and differ from those of all other rows of the batch.

    Parameters
    ----------
    view
        Draws a view of each row: from x to x'.
    temperature
        tau; smaller values push the nearest other rows away harder.
    """

    def __init__(self, view: Callable[[Tensor], Tensor], temperature: float) -> None:
        self.view, self.temperature = view, temperature

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Return the loss of two fresh views."""
        a, b = net(torch.cat([self.view(batch.x), self.view(batch.x)])).chunk(2)
        return {"loss": weighted_mean(info_nce(a, b, self.temperature), batch.weight)}


class Projected(nn.Module):
    """A network with a head: its outputs, through a hidden layer's ReLU, become the code.

    Parameters
    ----------
    net
        The network; its last layer is the first of the head.
    head
        The last layer of the head.
    """

    def __init__(self, net: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.net, self.head = net, head

    def forward(self, x: Tensor) -> Tensor:
        """Return the code, (B, E)."""
        return self.head(F.relu(self.net(x)))


class MaskedInputs(Objective):
    """Squared error of the inputs that were hidden, by what is left of the row."""

    def __init__(self, share: float) -> None:
        self.share = share

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Hide inputs behind those of other rows, and predict them."""
        seen, hidden = mixed_columns(batch.x, self.share)
        error = (net(seen) - batch.x.flatten(1)).square() * hidden.flatten(1)
        rows = error.sum(dim=1) / (self.share * error.shape[1])
        return {"loss": weighted_mean(rows, batch.weight)}


class Distorted(Objective):
    """Cross-entropy of the question whether the columns of a row were mixed."""

    def __init__(self, share: float) -> None:
        self.share = share

    def terms(self, net: nn.Module, batch: Batch, phase: str) -> dict[str, Tensor]:
        """Show every row as it is and distorted."""
        scores = net(torch.cat([batch.x, mixed_columns(batch.x, self.share)[0]]))[:, 0]
        real, mixed = F.softplus(torch.stack([-scores, scores])).chunk(2, dim=1)
        rows = (real[0] + mixed[1]) / 2
        return {"loss": weighted_mean(rows, batch.weight)}


class Outputs(NoTarget):
    """No targets, and a network of so many outputs."""

    def __init__(self, outputs: int) -> None:
        self.outputs_wanted = outputs

    def encode(self, est: Any, y: np.ndarray) -> Target:
        """Say how many outputs there are."""
        return Target(torch.from_numpy(y), self.outputs_wanted)


@dataclass(kw_only=True, eq=False, repr=False)
class SelfSupervised(Neural, Ensemble):
    """Features learnt without labels: what the network's last layer receives, or its maps.

    The network of any estimator is trained on a task made of the rows alone. ``transform`` gives
    the features; a linear model on them needs few labels.

    Parameters
    ----------
    estimator
        Whose network is trained, an estimator of ours; None takes a small perceptron.
    task
        Left None: nothing is predicted.
    method
        ``"contrastive"``: two views of a row agree; ``"masked"``: hidden inputs are predicted;
        ``"distorted"``: rows are distinguished from mixed ones.
    dim
        Length of the code in which views are compared.
    hidden
        Width of the layer between features and code, which may forget what views differ in where
        the features should not; 0: the code is linear in the features.
    temperature
        Of the contrast.
    share
        Share of a row's inputs that a view takes from other rows, or that are hidden.
    view
        Another way to draw views: a transform of ``castalia.data.augment``, which is called with x
        and None. For images ``Crop(4) | Flip()``, say.
    features
        What ``transform`` gives: ``"last"``, what the last layer receives, or ``"maps"``, the last
        maps of a convolutional network at every resolution, averaged to 7 x 7 places where there
        are more: thousands of columns. Changing it needs no new fit.

    Attributes
    ----------
    estimator_ : object
        The trained estimator; it has no classes.
    head_ : dict of Tensor
        Weights from the hidden layer to the code, which ``transform`` does without.

    Shapes
    ------
    X: as the wrapped estimator takes it.  ``transform``: (n, H), H the width of its last hidden
    layer, or the places of all maps times their channels.

    Notes
    -----
    Contrast wants large batches: every other row of the batch is a negative. With few labelled
    images a linear discriminant on principal components of the maps is better than a linear model
    on the last features: by three points on Fashion-MNIST with 600 labels and a small network.

    References
    ----------
    2020, Chen, Kornblith, Norouzi, Hinton, A simple framework for contrastive learning of visual
    representations, arXiv 2002.05709. 2022, Bahri, Jiang, Tay, Metzler, SCARF, arXiv 2106.15147.

    See Also
    --------
    SemiSupervised : goes on to a classifier.
    DenoisingAutoencoder : hidden inputs, with a decoder of its own.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, _ = moons(200)
    >>> SelfSupervised(random_state=0).fit(X).transform(X).shape
    (200, 32)
    """

    task: Annotated[str | None, OneOf(None)] = None
    method: Annotated[str, OneOf("contrastive", "masked", "distorted")] = "contrastive"
    dim: Annotated[int, Interval(1, whole=True)] = 16
    hidden: Annotated[int, Interval(0, whole=True)] = 64
    temperature: Annotated[float, Interval(0, closed="neither")] = 0.2
    share: Annotated[float, Interval(0, 1, closed="neither")] = 0.3
    view: Any = None
    features: Annotated[str, OneOf("last", "maps")] = "last"

    def _solve(self, X: Any, y: Any, sample_weight: np.ndarray | None) -> None:
        member = self._neural(seed_from(self.random_state))
        objective, outputs = self._pretext(member.adapter.of(member).fit(X))
        headed = self.method == "contrastive" and self.hidden > 0
        network, wide = (self._headed, self.hidden) if headed else (None, outputs)
        with changed(member, objective=objective, network=network, codec=Outputs(wide)):
            member.fit(X, None, sample_weight=sample_weight)
        self.head_: dict[str, Tensor] = {}
        if headed:
            member.module_, head = member.module_.net, member.module_.head
            self.head_ = {name: w.detach() for name, w in head.state_dict().items()}
        self.estimator_ = member

    def _headed(self, net: nn.Module) -> Projected:
        return Projected(net, nn.Linear(self.hidden, self.dim))

    def _pretext(self, adapter: Any) -> tuple[Objective, int]:
        """Return what is minimised and the outputs it wants."""
        if adapter.categories or not len(adapter.shape):
            raise InvalidData(
                "SelfSupervised: X must hold rows of numbers of one shape, tables without "
                "categories or images. Encode the categories as columns of 0 and 1."
            )
        if self.method == "masked":
            return MaskedInputs(self.share), adapter.shape.numel()
        if self.method == "distorted":
            return Distorted(self.share), 1
        view = self.view
        draw = (lambda x: view(x, None)[0]) if view is not None else self._mixed
        return InfoNCE(draw, self.temperature), self.dim

    def _mixed(self, x: Tensor) -> Tensor:
        return mixed_columns(x, self.share)[0]

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of each row, (n, H)."""
        X = self._checked(X)
        net = self.estimator_.module_.eval()
        with torch.inference_mode():
            blocks = [self._features(net, x).cpu() for x in self._blocks(X)]
        return torch.cat(blocks).numpy()

    def _features(self, net: nn.Module, x: Tensor) -> Tensor:
        if self.features == "last":
            return features_of(net, x)[0].flatten(1)
        if maps := maps_of(net, x):
            return torch.cat(maps, dim=1)
        raise InvalidParameter(
            f"SelfSupervised: `features` must be 'last' where the network has no maps, as that of "
            f"{type(self.estimator_).__name__}; got 'maps'. Changing it needs no new fit."
        )

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the loss of the task that the rows set, over blocks of rows."""
        X = self._checked(X)
        net = self.estimator_.module_.eval()
        if getattr(self, "head_", None):  # models that were saved before there were heads
            projected = self._headed(net).to(next(net.parameters()))
            projected.head.load_state_dict(self.head_)
            net = projected
        objective, _ = self._pretext(self.estimator_.adapter_)
        with torch.inference_mode(), seed_scope(0):
            losses = [objective.terms(net, Batch(x), "train")["loss"] for x in self._blocks(X)]
        return -float(torch.stack(losses).mean())

    def _blocks(self, X: Any) -> Iterator[Tensor]:
        weight = next(self.estimator_.module_.parameters())
        kind = np.float64 if weight.dtype == torch.float64 else np.float32
        for x in self.estimator_.adapter_.blocks(X, kind):
            yield x.to(weight.device)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the features of the same rows."""
        return self.fit(X).transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = tags.classifier_tags = tags.regressor_tags = None
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.target_tags.required = False
        return tags
