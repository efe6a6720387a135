"""Where weights begin. m is the fan-in of a layer, n its fan-out, c the gain of its activation.

fan_in_uniform   U(-c/sqrt(m), c/sqrt(m)), torch's own start of linear layers
glorot           U(-c sqrt(6/(m+n)), c sqrt(6/(m+n)))
he               N(0, c^2/m), with c = sqrt(2) for rectifiers
orthogonal       c times a matrix with orthonormal rows or columns
lsuv             orthogonal, then each layer's outputs on a batch scaled to unit variance, in order
small_uniform    U(-0.5, 0.5), the recipe of back-propagation
normal, uniform, constant, zeros    N(0, s^2), U(-s, s), s, 0, where s is ``scale``

Layers with gates or groups are filled block by block, so that the fans are those of one block.
References: 2010, Glorot, Bengio, Understanding the difficulty of training deep feedforward neural
networks; 2015, He et al., Delving deep into rectifiers, arXiv 1502.01852; 2014, Saxe, McClelland,
Ganguli, Exact solutions to the nonlinear dynamics of learning, arXiv 1312.6120; 2016, Mishkin,
Matas, All you need is a good init, arXiv 1511.06422.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.init import _calculate_fan_in_and_fan_out as fans
from torch.nn.modules.batchnorm import _NormBase

from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.nn.activations import ACTIVATIONS
from castalia.utils.seeds import seed_from, seed_scope
from castalia.utils.text import did_you_mean, listing

__all__ = ["GAINS", "SCHEMES", "init"]

# What a layer's weights are multiplied by to keep the variance through the activation after it.
GAINS = {
    "identity": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "leaky_relu": math.sqrt(2 / (1 + 0.01**2)),
    "elu": math.sqrt(2),
    "selu": 3 / 4,
    "gelu": math.sqrt(2),
    "swish": math.sqrt(2),
    "mish": math.sqrt(2),
    "softplus": 1.0,
    "prelu": math.sqrt(2 / (1 + 0.25**2)),  # its slope starts at 1/4
    "cosine": 1.0,
    "clipped": 1.0,
}
GATES = {nn.LSTM: 4, nn.LSTMCell: 4, nn.GRU: 3, nn.GRUCell: 3, nn.MultiheadAttention: 3}
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
AFFINE = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, *TRANSPOSED)
NORMS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
DEEP = 5  # rectified layers from which a factor of 1/2 in the variance of each is worth a word

Draw = Callable[[Tensor, float, float | None, torch.Generator], Tensor]


def _uniform(weight: Tensor, bound: float, source: torch.Generator) -> Tensor:
    return weight.uniform_(-bound, bound, generator=source)


# name: (gain without an activation, filler of one block given gain, scale and generator)
SCHEMES: dict[str, tuple[float, Draw]] = {
    "fan_in_uniform": (1.0, lambda w, c, s, g: _uniform(w, c / math.sqrt(fans(w)[0]), g)),
    "glorot": (1.0, lambda w, c, s, g: _uniform(w, c * math.sqrt(6 / sum(fans(w))), g)),
    "he": (GAINS["relu"], lambda w, c, s, g: w.normal_(0, c / math.sqrt(fans(w)[0]), generator=g)),
    "orthogonal": (1.0, lambda w, c, s, g: nn.init.orthogonal_(w, c, generator=g)),
    "lsuv": (1.0, lambda w, c, s, g: nn.init.orthogonal_(w, generator=g)),
    "small_uniform": (1.0, lambda w, c, s, g: _uniform(w, 0.5, g)),
    "normal": (1.0, lambda w, c, s, g: w.normal_(0, s, generator=g)),  # type: ignore[arg-type]
    "uniform": (1.0, lambda w, c, s, g: _uniform(w, s, g)),  # type: ignore[arg-type]
    "constant": (1.0, lambda w, c, s, g: w.fill_(s)),  # type: ignore[arg-type]
    "zeros": (1.0, lambda w, c, s, g: w.zero_()),
}
SCALED = ("normal", "uniform", "constant")


@torch.no_grad()
def init(
    module: nn.Module,
    scheme: str,
    *,
    activation: str | None = None,
    scale: float | None = None,
    bias: float | None = 0.0,
    data: Any = None,
    random_state: Any = None,
) -> nn.Module:
    """Set the weights of a module, and of all modules in it, by a scheme; return the module.

    Weights are parameters of two and more dimensions: of linear, convolutional and recurrent
    layers, embeddings, attention. Scales and shifts of normalisation stay as they are. The numbers
    depend on ``random_state`` alone: they are the same on every device, and no global random state
    is read or changed. A symmetric start of hidden layers, and a scheme made for other activations
    than the module's, get a ``TrainingWarning``.

    Parameters
    ----------
    module
        Any module; changed in place.
    scheme
        A key of ``SCHEMES``; see the top of this file.
    activation
        Name of the activation after the layers, whose gain multiplies the weights of
        ``fan_in_uniform``, ``glorot``, ``he`` and ``orthogonal``. None: gain 1, for ``he`` the
        rectifier's.
    scale
        Standard deviation of ``normal``, bound of ``uniform``, value of ``constant``.
    bias
        Value of every bias; None leaves biases alone.
    data
        Inputs the module is called with (a tuple: several arguments) when ``scheme`` is ``lsuv``.
    random_state
        Seed, NumPy generator, ``torch.Generator`` on the CPU, or None for a fresh start each time.

    Examples
    --------
    >>> layer = init(nn.Linear(300, 100), "glorot", random_state=0)
    >>> bool(layer.weight.abs().max() <= (6 / 400) ** 0.5)
    True
    """
    if not isinstance(module, nn.Module):
        raise InvalidParameter(f"init: `module` must be an nn.Module; got {type(module).__name__}.")
    _check(scheme, activation, scale, data)
    gain, fill = SCHEMES[scheme]
    gain = gain if activation is None else GAINS[activation]
    given = isinstance(random_state, torch.Generator)
    source = random_state if given else torch.Generator().manual_seed(seed_from(random_state))
    for layer, name, weight in _own_parameters(module):
        if "bias" in name:
            if bias is not None:
                weight.fill_(bias)
        elif weight.ndim >= 2 and weight.numel():
            for block in _blocks(layer, name, weight):
                fresh = torch.empty(block.shape, dtype=weight.dtype)  # on the CPU, contiguous
                block.copy_(fill(fresh, gain, scale, source))
            if getattr(layer, "padding_idx", None) is not None:
                weight[layer.padding_idx] = 0
    if scheme == "lsuv":
        _to_unit_variance(module, data, int(torch.randint(2**31, (), generator=source)))
    _warn(module, scheme, activation)
    return module


def _check(scheme: str, activation: str | None, scale: float | None, data: Any) -> None:
    if not isinstance(scheme, str) or scheme not in SCHEMES:
        raise InvalidParameter(
            f"init: `scheme` must be {listing(SCHEMES)}; got {scheme!r}."
            f"{did_you_mean(str(scheme), SCHEMES)}"
        )
    if activation is not None and activation not in GAINS:
        raise InvalidParameter(
            f"init: `activation` must be {listing(GAINS)} or None; got {activation!r}."
            f"{did_you_mean(str(activation), GAINS)}"
        )
    if scheme in SCALED and scale is None:
        raise InvalidParameter(f"init: scheme {scheme!r} needs a `scale`; set scale=0.1, say.")
    number = isinstance(scale, int | float) and (scale >= 0 or scheme == "constant")
    if scheme in SCALED and not number:
        rule = "a number" if scheme == "constant" else "a number of at least 0"
        raise InvalidParameter(f"init: `scale` of {scheme!r} must be {rule}; got {scale!r}.")
    if scheme not in SCALED and scale is not None:
        raise InvalidParameter(
            f"init: `scale` must be None with scheme {scheme!r}, which has its own; got {scale!r}. "
            f"It belongs to {listing(SCALED)}."
        )
    if (scheme == "lsuv") != (data is not None):
        raise InvalidParameter(
            "init: scheme 'lsuv' needs a batch of inputs as `data`, and no other scheme has a use "
            f"for it; got scheme={scheme!r} {'without' if data is None else 'with'} `data`."
        )


def _own_parameters(module: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Yield each parameter once, with its name and the layer it belongs to."""
    seen = set()
    for layer in module.modules():
        for name, parameter in layer.named_parameters(recurse=False):
            if isinstance(parameter, nn.parameter.UninitializedParameter):
                raise InvalidParameter(
                    f"init: the shape of `{name}` in {type(layer).__name__} must be known; it is "
                    "set by the first batch. Call the module once before."
                )
            if id(parameter) not in seen and not isinstance(layer, NORMS):
                seen.add(id(parameter))
                yield layer, name, parameter


def _blocks(layer: nn.Module, name: str, weight: Tensor) -> list[Tensor]:
    """Cut a weight into what are matrices (outputs, inputs, …) of their own: gates and groups."""
    stacked = name.startswith(("weight_ih", "weight_hh", "in_proj"))
    parts = GATES.get(type(layer), 1) if stacked else getattr(layer, "groups", 1)
    blocks = list(weight.chunk(parts)) if isinstance(parts, int) else [weight]
    return [b.transpose(0, 1) for b in blocks] if isinstance(layer, TRANSPOSED) else blocks


def _to_unit_variance(module: nn.Module, data: Any, seed: int) -> None:
    """Scale each layer so that its outputs have variance 1, in the order of the forward pass.

    Outputs are linear in the weights, so one division is exact; the hook hands on the outputs of
    the scaled layer, so one pass serves all layers.
    """
    names = {layer: name for name, layer in module.named_modules() if isinstance(layer, AFFINE)}
    done = set()

    def scale(layer: Any, inputs: Any, outputs: Tensor) -> Tensor:
        if layer not in done:
            done.add(layer)
            std = outputs.std()
            if not (std > 0 and math.isfinite(std)):
                raise InvalidData(
                    f"init: `data` must make the outputs of layer `{names[layer]}` vary; their "
                    f"standard deviation is {float(std):g}. Give more rows, or other ones."
                )
            layer.weight.div_(std)
        return layer.forward(*inputs)  # type: ignore[no-any-return]

    modes = [(part, part.training) for part in module.modules()]
    hooks = [layer.register_forward_hook(scale) for layer in names]
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    try:
        with seed_scope(seed, device):
            module.eval()(*(data if isinstance(data, tuple) else (data,)))
    finally:
        for hook in hooks:
            hook.remove()
        for part, mode in modes:
            part.training = mode


def _warn(module: nn.Module, scheme: str, activation: str | None) -> None:
    kinds = {cls: name for name, cls in ACTIVATIONS.items()}
    layers = list(module.modules())
    used = [kinds[type(layer)] for layer in layers if type(layer) in kinds]
    found = {activation} if activation is not None else set(used)
    saturating, rectified = found & {"tanh", "sigmoid"}, used.count("relu")
    if scheme in ("zeros", "constant") and sum(isinstance(layer, AFFINE) for layer in layers) > 1:
        message = (
            f"init: `{scheme}` gives the units of a hidden layer the same weights, and they stay "
            "the same through training. Use a random scheme such as `glorot`."
        )
    elif scheme == "he" and saturating:
        message = (
            f"init: `he` is made for rectifiers; with {listing(sorted(saturating), 'and')} units "
            "saturate. Use `glorot`."
        )
    elif (
        scheme == "glorot"
        and activation is None
        and rectified >= DEEP
        and not any(isinstance(layer, NORMS) for layer in layers)
    ):
        message = (
            f"init: `glorot` halves the variance in each of the {rectified} rectified layers. Use "
            "`he`, or pass activation='relu'."
        )
    else:
        return
    warnings.warn(message, TrainingWarning, stacklevel=3)
