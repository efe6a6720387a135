"""Compression: the same network in fewer numbers.

svd: W ~ (U_r S_r) V_r^T with the smallest rank r whose singular values hold a share of the energy,
sum_{i<=r} s_i^2 >= a sum_i s_i^2; the squared error is what is left out (Eckart, Young).  prune:
the smallest weights become 0, stored by position; filters: the rows of smallest norm do.  int8:
w ~ q s with q whole from -127 to 127 and one scale s a row, q stored by a Huffman code.  Shapes:
O outputs, I inputs, r rank.
References: 1936, Eckart, Young, The approximation of one matrix by another of lower rank. 2015,
Han, Pool, Tran, Dally, Learning both weights and connections, arXiv 1506.02626.
"""

from __future__ import annotations

import copy
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from sklearn.base import clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from castalia.base import Estimator, Interval, OneOf, check_parameters
from castalia.errors import InvalidParameter
from castalia.models.strategies.strategy_base import Strategy
from castalia.utils.seeds import seed_scope

__all__ = ["Compress", "coded", "energy_rank", "quantised"]

Stored = dict[str, np.ndarray]


def energy_rank(values: np.ndarray, share: float) -> int:
    """Return the smallest rank whose singular values hold a share of the energy.

    >>> energy_rank(np.array([3.0, 1.0, 1.0]), 0.8)
    1
    """
    energy = np.cumsum(values**2)
    return 1 + int(np.searchsorted(energy, share * energy[-1] * (1 - 1e-12)))


def quantised(weight: np.ndarray) -> Stored:
    """Return whole numbers from -127 to 127 and the scale of each row, (O, 1)."""
    flat = np.abs(weight).reshape(len(weight), -1).max(axis=1)
    scale = (np.where(flat > 0, flat, 1.0) / 127).astype(np.float32)
    wide = scale.reshape(-1, *[1] * (weight.ndim - 1))
    return {"whole": np.rint(weight / wide).astype(np.int8), "scale": scale}


def coded(parts: Stored) -> Stored:
    """Return whole numbers by a Huffman code: frequent ones take fewer bits.

    >>> small = coded({"whole": np.zeros((50, 8), dtype=np.int8), "scale": np.ones(50)})
    >>> len(small["code"]) < 100, small["shape"]
    (True, array([50,  8]))
    """
    work = zlib.compressobj(9, strategy=zlib.Z_HUFFMAN_ONLY)
    code = work.compress(parts["whole"].tobytes()) + work.flush()
    shape = np.array(parts["whole"].shape)
    return {"code": np.frombuffer(code, np.uint8), "scale": parts["scale"], "shape": shape}


@dataclass(kw_only=True, eq=False, repr=False)
class Compress(Strategy):
    """A trained network whose weight matrices are kept in fewer numbers.

    The wrapped estimator is fitted, then every dense or convolutional layer's weights are
    factorised, pruned or rounded. Nothing is trained afterwards: what the network loses is the
    price of its size. ``compress`` takes an estimator that is fitted already, and ``tradeoff``
    shows what several sizes cost.

    Parameters
    ----------
    method
        ``"svd"``: two thin matrices for one (dense layers); ``"prune"``: small weights become 0;
        ``"filters"``: whole rows, or filters, of small norm do; ``"int8"``: whole numbers and a
        scale.
    keep
        Of ``"svd"`` the share of each matrix's energy, of ``"prune"`` the share of weights kept, of
        ``"filters"`` that of rows; the last layer keeps all of its rows.
    rank
        Rank of every factorised layer instead of ``keep``; None chooses by energy.

    Attributes
    ----------
    estimator_ : object
        The fitted estimator, with the compressed network.
    module_ : torch.nn.Module
        The network, rebuilt from what is stored.
    stored_ : dict
        For each weight of the network the arrays that stand for it.
    ranks_ : dict
        Rank of each factorised layer.
    sizes_ : dict
        Bytes of the weights ``"before"`` and ``"after"``.

    Shapes
    ------
    As those of the wrapped estimator.

    Notes
    -----
    A saved model holds the small arrays only. A layer is factorised where that saves numbers,
    r (O + I) < O I. Predictions multiply by both thin matrices, which is faster too; zeros and
    whole numbers are expanded when the model is first used.

    References
    ----------
    1936, Eckart, Young, The approximation of one matrix by another of lower rank, Psychometrika 1.
    2015, Han, Pool, Tran, Dally, Learning both weights and connections for efficient neural
    networks, arXiv 1506.02626.

    See Also
    --------
    Distill : trains a smaller network instead.

    Examples
    --------
    >>> from castalia.testing.toys import moons
    >>> X, y = moons(200)
    >>> model = Compress(method="int8", random_state=0).fit(X, y)
    >>> model.sizes_["after"] < 0.7 * model.sizes_["before"]
    True
    """

    method: Annotated[str, OneOf("svd", "prune", "filters", "int8")] = "svd"
    keep: Annotated[float, Interval(0, 1, closed="right")] = 0.95
    rank: Annotated[int | None, Interval(1, whole=True, optional=True)] = None

    def _learn(self, member: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
        return self._shrunk(self._fit_member(member, X, y, weight))

    def compress(self, model: Any) -> Compress:
        """Compress an estimator that is fitted, as it is; nothing is trained.

        ``estimator`` becomes an unfitted copy of it.

        Parameters
        ----------
        model
            An estimator of ours that is trained by gradients, fitted; it stays as it is.

        Returns
        -------
        self
        """
        check_parameters(self)
        if not isinstance(model, Estimator):
            raise InvalidParameter(
                "Compress: `model` must be one of ours that is trained by gradients; got "
                f"{type(model).__name__}."
            )
        check_is_fitted(model, "module_")
        for name in ("classes_", "n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        self.estimator, self.estimator_ = clone(model), self._shrunk(copy.copy(model))
        return self

    def tradeoff(
        self, model: Any, X: Any, y: Any, keep: Sequence[float] = (0.5, 0.8, 0.9, 0.95, 0.99)
    ) -> list[dict[str, float]]:
        """Return what each share of a fitted estimator costs: size, score and time.

        Parameters
        ----------
        model
            As for ``compress``.
        X, y
            Rows that were not trained on.
        keep
            The shares.

        Returns
        -------
        list of dict
            For each share ``keep``, ``smaller`` (how many times fewer bytes), ``score`` and
            ``seconds`` (to predict X).
        """
        lines = []
        for share in keep:
            other = clone(self).set_params(keep=share, rank=None).compress(model)
            start = time.perf_counter()
            other.predict(X)
            seconds = time.perf_counter() - start
            smaller = other.sizes_["before"] / other.sizes_["after"]
            line = {"keep": share, "smaller": smaller, "score": other.score(X, y)}
            lines.append({**line, "seconds": seconds})
        return lines

    def _shrunk(self, member: Any) -> Any:
        """Return a fitted estimator with the compressed network."""
        self.ranks_: dict[str, int] = {}
        self.stored_: dict[str, Stored] = {}
        state = member.module_.state_dict()
        names = [n for n, v in state.items() if n.endswith("weight") and v.ndim > 1]
        for name, value in state.items():
            array = value.detach().cpu().numpy()
            small = name in names[: -1 if self.method == "filters" else None]
            self.stored_[name] = self._small(name, array) if small else {"plain": array}
        before = sum(value.numel() * value.element_size() for value in state.values())
        after = sum(a.nbytes for parts in self.stored_.values() for a in parts.values())
        self.sizes_ = {"before": before, "after": after}
        return self._attach(member)

    def _small(self, name: str, weight: np.ndarray) -> Stored:
        """Return the arrays that stand for a matrix of weights."""
        if self.method == "int8":
            return coded(quantised(weight))
        if self.method == "filters":
            norms = np.linalg.norm(weight.reshape(len(weight), -1), axis=1)
            n = max(1, round(self.keep * len(norms)))
            rows = np.sort(np.argsort(-norms, kind="stable")[:n]).astype(np.uint32)
            return {"rows": rows, "values": weight[rows], "shape": np.array(weight.shape)}
        if self.method == "prune":
            least = np.quantile(np.abs(weight), 1 - self.keep)
            kept = np.flatnonzero(np.abs(weight).ravel() >= least)
            place = kept.astype(np.uint16 if weight.size < 2**16 else np.uint32)
            return {"at": place, "values": weight.ravel()[kept], "shape": np.array(weight.shape)}
        if weight.ndim > 2:
            return {"plain": weight}
        return self._factorised(name, weight)

    def _factorised(self, name: str, weight: np.ndarray) -> Stored:
        u, s, v = np.linalg.svd(weight, full_matrices=False)
        if self.rank is not None and self.rank > len(s):
            raise InvalidParameter(
                f"Compress: `rank` must be at most {len(s)}, the rank of layer '{name}'; got "
                f"{self.rank}."
            )
        r = energy_rank(s, self.keep) if self.rank is None else self.rank
        if r * sum(weight.shape) >= weight.size and self.rank is None:
            return {"plain": weight}
        self.ranks_[name.removesuffix(".weight")] = r
        return {"left": u[:, :r] * s[:r], "right": np.ascontiguousarray(v[:r])}

    @property
    def module_(self) -> nn.Module:
        """The network, rebuilt from what is stored."""
        check_is_fitted(self, "estimator_")
        return self._whole().module_

    def _whole(self) -> Any:
        """Return the estimator with its network, which a loaded one has not yet."""
        model = self.estimator_
        return model if "module_" in vars(model) else self._attach(model)

    def _attach(self, member: Any) -> Any:
        """Give an estimator the network of what is stored; it is not saved a second time."""
        member.module_ = self._network_again(member)
        vars(member)["_unsaved"] = ("module_",)
        return member

    def _network_again(self, member: Any) -> nn.Module:
        with seed_scope(0):
            net: nn.Module = member._network(member.spec_)
        for path in self.ranks_:
            parent, _, child = path.rpartition(".")
            rank = self.stored_[f"{path}.weight"]["left"].shape[1]
            setattr(net.get_submodule(parent), child, _thin(net.get_submodule(path), rank))
        state: dict[str, Tensor] = {}
        for name, parts in self.stored_.items():
            state |= _expanded(name, parts)
        kind = next(value.dtype for value in state.values() if value.is_floating_point())
        net = net.to(kind)
        net.load_state_dict(_renamed(state, self.ranks_))
        return net.eval()

    @available_if(is_classifier)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class for each row."""
        X = self._checked(X)
        return self._whole().predict_proba(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class, or the number, of each row."""
        X = self._checked(X)
        return self._whole().predict(X)


def _thin(layer: Any, rank: int) -> nn.Sequential:
    """Return two layers in place of one: to the rank, and on to the outputs with the bias."""
    return nn.Sequential(
        nn.Linear(layer.in_features, rank, bias=False),
        nn.Linear(rank, layer.out_features, bias=layer.bias is not None),
    )


def _expanded(name: str, parts: Stored) -> dict[str, Tensor]:
    """Return the tensors that arrays stand for."""
    if "plain" in parts:
        return {name: torch.from_numpy(np.array(parts["plain"]))}
    if "code" in parts:
        whole = np.frombuffer(zlib.decompress(parts["code"].tobytes()), np.int8)
        parts = {"whole": whole.reshape(parts["shape"]), "scale": parts["scale"]}
    if "rows" in parts:
        whole = np.zeros(parts["shape"], dtype=parts["values"].dtype)
        whole[parts["rows"]] = parts["values"]
        return {name: torch.from_numpy(whole)}
    if "whole" in parts:
        scale = parts["scale"].reshape(-1, *[1] * (parts["whole"].ndim - 1))
        return {name: torch.from_numpy(parts["whole"] * scale)}
    if "at" in parts:
        whole = np.zeros(int(np.prod(parts["shape"])), dtype=parts["values"].dtype)
        whole[parts["at"]] = parts["values"]
        return {name: torch.from_numpy(whole.reshape(parts["shape"]))}
    path = name.removesuffix("weight")
    return {
        f"{path}0.weight": torch.from_numpy(parts["right"]),
        f"{path}1.weight": torch.from_numpy(np.ascontiguousarray(parts["left"])),
    }


def _renamed(state: dict[str, Tensor], ranks: dict[str, int]) -> dict[str, Tensor]:
    """Give the biases of factorised layers to the second of the two."""
    biases = {f"{path}.bias": f"{path}.1.bias" for path in ranks}
    return {biases.get(name, name): value for name, value in state.items()}
