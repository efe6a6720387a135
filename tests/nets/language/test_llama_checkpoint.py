"""Folders of Llama, Mistral and Qwen2: logits and greedy tokens of transformers, both ways."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.nets.language import peers
from tests.nets.language.test_llama import LLAMA3
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch, InvalidParameter
from castalia.nets.language import Llama, generate, load_pretrained, save_pretrained

IDS = torch.tensor([[5, 9, 2, 30, 11, 7, 1, 4, 8], [8, 3, 3, 21, 12, 19, 2, 2, 6]])
VARIANTS = {
    "plain": ("Llama", {}),
    "biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "tied": ("Llama", {"tie_word_embeddings": True, "num_key_value_heads": 4}),
    "one head of keys": ("Llama", {"num_key_value_heads": 1, "head_dim": 6}),
    "other numbers": ("Llama", {"rms_norm_eps": 1e-3, "hidden_act": "gelu"}),
    "theta": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    "linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}),
    "llama3": ("Llama", {"rope_parameters": {**LLAMA3, "rope_theta": 500.0}}),
    "mistral": ("Mistral", {"sliding_window": None}),
    "window": ("Mistral", {"sliding_window": 4}),
    "qwen2": ("Qwen2", {"tie_word_embeddings": True}),
    "late window": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
}


def close(ours, theirs):
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_are_those_of_transformers_both_ways(variant, tmp_path):
    from transformers import AutoModelForCausalLM

    kind, changes = VARIANTS[variant]
    model = peers.llama(kind, **changes)
    model.save_pretrained(tmp_path / "theirs")
    net = load_pretrained(tmp_path / "theirs")
    assert isinstance(net, Llama)
    logits = model(IDS).logits
    close(net(IDS), logits)
    save_pretrained(net, tmp_path / "ours")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "ours").eval()
    close(again(IDS).logits, logits)


@pytest.mark.parametrize("variant", ["plain", "window", "late window"])
def test_greedy_tokens_are_those_of_transformers(variant, tmp_path):
    kind, changes = VARIANTS[variant]
    model = peers.llama(kind, **changes)
    model.save_pretrained(tmp_path)
    keep = torch.ones_like(IDS)
    keep[0, :3] = 0
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    theirs = model.generate(IDS, attention_mask=keep, **settings)[:, IDS.shape[1] :]
    prompts = [IDS[0, 3:].tolist(), IDS[1].tolist()]
    assert generate(load_pretrained(tmp_path), prompts, tokens=12).equal(theirs)


def test_shards_are_read_and_written(tmp_path):
    model = peers.llama()
    model.save_pretrained(tmp_path / "theirs", max_shard_size="5KB")
    assert len(list((tmp_path / "theirs").glob("*.safetensors"))) > 1
    net = load_pretrained(tmp_path / "theirs")
    close(net(IDS), model(IDS).logits)
    save_pretrained(net, tmp_path / "ours", shard_bytes=5000)
    assert_close(load_pretrained(tmp_path / "ours")(IDS), net(IDS))


def test_names_of_older_folders_are_read(tmp_path):
    scaling = {"rope_type": "linear", "factor": 2.0}
    model = peers.llama(rope_parameters={**scaling, "rope_theta": 50.0})
    model.save_pretrained(tmp_path)
    change(
        tmp_path,
        rope_parameters=None,
        rope_theta=50.0,
        rope_scaling={"type": "linear", "factor": 2.0},
    )
    close(load_pretrained(tmp_path)(IDS), model(IDS).logits)


def change(folder, **fields):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **fields}))


@pytest.mark.parametrize(
    "kind, fields, message",
    [
        ("Llama", {"rope_parameters": {"rope_type": "yarn"}}, "`rope_type` .* got 'yarn'"),
        ("Llama", {"rope_parameters": {"rope_type": "linear"}}, "`factor` .* above 0; got None"),
        ("Llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "be 1.0; got 0.5"),
        ("Llama", {"rope_parameters": {"rope_theta": "x"}}, "`rope_theta` .* got 'x'"),
        ("Llama", {"rope_parameters": {**LLAMA3, "low_freq_factor": 4.0}}, "high_freq_factor"),
        ("Llama", {"num_key_value_heads": 3}, "multiple of `num_key_value_heads`; got 4 and 3"),
        ("Llama", {"head_dim": 5}, "`head_dim` of a llama model must be even; got 5"),
        ("Llama", {"hidden_act": "quick_gelu"}, "`hidden_act` .* got 'quick_gelu'"),
        ("Llama", {"tie_word_embeddings": True}, "lm_head.weight.* no place"),
        ("Qwen2", {"layer_types": ["sliding_attention"] * 3}, "`layer_types` of a qwen2"),
        ("Mistral", {"sliding_window": 0}, "`sliding_window` of a mistral"),
    ],
)
def test_what_it_does_not_do_is_refused_by_name(kind, fields, message, tmp_path):
    peers.llama(kind).save_pretrained(tmp_path)
    change(tmp_path, **fields)
    with pytest.raises(CheckpointMismatch, match=message):
        load_pretrained(tmp_path)


def test_a_lost_output_layer_is_not_replaced_by_the_table(tmp_path):
    peers.llama().save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    weights = load_file(file)
    del weights["lm_head.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(CheckpointMismatch, match="must hold `lm_head.weight`"):
        load_pretrained(tmp_path)


def test_a_network_that_none_of_them_is_cannot_be_written(tmp_path):
    with pytest.raises(InvalidParameter, match="save_pretrained: `net` must be"):
        save_pretrained(Llama(40, dim=16, heads=4, depth=1, biases=("out",)), tmp_path)
