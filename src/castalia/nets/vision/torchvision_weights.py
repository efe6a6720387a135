"""Weights of others: files of torchvision and timm in our networks, and ours in theirs.

A network's tensors have three names: ours, torchvision's and timm's. ``names`` gives the table from
ours to theirs; reading goes through it backwards. Files are safetensors; pickles, which can run
code when they are read, are refused.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData, InvalidParameter
from castalia.nets.vision.alexnet import AlexNet
from castalia.nets.vision.convnext import ConvNeXt
from castalia.nets.vision.googlenet import GoogLeNet
from castalia.nets.vision.resnet import ResNet
from castalia.nets.vision.vgg import VGG
from castalia.nets.vision.vit import ViT
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.text import listing

__all__ = ["load_weights", "names", "read_weights", "save_weights"]

NAMINGS = ("castalia", "torchvision", "timm")
Rules = Sequence[tuple[str, str]]

_RESNET: Rules = (
    (r"^features\.stem\.conv", "conv1"),
    (r"^features\.stem\.norm", "bn1"),
    (r"^features\.stage", "layer"),
    (r"\.residual\.conv", ".conv"),
    (r"\.residual\.norm", ".bn"),
    (r"\.shortcut\.conv", ".downsample.0"),
    (r"\.shortcut\.norm", ".downsample.1"),
    (r"^head\.classes", "fc"),
)
_VIT: Rules = (
    (r"^features\.patches\.token", "class_token"),
    (r"^features\.patches\.project", "conv_proj"),
    (r"^features\.patches\.places", "encoder.pos_embedding"),
    (r"^features\.block(\d+)\.", r"encoder.layers.encoder_layer_\1."),
    (r"\.norm([12])\.", r".ln_\1."),
    (r"\.attention\.", ".self_attention."),
    (r"\.up\.", ".mlp.0."),
    (r"\.down\.", ".mlp.3."),
    (r"^features\.norm", "encoder.ln"),
    (r"^head\.classes", "heads.head"),
)
_TIMM_VIT: Rules = (
    (r"^features\.patches\.token", "cls_token"),
    (r"^features\.patches\.project", "patch_embed.proj"),
    (r"^features\.patches\.places", "pos_embed"),
    (r"^features\.block(\d+)\.", r"blocks.\1."),
    (r"\.attention\.in_proj_", ".attn.qkv."),
    (r"\.attention\.out_proj", ".attn.proj"),
    (r"\.up\.", ".mlp.fc1."),
    (r"\.down\.", ".mlp.fc2."),
    (r"^features\.norm", "norm"),
    (r"^head\.classes", "head"),
)
_CONVNEXT: Rules = (
    (r"^features\.stem\.conv", "features.0.0"),
    (r"^features\.stem\.norm", "features.0.1"),
    *((rf"^features\.shrink{i}\.norm", f"features.{2 * i - 2}.0") for i in range(2, 5)),
    *((rf"^features\.shrink{i}\.conv", f"features.{2 * i - 2}.1") for i in range(2, 5)),
    *((rf"^features\.stage{i}\.", f"features.{2 * i - 1}.") for i in range(1, 5)),
    (r"\.depthwise\.", ".block.0."),
    (r"^(features\.\d\.\d+)\.norm\.", r"\1.block.2."),
    (r"\.up\.", ".block.3."),
    (r"\.down\.", ".block.5."),
    (r"\.scale$", ".layer_scale"),
    (r"^head\.norm", "classifier.0"),
    (r"^head\.classes", "classifier.2"),
)
_TIMM_CONVNEXT: Rules = (
    (r"^features\.stem\.conv", "stem.0"),
    (r"^features\.stem\.norm", "stem.1"),
    *((rf"^features\.shrink{i}\.norm", f"stages.{i - 1}.downsample.0") for i in range(2, 5)),
    *((rf"^features\.shrink{i}\.conv", f"stages.{i - 1}.downsample.1") for i in range(2, 5)),
    *((rf"^features\.stage{i}\.", f"stages.{i - 1}.blocks.") for i in range(1, 5)),
    (r"\.depthwise\.", ".conv_dw."),
    (r"\.up\.", ".mlp.fc1."),
    (r"\.down\.", ".mlp.fc2."),
    (r"\.scale$", ".gamma"),
    (r"^head\.classes", "head.fc"),
)
# Patterns in our names and what others write there. Layers of `features` in AlexNet and VGG have
# numbers with them, which ``_numbered`` puts in before.
_RULES: dict[type[nn.Module], dict[str, Rules]] = {
    ResNet: {"torchvision": _RESNET, "timm": _RESNET},
    ViT: {"torchvision": _VIT, "timm": _TIMM_VIT},
    ConvNeXt: {"torchvision": _CONVNEXT, "timm": _TIMM_CONVNEXT},
    GoogLeNet: {
        "torchvision": ((r"^features\.", ""), (r"\.norm", ".bn"), (r"^head\.classes", "fc"))
    },
    AlexNet: {
        "torchvision": (
            (r"^head\.dense6", "classifier.1"),
            (r"^head\.dense7", "classifier.4"),
            (r"^head\.classes", "classifier.6"),
        )
    },
    VGG: {
        "torchvision": (
            (r"^head\.dense6", "classifier.0"),
            (r"^head\.dense7", "classifier.3"),
            (r"^head\.classes", "classifier.6"),
        ),
        "timm": (
            (r"^head\.dense6", "pre_logits.fc1"),  # convolutions there, of the same numbers
            (r"^head\.dense7", "pre_logits.fc2"),
            (r"^head\.classes", "head.fc"),
        ),
    },
}
_COUNTERS = "num_batches_tracked"
_SPARE = re.compile(rf"^(aux1|aux2)\.|{_COUNTERS}$")  # of no use to us, or not always there
_WRAPPED = ("module.", "_orig_mod.", "model.")  # what wrappers put before every name
_PICKLES = (".pth", ".pt", ".bin", ".pkl", ".ckpt", ".tar")


def names(net: nn.Module, naming: str = "torchvision") -> dict[str, str]:
    """Return the name of each tensor in another library, by ours.

    Examples
    --------
    >>> table = names(ResNet(3, 10, width=8))
    >>> table["features.stage2.0.shortcut.conv.weight"]
    'layer2.0.downsample.0.weight'
    """
    ours = list(net.state_dict())
    if naming == "castalia":
        return {name: name for name in ours}
    known = _RULES.get(type(net), {})
    if naming not in known:
        raise InvalidParameter(
            f"names: `naming` of {type(net).__name__} must be {listing(['castalia', *known])}; got "
            f"{naming!r}."
        )
    places = _numbered(net) if isinstance(net, AlexNet | VGG) else {}
    table = {}
    for name in ours:
        theirs = re.sub(r"^features\.\w+", lambda m: places.get(m[0], m[0]), name)
        for pattern, other in known[naming]:
            theirs = re.sub(pattern, other, theirs)
        table[name] = theirs
    return table


def load_weights(
    net: nn.Module,
    source: str | os.PathLike[str] | Mapping[str, Tensor],
    *,
    head: bool | None = None,
) -> nn.Module:
    """Copy weights into a network, whoever named them, and return the network.

    Everything is compared before the first number is copied: a file that does not fit changes
    nothing.

    Parameters
    ----------
    net
        A network of ``castalia.nets.vision``; changed in place.
    source
        A safetensors file, a folder with ``model.safetensors``, or tensors by name.
    head
        Whether to copy the last layer, that of the classes. None: where it fits.

    Raises
    ------
    CheckpointMismatch
        When tensors are missing, left over or of another shape; they are named.
    InvalidData
        When there is no file, or it is a pickle.

    Notes
    -----
    torchvision's and timm's networks were trained on images with channels of mean (0.485, 0.456,
    0.406) and deviation (0.229, 0.224, 0.225); show them such. torchvision's GoogLeNet expects
    (x - 0.5) / 0.5 instead.

    Examples
    --------
    >>> first, second = ResNet(1, 2, depth=8), ResNet(1, 3, depth=8)
    >>> second = load_weights(second, first.state_dict())
    >>> torch.equal(first.features.stem.conv.weight, second.features.stem.conv.weight)
    True
    """
    given = read_weights(source) if isinstance(source, str | os.PathLike) else dict(source)
    owner = type(net).__name__
    found = _ours(net, given)
    wanted = net.state_dict()
    last = _last_layer(net)
    fits = all(k in found and found[k].numel() == wanted[k].numel() for k in last)
    skip = set(last) if head is False or (head is None and not fits) else set()
    faults = _faults(wanted, found, skip)
    if faults:
        raise CheckpointMismatch(
            f"load_weights: the weights must be those of this {owner}; {'; '.join(faults[:4])}"
            f"{f'; and {len(faults) - 4} more' if len(faults) > 4 else ''}. Build it with the "
            "depth, width and channels of the file."
        )
    with torch.no_grad():
        for name, slot in wanted.items():  # the state shares the network's memory
            if name in found and name not in skip:
                slot.copy_(found[name].reshape(slot.shape))
    return net


def save_weights(net: nn.Module, path: str | os.PathLike[str], naming: str = "castalia") -> Path:
    """Write a network's weights as a safetensors file, under the names of another library."""
    table = names(net, naming)
    tensors = {table[name]: value.contiguous() for name, value in net.state_dict().items()}
    if naming == "timm" and isinstance(net, ConvNeXt):
        tensors = {n: v.flatten() if n.endswith("gamma") else v for n, v in tensors.items()}
    if naming == "timm" and isinstance(net, VGG):
        tensors = {name: _as_convolution(net, name, value) for name, value in tensors.items()}
    with writing("save_weights", Path(path)):
        return atomic_write(path, to_bytes(tensors))


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, or of the one in a folder; nothing else is read."""
    path = Path(path)
    if path.is_dir():
        path = path / "model.safetensors"
    if not path.is_file():
        raise InvalidData(f"read_weights: `path` must be a safetensors file; '{path}' is none.")
    with open(path, "rb") as file:
        start = file.read(9)
    # A safetensors file is the length of its header in eight bytes, whatever they are, then JSON.
    if start[8:] != b"{" and (path.suffix in _PICKLES or start.startswith((b"PK", b"\x80"))):
        raise InvalidData(
            f"read_weights: the weights must be a safetensors file; '{path.name}' is a pickle, "
            "which can run code when it is read. If you trust it, convert it once: "
            f"safetensors.torch.save_file(torch.load({path.name!r}, weights_only=True), "
            f"{path.stem + '.safetensors'!r})."
        )
    try:
        return dict(load_file(path))
    except (SafetensorError, ValueError, KeyError) as error:
        raise DamagedFile(
            f"read_weights: `{path}` is truncated or no safetensors file ({error})."
        ) from error


def _ours(net: nn.Module, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Give the tensors our names, by the naming that knows most of theirs."""
    for prefix in _WRAPPED:
        if given and all(name.startswith(prefix) for name in given):
            given = {name.removeprefix(prefix): value for name, value in given.items()}
    namings = ["castalia", *_RULES.get(type(net), {})]
    tables = [{theirs: our for our, theirs in names(net, n).items()} for n in namings]
    table = max(tables, key=lambda table: len(table.keys() & given.keys()))
    return {table.get(name, name): value for name, value in given.items()}


def _faults(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor], skip: set[str]) -> list[str]:
    """Say what does not fit: missing tensors, those left over, other shapes."""
    missing = [k for k in wanted if k not in found and k not in skip and not _SPARE.search(k)]
    spare = [k for k in found if k not in wanted and not _SPARE.search(k)]
    faults = [f"`{k}` is missing" for k in missing] + [f"`{k}` is not in it" for k in spare]
    for k in [k for k in wanted if k in found and k not in skip]:
        ours, theirs = tuple(wanted[k].shape), tuple(found[k].shape)
        flat = tuple(found[k].flatten(1).shape) if len(theirs) == 4 else theirs
        factors = wanted[k].shape[1:].numel() == 1 and ours[:1] == theirs  # (C,) for (C, 1, 1)
        if ours not in (theirs, flat) and not factors:
            faults.append(f"`{k}` must be {ours}, got {theirs}")
    return sorted(faults, key=lambda fault: "must be" not in fault)


def _last_layer(net: nn.Module) -> list[str]:
    """Names of the tensors of the classes."""
    return [k for k in net.state_dict() if k.startswith("head.classes.")]


def _numbered(net: AlexNet | VGG) -> dict[str, str]:
    """Our name of each layer of ``features`` and its place in the sequence."""
    children = enumerate(net.features.named_children())
    return {f"features.{name}": f"features.{i}" for i, (name, _) in children}


def _as_convolution(net: VGG, name: str, value: Tensor) -> Tensor:
    """Write the two hidden dense layers as timm does, as convolutions over the last map."""
    if not (name.startswith("pre_logits") and value.ndim == 2):
        return value
    *_, last = (layer for layer in net.features if isinstance(layer, nn.Conv2d))
    side = round((value.shape[1] / last.out_channels) ** 0.5) if "fc1" in name else 1
    return value.reshape(value.shape[0], -1, side, side)
