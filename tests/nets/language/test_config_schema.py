"""Configurations of Hugging Face folders: equal logits or refused, and only errors of our own."""

import json
import time

import pytest
import torch
from evidence.huggingface import FAMILIES, compare, edited
from tests.nets.language import peers

from castalia.errors import CastaliaError, CheckpointMismatch
from castalia.nets.language import load_pretrained
from castalia.nets.language.huggingface.config_schema import SCHEMAS, checked_config

WRONG = [-1, 10**12, 10**400, float("nan"), "x", [2], {"a": 1}]  # evidence/huggingface.py has more


@pytest.mark.parametrize("family", FAMILIES)
def test_random_configurations_have_equal_logits_or_are_refused(family):
    found = [compare(family, seed, reread=False) for seed in range(6)]
    verdicts = {verdict for verdict, _ in found}
    assert "equal" in verdicts
    assert "wrong" not in verdicts, found


@pytest.mark.parametrize("family", FAMILIES)
def test_an_edited_field_loads_or_gives_an_error_of_our_own_at_once(family, tmp_path):
    getattr(peers, family.replace("-", "_"))().save_pretrained(tmp_path)
    whole, refused = (tmp_path / "config.json").read_text(), 0
    for name in ("model_type", *SCHEMAS[family].fields, *SCHEMAS[family].aliases):
        for value in WRONG:
            (tmp_path / "config.json").write_text(edited(whole, name, value))
            start = time.perf_counter()
            try:
                load_pretrained(tmp_path)
            except CastaliaError:
                refused += 1
            assert time.perf_counter() - start < 10
    assert refused > 6 * len(SCHEMAS[family].fields)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, f'{{"n_layer": {"9" * 5000}}}', "[]", "", "\x00", "nul"],
    ids=["lists", "objects", "digits", "list", "nothing", "zero", "word"],
)
def test_a_configuration_that_is_no_json_object_is_refused(tmp_path, text):
    peers.gpt2().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CastaliaError, match="config.json"):
        load_pretrained(tmp_path)


def test_another_name_of_a_field_is_read_and_must_not_contradict_it():
    config = peers.gpt2().config.to_dict()
    renamed = {**config, "num_hidden_layers": config["n_layer"]}
    del renamed["n_layer"]
    assert checked_config(renamed, "gpt2")["n_layer"] == 2
    with pytest.raises(CheckpointMismatch, match="`num_hidden_layers` and `n_layer`.*got 3 and 2"):
        checked_config({**config, "num_hidden_layers": 3}, "gpt2")


def test_more_blocks_than_tensors_are_refused_before_any_is_built(tmp_path):
    peers.gpt2().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "n_layer": 500}))
    with pytest.raises(CheckpointMismatch, match="`n_layer`.*number of its blocks; got 500 with"):
        load_pretrained(tmp_path)


def test_weights_that_are_not_shared_as_ours_are_refused(tmp_path):
    import transformers

    config = transformers.BertConfig(
        max_position_embeddings=24, tie_word_embeddings=False, **peers.SIZES
    )
    peers.lively(transformers.BertForMaskedLM(config)).save_pretrained(tmp_path)
    with pytest.raises(CheckpointMismatch, match=r"`cls.predictions.decoder.weight` must be equal"):
        load_pretrained(tmp_path)


@pytest.mark.parametrize("pad", [0, 3])
def test_positions_of_roberta_begin_behind_its_padding(tmp_path, pad):
    import transformers

    config = transformers.RobertaConfig(
        max_position_embeddings=26, type_vocab_size=1, pad_token_id=pad, **peers.SIZES
    )
    model = peers.lively(transformers.RobertaForMaskedLM(config))
    model.save_pretrained(tmp_path)
    net, ids = load_pretrained(tmp_path), torch.tensor([[5, 9, 2, 30]])
    assert (net.offset, net.context) == (pad + 1, 25 - pad)
    torch.testing.assert_close(net(ids), model(ids).logits, atol=1e-5, rtol=1e-5)
