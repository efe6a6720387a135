"""What is particular to one architecture of Hugging Face's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.huggingface.tensor_names import Rule

__all__ = ["Architecture", "drop_copies", "same", "their_activation"]


class Architecture(ABC):
    """Translates configuration and names between their model and our network.

    Attributes
    ----------
    model_type
        What ``config.json`` calls it.
    prefix
        Begins the names of the body's tensors; absent where the body alone was saved.
    heads
        Begin the names that stand outside the body.
    ignored
        Endings of names that hold no weights: constant masks and numberings.
    """

    model_type: ClassVar[str]
    prefix: ClassVar[str] = ""
    heads: ClassVar[tuple[str, ...]] = ()
    ignored: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def build(self, config: Mapping[str, Any], given: Mapping[str, Tensor]) -> nn.Module:
        """Return our network for their checked configuration; the heads are those in ``given``."""

    @abstractmethod
    def config(self, net: Any) -> dict[str, Any]:
        """Return their configuration of our network."""

    @abstractmethod
    def rules(self, net: Any) -> list[Rule]:
        """Return the table of names."""

    @abstractmethod
    def owns(self, net: nn.Module) -> bool:
        """Say whether our network is of this architecture."""

    def tidy(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors under today's full names, without what holds no weights."""
        bare = not any(name.startswith(self.prefix) for name in given)
        found = {}
        for name, tensor in given.items():
            if name.endswith(self.ignored):
                continue
            name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
            name = name.replace("LayerNorm.beta", "LayerNorm.bias")
            inside = bare and not name.startswith(self.heads)
            found[f"{self.prefix}{name}" if inside else name] = tensor
        return found


def their_activation(name: str) -> str:
    """Return their name of an activation of ours."""
    return {"gelu_tanh": "gelu_new", "swish": "silu", "identity": "linear"}.get(name, name)


def same(given: Mapping[str, Tensor], table: str, copy: str) -> bool:
    """Say whether two tensors are equal; one that is not there is."""
    if table not in given or copy not in given:
        return True
    one, other = given[table], given[copy]
    return one.shape == other.shape and one.dtype == other.dtype and one.equal(other)


def drop_copies(given: dict[str, Tensor], table: str, copies: Iterable[str]) -> None:
    """Drop copies of a tensor under other names; refuse those that differ from it."""
    for name in copies:
        if not same(given, table, name):
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` must be equal to `{table}`; they differ, and weights "
                "that are not shared are not supported here."
            )
        if table in given:
            given.pop(name, None)
