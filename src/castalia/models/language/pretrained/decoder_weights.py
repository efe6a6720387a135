"""What a task on a GPT begins with: its weights, with rows for new tokens, and what is trained."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from castalia.data.tokenizers import Tokenizer
from castalia.errors import InvalidParameter
from castalia.models.language.pretrained.start_weights import read_start
from castalia.nets import language as nets
from castalia.nn.adaptation.bottleneck_adapters import Bottleneck
from castalia.nn.adaptation.lora import merge_lora
from castalia.nn.adaptation.soft_prompts import Prompted, Prompts
from castalia.utils.text import plural

__all__ = [
    "OpenedDecoder",
    "adapted",
    "decoder_rates",
    "freeze_decoder",
    "grow",
    "open_decoder",
    "room_of",
    "sizes_of",
    "with_bias",
]


@dataclass(frozen=True)
class OpenedDecoder:
    """A start: its network, its tokenizer, and how many of its ids are the tokenizer's."""

    net: nets.GPT
    tokenizer: Tokenizer | None
    known: int


def open_decoder(start: Any, owner: str) -> OpenedDecoder | None:
    """Return the network and the tokenizer of a start.

    Parameters
    ----------
    start
        A fitted ``GPTLanguageModel`` or model made from one, a folder, or None.
    owner
        Whom errors name.
    """
    given = read_start(start)
    if given is None:
        return None
    net = given.net if given.model is None else getattr(given.net, "decoder", given.net)
    if isinstance(net, Prompted) or any(isinstance(m, Bottleneck) for m in net.modules()):
        raise InvalidParameter(
            f"{owner}: `start` must hold a GPT without added parts; got {start!r}, with learnt "
            "prompts or adapters. Begin with what it began with."
        )
    if not isinstance(net, nets.GPT):
        raise InvalidParameter(
            f"{owner}: `start` must hold a GPT; got {start!r} with a {type(net).__name__}."
        )
    # A start that was made for a task has further tokens of that task.
    known = getattr(getattr(given.model, "adapter_", None), "known", None)
    return OpenedDecoder(net, given.tokenizer, net.vocabulary if known is None else known)


def sizes_of(net: nets.GPT) -> dict[str, Any]:
    """Return the arguments that build such a network but for its vocabulary, as plain values."""
    block: Any = net.blocks[0]
    return {
        "context": net.context,
        "dim": net.dim,
        "depth": len(net.blocks),
        "heads": net.heads,
        "hidden": net.hidden,
        "activation": net.activation,
        "pre_norm": not isinstance(net.norm, nn.Identity),
        "bias": block.norm1.bias is not None,
        "tied": net.output is None,
        "rotary": net.positions is None,
        "eps": net.eps,
    }


@torch.no_grad()
def grow(net: nets.GPT, start: nets.GPT, end: int | None) -> nets.GPT:
    """Give a network the weights of another with fewer tokens; return it.

    New tokens begin as the one that ends a text, which is how the start knows the edge of a text;
    without such a token they keep their random vectors.

    Parameters
    ----------
    net
        Changed in place.
    start
        Of the same sizes; updates of LoRA in it are added to its layers.
    end
        Id of the token that ends a text, or None.
    """
    whole = merge_lora(copy.deepcopy(start)).state_dict()
    given = {name: value for name, value in whole.items() if ".lora_" not in name}
    net.to(start.tokens.weight.dtype)
    for name in ("tokens.weight", "output.weight"):
        if name in given:
            rows, old = net.state_dict()[name].clone(), given[name]
            if end is not None:
                rows[len(old) :] = old[end]
            rows[: len(old)] = old
            given[name] = rows
    net.load_state_dict(given)
    return net


@torch.no_grad()
def with_bias(decoder: nets.GPT, head: nn.Linear, kept: int) -> nets.GPT:
    """Return a copy with its first tokens, whose last norm adds what the head's bias adds.

    W (v + d) = W v + b for any d with W d = b: Hugging Face's head for GPT-2 has no bias.

    Parameters
    ----------
    decoder
        Below the head.
    head
        W and b.
    kept
        How many tokens.
    """
    made = nets.GPT(kept, **sizes_of(decoder))
    cut = {"tokens.weight", "output.weight"}
    given = {k: v[:kept] if k in cut else v for k, v in decoder.state_dict().items()}
    made.to(decoder.tokens.weight.dtype).load_state_dict(given)
    bias = head.bias.double()[:, None]
    shift = torch.linalg.lstsq(head.weight.double(), bias, driver="gelsd").solution
    if (head.weight.double() @ shift - bias).abs().max() > 1e-6 * bias.abs().max().clamp(min=1):
        raise InvalidParameter(
            "GPTClassifier.save_pretrained: the head must have weights of full rank, for its bias "
            f"must go into the last norm; got {tuple(head.weight.shape)} of a smaller one."
        )
    made.norm.bias.add_(shift[:, 0].to(made.norm.bias.dtype))  # type: ignore[operator, union-attr]
    return made.eval()


def room_of(opened: OpenedDecoder, adapt: Any) -> int:
    """Return how many tokens a start reads beside learnt prompts."""
    return int(opened.net.context) - (adapt.count if isinstance(adapt, Prompts) else 0)


def adapted(est: Any, decoder: nets.GPT) -> Any:
    """Return a decoder with what an estimator does not train frozen, by ``train`` and ``adapt``."""
    name = type(est).__name__
    if est.start is None and (est.train != "all" or est.adapt is not None):
        raise InvalidParameter(
            f"{name}: `train` must be 'all' and `adapt` None without a `start`, or random weights "
            f"would be kept; got {est.train!r} and {est.adapt!r}. Give a `start`."
        )
    if est.adapt is not None:
        if est.train != "all":
            raise InvalidParameter(
                f"{name}: `train` must be 'all' with `adapt`, which freezes the network; got "
                f"{est.train!r}."
            )
        return est.adapt.apply(decoder)
    if est.train != "all":
        freeze_decoder(decoder, 0 if est.train == "head" else est.train, name)
    return decoder


def freeze_decoder(decoder: nets.GPT, trained: int, owner: str) -> None:
    """Keep a decoder but for its last blocks and the norm behind them.

    Parameters
    ----------
    decoder
        Changed in place.
    trained
        How many blocks are trained; 0 keeps the norm too.
    owner
        Whom errors name.
    """
    depth = len(decoder.blocks)
    if trained > depth:
        raise InvalidParameter(
            f"{owner}: `train` must be at most {depth}, for the network has "
            f"{plural(depth, 'block')}; got {trained}. 'all' trains the embeddings too."
        )
    decoder.requires_grad_(False)
    if trained:
        for part in (*list(decoder.blocks)[depth - trained :], decoder.norm):
            part.requires_grad_(True)


def decoder_rates(net: Any, decay: float) -> list[tuple[Tensor, float]]:
    """Return every trained parameter of a network on a decoder with the factor on its rate.

    The head and the last norm have factor 1, the last block ``decay``, the one before it
    ``decay``^2, and the embeddings the smallest.

    Parameters
    ----------
    net
        A network with a ``decoder``.
    decay
        Factor from a part to the one before it.
    """
    decoder = getattr(net.decoder, "net", net.decoder)
    depth = len(decoder.blocks)
    level = {id(p): 0 for p in [*net.head.parameters(), *decoder.norm.parameters()]}
    for i, block in enumerate(decoder.blocks):
        level |= {id(p): depth - i for p in block.parameters()}
    trained = [p for p in net.parameters() if p.requires_grad]
    return [(p, decay ** level.get(id(p), depth + 1)) for p in trained]
