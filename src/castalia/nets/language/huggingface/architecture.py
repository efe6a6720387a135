"""What is particular to one architecture of Hugging Face's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from castalia.errors import CheckpointMismatch
from castalia.nets.language.huggingface.tensor_names import Rule
from castalia.utils.text import listing

__all__ = ["Architecture"]

# Their names of activations, and ours.
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "swish",
    "swish": "swish",
    "tanh": "tanh",
}


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
        """Return our network for their configuration; the heads are those in ``given``."""

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

    def field(self, config: Mapping[str, Any], name: str, default: Any = None) -> Any:
        """Return a field of the configuration, which must be there unless it has a default."""
        found = config.get(name, default)
        if found is None:
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` must be in `config.json` of a {self.model_type} model."
            )
        return found

    def activation(self, name: str) -> str:
        """Return our name of an activation."""
        if name not in ACTIVATIONS:
            raise CheckpointMismatch(
                f"load_pretrained: the activation must be {listing(ACTIVATIONS)}; got {name!r}."
            )
        return ACTIVATIONS[name]

    def must_be(self, config: Mapping[str, Any], name: str, value: Any) -> None:
        """Refuse a configuration that asks for what our network does not do."""
        if config.get(name, value) != value:
            raise CheckpointMismatch(
                f"load_pretrained: `{name}` of a {self.model_type} model must be {value!r}; got "
                f"{config[name]!r}. This variant is not supported."
            )


def their_activation(name: str) -> str:
    """Return their name of an activation of ours."""
    return {"gelu_tanh": "gelu_new", "swish": "silu"}.get(name, name)


def untie(given: dict[str, Tensor], table: str, output: str) -> bool:
    """Say whether the output layer is the table of the tokens; if so, drop its copy."""
    if output not in given:
        return True
    same = table in given and given[output].equal(given[table])
    if same:
        del given[output]
    return same
