"""What estimators on ELMo share: its sizes, how it reads, and where it begins."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from castalia.base import Interval, OneOf, Start, load
from castalia.data.text import SentenceAdapter
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.start_weights import StartReader
from castalia.models.language.tokenizer_parameter import TokenizerChoice
from castalia.nets import language as nets
from castalia.protocols import Spec

__all__ = ["ELMoSizes", "open_elmo"]

STARTS = Start("a fitted ELMo or model made from one, or the folder of a saved one")
SPELLED = 50  # most letters of a token, its begin and its end, as in the paper


def open_elmo(start: Any, owner: str) -> Any:
    """Return the fitted model of a start, or None."""
    if start is None:
        return None
    found = load(Path(start)) if isinstance(start, str | os.PathLike) else start
    check_is_fitted(found, "module_")
    if not isinstance(network_of(found), nets.ELMo):
        raise InvalidParameter(
            f"{owner}: `start` must hold an ELMo; got {start!r} with a "
            f"{type(network_of(found)).__name__}."
        )
    return found


def network_of(model: Any) -> Any:
    """Return the language model in a fitted estimator."""
    return getattr(model.module_, "encoder", model.module_)


@dataclass(kw_only=True, eq=False, repr=False)
class ELMoSizes:
    """Fields of estimators on ELMo; see ``ELMo``."""

    adapter: ClassVar[Any] = StartReader(SentenceAdapter)

    tokenizer: Annotated[Any, TokenizerChoice()] = None
    context: Annotated[int, Interval(3, whole=True)] = 128
    dim: Annotated[int, Interval(1, whole=True)] = 128
    depth: Annotated[int, Interval(1, whole=True)] = 2
    hidden: Annotated[int | None, Interval(1, whole=True, optional=True)] = None
    spelled: Annotated[bool, OneOf(True, False)] = False
    dropout: Annotated[float, Interval(0, 1, closed="left")] = 0.1
    start: Annotated[Any, STARTS] = None

    def _reader(self, **settings: Any) -> SentenceAdapter:
        """Make the adapter, with the tokenizer and the spelling of the start."""
        self._opened = open_elmo(self.start, type(self).__name__)
        if self._opened is None:
            spelled = SPELLED if self.spelled else 0
            return SentenceAdapter(
                self.tokenizer, context=self.context, spelled=spelled, **settings
            )
        known = self._opened.adapter_
        made = SentenceAdapter(
            known.tokenizer, context=self.context, spelled=known.spelled, **settings
        )
        made.letters = known.letters
        return made

    def _encoder(self, spec: Spec, *, predicts: bool, dropout: float) -> nets.ELMo:
        """Build the network, with the weights of the start where there is one."""
        if hasattr(self, "n_iter_") and not hasattr(self, "module_"):  # it is being loaded
            return nets.ELMo(**vars(self)["encoder_"], predicts=predicts, dropout=dropout)
        opened, self._opened = getattr(self, "_opened", None), None
        given = None if opened is None else network_of(opened)
        self.encoder_ = self._own_sizes(spec) if given is None else sizes_of(given)
        net = nets.ELMo(**self.encoder_, predicts=predicts, dropout=dropout)
        if given is not None:
            wanted = net.state_dict()
            known = {name: w for name, w in given.state_dict().items() if name in wanted}
            net.to(next(given.parameters()).dtype).load_state_dict(known, strict=False)
        return net

    def _own_sizes(self, spec: Spec) -> dict[str, Any]:
        if self.hidden is not None and self.hidden <= self.dim:
            raise InvalidParameter(
                f"{type(self).__name__}: `hidden` must be None or more than dim={self.dim}, to "
                f"which it is projected; got {self.hidden}."
            )
        return {"dim": self.dim, "depth": self.depth, "hidden": self.hidden, **spec.extra}

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        copy.start = self.start  # a clone of it would have forgotten what is wanted here
        return copy


def sizes_of(net: nets.ELMo) -> dict[str, Any]:
    """Return the arguments that build such a network, as plain values."""
    names = ("vocabulary", "dim", "depth", "hidden", "letters", "padding")
    return {name: getattr(net, name) for name in names}
