"""DistilBERT, XLM-R, mT5 and Marian: transformers' logits from their folders, and back."""

import json

import pytest
import torch
from tests.nets.language import peers
from torch import nn
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch
from castalia.nets.language import BART, BERT, T5, generate, load_pretrained, save_pretrained

IDS = torch.tensor([[5, 9, 2, 30, 11, 7], [8, 3, 3, 21, 12, 19]])
ANSWERS = torch.tensor([[0, 4, 33, 6], [0, 17, 9, 25]])
KEEP = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]).bool()


def close(ours, theirs):
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def there_and_back(model, tmp_path, kind):
    """Return our network of a model, and the model that transformers reads of our folder."""
    model.save_pretrained(tmp_path / "theirs")
    net = load_pretrained(tmp_path / "theirs")
    assert isinstance(net, kind)
    save_pretrained(net, tmp_path / "ours")
    config = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert config["model_type"] == model.config.model_type
    return net, type(model).from_pretrained(tmp_path / "ours").eval()


@pytest.mark.parametrize("changes", [{}, {"activation": "relu"}], ids=["gelu", "relu"])
def test_distilbert_is_bert_without_segments(tmp_path, changes):
    model = peers.distilbert(**changes)
    net, again = there_and_back(model, tmp_path, BERT)
    logits = model(IDS, attention_mask=KEEP.long()).logits[KEEP]
    close(net(IDS, keep=KEEP)[KEEP], logits)
    close(again(IDS, attention_mask=KEEP.long()).logits[KEEP], logits)
    kinds = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
    assert net(IDS, kinds).equal(net(IDS))


def test_the_body_of_distilbert_has_no_head(tmp_path):
    model = peers.distilbert("DistilBertModel")
    net, again = there_and_back(model, tmp_path, BERT)
    close(net.features(IDS), model(IDS).last_hidden_state)
    close(again(IDS).last_hidden_state, model(IDS).last_hidden_state)
    assert net.masked is None
    assert net.pooler is None


@pytest.mark.parametrize("kind", ["XLMRobertaForMaskedLM", "XLMRobertaModel"])
def test_xlm_r_is_roberta(tmp_path, kind):
    model = peers.xlm_roberta(kind)
    net, again = there_and_back(model, tmp_path, BERT)
    padded = torch.where(KEEP, IDS, 1)
    given = {"attention_mask": KEEP.long()}
    if kind.endswith("Model"):
        wanted = model(padded, **given).last_hidden_state[KEEP]
        close(net.features(padded, keep=KEEP)[KEEP], wanted)
    else:
        wanted = model(padded, **given).logits[KEEP]
        close(net(padded, keep=KEEP)[KEEP], wanted)
    close(again(padded, **given)[0][KEEP], wanted)


@pytest.mark.parametrize("tied", [True, False])
def test_mt5_is_t5_gated_and_not_scaled(tmp_path, tied):
    model = peers.mt5()
    if not tied:  # as the published weights are
        model.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().flip(0).clone())
    net, again = there_and_back(model, tmp_path, T5)
    assert (net.output is None) == tied
    given = {"attention_mask": KEEP.long(), "decoder_input_ids": ANSWERS}
    logits = model(input_ids=IDS, **given).logits
    close(net(IDS, ANSWERS, keep=KEEP), logits)
    close(again(input_ids=IDS, **given).logits, logits)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"scale_embedding": True, "activation_function": "swish"},
        {"d_model": 15, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    ],
    ids=["plain", "scaled", "odd width"],
)
def test_marian_is_bart_with_fixed_positions(tmp_path, changes):
    model = peers.marian(**changes)
    model.final_logits_bias.copy_(torch.linspace(-1, 1, 40))
    net, again = there_and_back(model, tmp_path, BART)
    given = {"attention_mask": KEEP.long(), "decoder_input_ids": ANSWERS}
    logits = model(input_ids=IDS, **given).logits
    close(net(IDS, ANSWERS, keep=KEEP), logits)
    close(again(input_ids=IDS, **given).logits, logits)


def test_greedy_translations_of_marian_are_those_of_transformers(tmp_path):
    model = peers.marian(scale_embedding=True)
    model.save_pretrained(tmp_path)
    settings = {"max_new_tokens": 8, "do_sample": False, "num_beams": 1}
    theirs = model.generate(IDS, attention_mask=KEEP.long(), **settings)[:, 1:]
    assert generate(load_pretrained(tmp_path), IDS, keep=KEEP, tokens=8, start=39).equal(theirs)


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"share_encoder_decoder_embeddings": False}, "`share_encoder_decoder_embeddings`"),
        ({"decoder_vocab_size": 41}, "`decoder_vocab_size` of a marian model must be `vocab_size`"),
        ({"normalize_before": True}, "`normalize_before`"),
    ],
)
def test_variants_of_marian_that_it_is_not_are_refused(tmp_path, fields, message):
    peers.marian().save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))
    with pytest.raises(CheckpointMismatch, match=message):
        load_pretrained(tmp_path)
