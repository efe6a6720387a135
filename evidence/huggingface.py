"""Hugging Face folders: random configurations have equal logits or are refused; edits are safe.

A folder is written by transformers, with weights that are all drawn at random; what transformers
reads from it is the reference. A load that is neither refused by an error of this library nor equal
to 1e-5 of the largest logit is wrong. Then every field of each ``config.json`` is edited, one at a
time, and everything that is not loaded or refused by an error of this library is counted.
"""

from __future__ import annotations

import json
import random
import resource
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from castalia.errors import CastaliaError
from castalia.nets.language import load_pretrained
from castalia.nets.language.huggingface.config_schema import SCHEMAS
from evidence.rows import print_table

CLOSE = 1e-5
VOCABULARY, TOKENS = 40, 7
ACTIVATIONS = (
    *("gelu", "relu", "gelu_new", "silu", "tanh", "gelu_fast", "gelu_python", "sigmoid"),
    *("quick_gelu", "mish", "relu6", "linear", "leaky_relu", "relu2"),
)


EDITS = (
    *(..., None, True, False, -1, 0, 1, 512, 10**6, 10**12, 10**400, 0.5, -0.5, float("nan")),
    *(float("inf"), "", "x", "10", [], [2], {}, {"a": 1}, [[[]]]),
)


def run(quick: bool = False) -> None:
    """Compare 200 configurations of each family."""
    rows = []
    for family in FAMILIES:
        found = Counter[str]()
        worst = 0.0
        for seed in range(20 if quick else 200):
            verdict, off = compare(family, seed)
            found[verdict] += 1
            worst = max(worst, off)
        counts = [str(found[verdict]) for verdict in ("equal", "refused", "wrong")]
        rows.append([family, *counts, f"{worst:.1e}"])
    columns = ["family", "equal", "refused", "wrong", "largest difference of those equal"]
    print_table("Hugging Face folders: random configurations", columns, rows)
    columns = ["family", "edits", "loaded", "refused", "other errors", "slowest", "memory"]
    rows = [edits(family, quick) for family in FAMILIES]
    print_table("Hugging Face folders: edited fields", columns, rows)


def edits(family: str, quick: bool = False) -> list[str]:
    """Return the row of a family: what one-field edits of its configuration did."""
    found, slowest = Counter[str](), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        seeds = (seed for seed in range(99) if compare(family, seed, reread=False)[0] == "equal")
        peer(family, random.Random(f"{family} {next(seeds)}"), Path(folder), reread=False)
        config = file.read_text()
        names = sorted({*json.loads(config), *SCHEMAS[family].fields, *SCHEMAS[family].aliases})
        for name in names[:: 10 if quick else 1]:
            for value in EDITS:
                file.write_text(edited(config, name, value))
                start = time.perf_counter()
                try:
                    load_pretrained(folder)
                    found["loaded"] += 1
                except CastaliaError:
                    found["refused"] += 1
                except Exception:
                    found["other"] += 1
                slowest = max(slowest, time.perf_counter() - start)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    counts = [str(found[key]) for key in ("loaded", "refused", "other")]
    return [family, f"{found.total():,}", *counts, f"{slowest:.2f} s", f"+{grown:.0f} MB"]


def compare(family: str, seed: int, *, reread: bool = True) -> tuple[str, float]:
    """Return ``"equal"``, ``"refused"`` or ``"wrong"``, and the difference relative to logits.

    The reference is what transformers reads from the folder, or else what it wrote.
    """
    draw = random.Random(f"{family} {seed}")
    with tempfile.TemporaryDirectory() as folder:
        model, given = peer(family, draw, Path(folder), reread=reread)
        try:
            net = load_pretrained(folder)
        except CastaliaError:
            return "refused", 0.0
    with torch.no_grad():
        ours, theirs = net(*given["ours"], **given["keep"]), model(**given["theirs"])
    logits = theirs.get("logits", theirs.get("prediction_logits"))
    real = given["real"] if len(given["ours"]) == 1 else torch.ones_like(logits[..., 0]).bool()
    off = (ours - logits)[real].abs().max() / logits[real].abs().max().clamp(min=1)
    return ("equal" if off <= CLOSE else "wrong"), float(off)


def peer(
    family: str, draw: random.Random, folder: Path, *, reread: bool = True
) -> tuple[Any, dict[str, Any]]:
    """Write a random model of a family, and return what transformers reads with inputs for it."""
    transformers = _transformers()
    kind, config = FAMILIES[family](draw)
    torch.manual_seed(draw.randrange(2**31))
    made = getattr(transformers, kind)(config)
    lively(made).save_pretrained(folder)
    if reread:
        made = getattr(transformers, kind).from_pretrained(folder).eval()
    return made, inputs(family, config)


def edited(config: str, name: str, value: Any) -> str:
    """Return the text of a ``config.json`` with one field changed, or left out for ``...``."""
    found = {**json.loads(config), name: value}
    return json.dumps({key: each for key, each in found.items() if each is not ...})


def inputs(family: str, config: Any) -> dict[str, Any]:
    """Return two rows, the second with padding behind it, as both libraries take them."""
    allowed = [i for i in range(VOCABULARY) if i != config.pad_token_id]
    ids = torch.tensor(allowed)[torch.randint(len(allowed), (2, TOKENS))]
    real = torch.tensor([[1] * TOKENS, [1] * (TOKENS - 2) + [0] * 2]).bool()
    if "roberta" in family:
        ids = torch.where(real, ids, config.pad_token_id)
    theirs = {"input_ids": ids, "attention_mask": real.long()}
    ours: tuple[Tensor, ...] = (ids,)
    if family in ("t5", "bart", "mt5", "marian"):
        answers = torch.tensor(allowed)[torch.randint(len(allowed), (2, 4))]
        ours, theirs = (ids, answers), {**theirs, "decoder_input_ids": answers}
    return {"ours": ours, "keep": {"keep": real}, "theirs": theirs, "real": real}


def lively(model: Any) -> Any:
    """Draw all weights: new models have biases of zero and gains of one."""
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if not tensor.requires_grad:  # fixed by an equation
                continue
            gain = tensor.ndim == 1 and name.endswith("weight")
            tensor.copy_(float(gain) + 0.25 * torch.randn(tensor.shape))
    return model.eval()


def _transformers() -> Any:
    import transformers

    warnings.filterwarnings("ignore", module="transformers")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _sizes(draw: random.Random) -> tuple[int, int, int]:
    heads = draw.choice([1, 2, 4])
    return heads * draw.choice([2, 3, 4, 8]), heads, draw.randint(1, 3)


def _gpt2(draw: random.Random) -> tuple[str, Any]:
    dim, heads, depth = _sizes(draw)
    config = _transformers().GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=draw.randint(8, 30),
        n_embd=dim,
        n_head=heads,
        n_layer=depth,
        n_inner=draw.choice([None, 5, 24]),
        activation_function=draw.choice(ACTIVATIONS),
        layer_norm_epsilon=draw.choice([1e-5, 1e-2]),
        scale_attn_weights=draw.random() < 0.8,
        scale_attn_by_inverse_layer_idx=draw.random() < 0.2,
        reorder_and_upcast_attn=draw.random() < 0.2,
        tie_word_embeddings=draw.random() < 0.6,
        bos_token_id=None,
        eos_token_id=None,
    )
    return "GPT2LMHeadModel", config


def _encoder(draw: random.Random) -> dict[str, Any]:
    dim, heads, depth = _sizes(draw)
    return {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": draw.randint(12, 30),
        "hidden_size": dim,
        "num_attention_heads": heads,
        "num_hidden_layers": depth,
        "intermediate_size": draw.choice([5, 24]),
        "type_vocab_size": draw.choice([1, 2, 3]),
        "hidden_act": draw.choice(ACTIVATIONS),
        "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-2]),
        "is_decoder": draw.random() < 0.1,
        "tie_word_embeddings": draw.random() < 0.8,
    }


def _bert(draw: random.Random) -> tuple[str, Any]:
    config = _transformers().BertConfig(pad_token_id=draw.choice([0, 1, 3]), **_encoder(draw))
    return draw.choice(["BertForMaskedLM", "BertForPreTraining"]), config


def _roberta(draw: random.Random) -> tuple[str, Any]:
    config = _transformers().RobertaConfig(pad_token_id=draw.choice([0, 1, 2, 4]), **_encoder(draw))
    return "RobertaForMaskedLM", config


def _t5(draw: random.Random) -> tuple[str, Any]:
    dim, heads, depth = _sizes(draw)
    gated = draw.choice(["", "gated-"])
    config = _transformers().T5Config(
        vocab_size=VOCABULARY,
        d_model=dim,
        d_kv=draw.choice([2, 3, 5]),
        d_ff=draw.choice([5, 24]),
        num_layers=depth,
        num_decoder_layers=draw.choice([None, 1, 2]),
        num_heads=heads,
        relative_attention_num_buckets=draw.choice([4, 6, 8, 32]),
        relative_attention_max_distance=draw.choice([5, 10, 128]),
        feed_forward_proj=gated + draw.choice(ACTIVATIONS),
        layer_norm_epsilon=draw.choice([1e-6, 1e-2]),
        tie_word_embeddings=draw.random() < 0.6,
        decoder_start_token_id=0,
    )
    return "T5ForConditionalGeneration", config


def _bart(draw: random.Random) -> tuple[str, Any]:
    dim, heads, depth = _sizes(draw)
    other = draw.random() < 0.1
    hidden = draw.choice([5, 24])
    config = _transformers().BartConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=draw.randint(8, 30),
        d_model=dim,
        encoder_layers=depth,
        decoder_layers=draw.randint(1, 3),
        encoder_attention_heads=heads,
        decoder_attention_heads=1 if other else heads,
        encoder_ffn_dim=hidden,
        decoder_ffn_dim=hidden + 1 if draw.random() < 0.1 else hidden,
        activation_function=draw.choice(ACTIVATIONS),
        scale_embedding=draw.random() < 0.5,
        tie_word_embeddings=draw.random() < 0.8,
        pad_token_id=draw.choice([0, 1, 3]),
        forced_eos_token_id=None,
    )
    return "BartForConditionalGeneration", config


def _llama(draw: random.Random) -> dict[str, Any]:
    heads = draw.choice([2, 4])
    scaling = {
        "linear": {"factor": 2.0},
        "llama3": {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": draw.choice([2.0, 4.0]),
            "original_max_position_embeddings": draw.choice([4, 16]),
        },
        "yarn": {"factor": 2.0},
    }
    kind = draw.choice(["default", "default", *scaling])
    rotary = {"rope_type": kind, "rope_theta": draw.choice([10.0, 1e4]), **scaling.get(kind, {})}
    return {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": draw.randint(8, 30),
        "hidden_size": heads * draw.choice([2, 3, 4, 6]),
        "num_attention_heads": heads,
        "num_key_value_heads": draw.choice([1, 2, heads]),
        "num_hidden_layers": draw.randint(1, 3),
        "intermediate_size": draw.choice([5, 24]),
        "hidden_act": draw.choice(["silu", *ACTIVATIONS]),
        "rms_norm_eps": draw.choice([1e-6, 1e-2]),
        "rope_parameters": rotary,
        "tie_word_embeddings": draw.random() < 0.5,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _plain_llama(draw: random.Random) -> tuple[str, Any]:
    biases = {"attention_bias": draw.random() < 0.3, "mlp_bias": draw.random() < 0.3}
    width = {"head_dim": draw.choice([None, 2, 6])}
    return "LlamaForCausalLM", _transformers().LlamaConfig(**_llama(draw), **biases, **width)


def _mistral(draw: random.Random) -> tuple[str, Any]:
    window = {"sliding_window": draw.choice([None, 1, 3, 50])}
    return "MistralForCausalLM", _transformers().MistralConfig(**_llama(draw), **window)


def _qwen2(draw: random.Random) -> tuple[str, Any]:
    window = {
        "use_sliding_window": draw.random() < 0.5,
        "sliding_window": draw.choice([2, 4]),
        "max_window_layers": draw.choice([0, 1, 9]),
    }
    return "Qwen2ForCausalLM", _transformers().Qwen2Config(**_llama(draw), **window)


def _distilbert(draw: random.Random) -> tuple[str, Any]:
    dim, heads, depth = _sizes(draw)
    config = _transformers().DistilBertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=draw.randint(12, 30),
        dim=dim,
        n_heads=heads,
        n_layers=depth,
        hidden_dim=draw.choice([5, 24]),
        activation=draw.choice(ACTIVATIONS),
        sinusoidal_pos_embds=draw.random() < 0.2,
        tie_word_embeddings=draw.random() < 0.8,
        pad_token_id=draw.choice([0, 3]),
    )
    return "DistilBertForMaskedLM", config


def _xlm_roberta(draw: random.Random) -> tuple[str, Any]:
    given = {**_encoder(draw), "pad_token_id": draw.choice([0, 1, 2, 4])}
    return "XLMRobertaForMaskedLM", _transformers().XLMRobertaConfig(**given)


def _mt5(draw: random.Random) -> tuple[str, Any]:
    _, like = _t5(draw)
    names = ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers")
    more = ("num_heads", "relative_attention_num_buckets", "relative_attention_max_distance")
    kept = (*names, *more, "feed_forward_proj", "layer_norm_epsilon", "decoder_start_token_id")
    config = _transformers().MT5Config(**{name: getattr(like, name) for name in kept})
    return "MT5ForConditionalGeneration", config


def _marian(draw: random.Random) -> tuple[str, Any]:
    _, like = _bart(draw)
    names = ("vocab_size", "max_position_embeddings", "d_model", "activation_function")
    kept = (*names, "scale_embedding", "tie_word_embeddings", "pad_token_id")
    halves = [f"{h}_{n}" for h in ("encoder", "decoder") for n in ("layers", "ffn_dim")]
    halves += [f"{half}_attention_heads" for half in ("encoder", "decoder")]
    given = {name: getattr(like, name) for name in (*kept, *halves)}
    shared = {"share_encoder_decoder_embeddings": draw.random() < 0.8}
    config = _transformers().MarianConfig(**given, **shared, forced_eos_token_id=None)
    return "MarianMTModel", config


FAMILIES = {
    "gpt2": _gpt2,
    "bert": _bert,
    "distilbert": _distilbert,
    "roberta": _roberta,
    "xlm-roberta": _xlm_roberta,
    "t5": _t5,
    "mt5": _mt5,
    "bart": _bart,
    "marian": _marian,
    "llama": _plain_llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
}
