"""Networks equal those of transformers, both ways, and folders that do not fit are told so."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.nets.language import peers
from torch.testing import assert_close

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidData, InvalidParameter
from castalia.nets.language import (
    BART,
    BERT,
    GPT,
    T5,
    RoBERTa,
    Transformer,
    generate,
    load_pretrained,
    save_pretrained,
)

IDS = torch.tensor([[5, 9, 2, 30, 11, 7], [8, 3, 3, 21, 12, 19]])
ANSWERS = torch.tensor([[0, 4, 33, 6], [0, 17, 9, 25]])
KEEP = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]]).bool()


def close(ours, theirs):
    assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.fixture
def saved(tmp_path):
    def save(model):
        model.save_pretrained(tmp_path / "theirs")
        return tmp_path / "theirs"

    return save


# ---- their folders into our networks ----


@pytest.mark.parametrize("changes", [{}, {"n_inner": 20}, {"activation_function": "relu"}])
def test_the_logits_of_gpt2_are_those_of_transformers(saved, changes):
    model = peers.gpt2(**changes)
    net = load_pretrained(saved(model))
    assert isinstance(net, GPT)
    close(net(IDS), model(IDS).logits)


def test_padding_on_the_right_of_gpt2_changes_no_real_logit(saved):
    model = peers.gpt2()
    net = load_pretrained(saved(model))
    close(net(IDS, keep=KEEP)[KEEP], model(IDS, attention_mask=KEEP.long()).logits[KEEP])


def test_the_heads_of_bert_are_those_of_transformers(saved):
    model = peers.bert()
    net = load_pretrained(saved(model))
    kinds = torch.tensor([[0, 0, 0, 1, 1, 1]] * 2)
    found = model(IDS, token_type_ids=kinds, attention_mask=KEEP.long())
    h = net.features(IDS, kinds, keep=KEEP)
    close(net(IDS, kinds, keep=KEEP)[KEEP], found.prediction_logits[KEEP])
    close(net.judge(h), found.seq_relationship_logits)


def test_every_layer_of_bert_is_that_of_transformers(saved):
    model = peers.bert()
    found = model(IDS, output_hidden_states=True).hidden_states
    close(torch.stack(load_pretrained(saved(model)).layers(IDS)), torch.stack(found))


def test_a_bert_saved_without_heads_has_none_and_equal_features(saved):
    model = peers.bert("BertModel")
    net = load_pretrained(saved(model))
    found = model(IDS)
    close(net.features(IDS), found.last_hidden_state)
    close(net.pool(net.features(IDS)), found.pooler_output)
    assert net.masked is None
    assert net.next_sentence is None


def test_the_logits_of_roberta_are_those_of_transformers(saved):
    model = peers.roberta()
    net = load_pretrained(saved(model))
    close(net(IDS), model(IDS).logits)
    padded = torch.where(KEEP, IDS, 1)
    close(net(padded, keep=KEEP)[KEEP], model(padded, attention_mask=KEEP.long()).logits[KEEP])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"feed_forward_proj": "gated-gelu"},
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
    ],
    ids=["1.0", "gated", "1.1"],
)
def test_the_logits_of_t5_are_those_of_transformers(saved, changes):
    model = peers.t5(**changes)
    net = load_pretrained(saved(model))
    assert isinstance(net, T5)
    found = model(input_ids=IDS, attention_mask=KEEP.long(), decoder_input_ids=ANSWERS).logits
    close(net(IDS, ANSWERS, keep=KEEP), found)


@pytest.mark.parametrize("changes", [{}, {"scale_embedding": True}], ids=["plain", "scaled"])
def test_the_logits_of_bart_are_those_of_transformers(saved, changes):
    model = peers.bart(**changes)
    net = load_pretrained(saved(model))
    assert isinstance(net, BART)
    found = model(input_ids=IDS, attention_mask=KEEP.long(), decoder_input_ids=ANSWERS).logits
    close(net(IDS, ANSWERS, keep=KEEP), found)


# ---- generation ----


def test_greedy_gpt2_writes_what_transformers_writes(saved):
    model = peers.gpt2()
    found = model.generate(IDS, max_new_tokens=12, do_sample=False, pad_token_id=0)
    net = load_pretrained(saved(model))
    assert generate(net, IDS, tokens=12).equal(found[:, IDS.shape[1] :])


def test_greedy_gpt2_with_prompts_of_two_lengths_writes_what_transformers_writes(saved):
    model = peers.gpt2()
    left = KEEP.flip(1)
    found = model.generate(
        IDS, attention_mask=left.long(), max_new_tokens=12, do_sample=False, pad_token_id=0
    )
    prompts = [row[real].tolist() for row, real in zip(IDS, left, strict=True)]
    assert generate(load_pretrained(saved(model)), prompts, tokens=12).equal(found[:, 6:])


def test_a_repetition_penalty_is_that_of_transformers(saved):
    model = peers.gpt2()
    settings = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
    found = model.generate(IDS, repetition_penalty=1.7, **settings)
    net = load_pretrained(saved(model))
    written = generate(net, IDS, tokens=12, repetition_penalty=1.7)
    assert written.equal(found[:, 6:])
    assert not written.equal(generate(net, IDS, tokens=12))


@pytest.mark.parametrize("kind, start", [("t5", 0), ("bart", 2)])
def test_greedy_answers_are_those_of_transformers(saved, kind, start):
    model = getattr(peers, kind)()
    found = torch.full((2, 1), start)
    for _ in range(12):  # their own `generate` fails where the halves differ in depth
        given = {"attention_mask": KEEP.long(), "decoder_input_ids": found, "use_cache": False}
        with torch.no_grad():
            best = model(input_ids=IDS, **given).logits[:, -1].argmax(-1)
        found = torch.cat([found, best[:, None]], dim=1)
    net = load_pretrained(saved(model))
    assert generate(net, IDS, keep=KEEP, start=start, tokens=12).equal(found[:, 1:])


# ---- our networks into their folders ----

SMALL = {"context": 24, "dim": 16, "depth": 2, "heads": 4, "hidden": 24}
OURS = {
    "gpt": (lambda: GPT(40, **SMALL), "GPT2LMHeadModel"),
    "gpt untied": (lambda: GPT(40, tied=False, **SMALL), "GPT2LMHeadModel"),
    "bert": (lambda: BERT(40, **SMALL), "BertForPreTraining"),
    "bert masked": (
        lambda: BERT(40, next_sentence=False, pooler=False, **SMALL),
        "BertForMaskedLM",
    ),
    "roberta": (lambda: RoBERTa(40, **SMALL), "RobertaForMaskedLM"),
}


@pytest.mark.parametrize("name", OURS)
def test_transformers_reads_what_we_write(tmp_path, name):
    import transformers

    build, kind = OURS[name]
    net = peers.lively(build())
    save_pretrained(net, tmp_path)
    model = getattr(transformers, kind).from_pretrained(tmp_path).eval()
    found = model(IDS)
    close(net(IDS), found.prediction_logits if "PreTraining" in kind else found.logits)
    close(load_pretrained(tmp_path)(IDS), net(IDS))


@pytest.mark.parametrize("gated, tied", [(False, True), (True, True), (True, False)])
def test_transformers_reads_the_t5_we_write(tmp_path, gated, tied):
    from transformers import T5ForConditionalGeneration

    activation = "gelu_tanh" if gated else "relu"
    sizes = {"dim": 16, "depth": 2, "heads": 4, "head_dim": 6, "hidden": 24}
    net = peers.lively(T5(40, activation=activation, gated=gated, tied=tied, **sizes))
    save_pretrained(net, tmp_path)
    model = T5ForConditionalGeneration.from_pretrained(tmp_path).eval()
    close(net(IDS, ANSWERS), model(input_ids=IDS, decoder_input_ids=ANSWERS).logits)
    close(load_pretrained(tmp_path)(IDS, ANSWERS), net(IDS, ANSWERS))


def test_transformers_reads_the_bart_we_write(tmp_path):
    from transformers import BartForConditionalGeneration

    net = peers.lively(BART(40, **SMALL))
    save_pretrained(net, tmp_path)
    model = BartForConditionalGeneration.from_pretrained(tmp_path).eval()
    close(net(IDS, ANSWERS), model(input_ids=IDS, decoder_input_ids=ANSWERS).logits)


def test_shards_are_written_and_read_by_both(tmp_path):
    from transformers import GPT2LMHeadModel

    net = peers.lively(GPT(40, **SMALL))
    save_pretrained(net, tmp_path, shard_bytes=5000)
    assert len(list(tmp_path.glob("model-*-of-*.safetensors"))) > 2
    close(load_pretrained(tmp_path)(IDS), net(IDS))
    close(GPT2LMHeadModel.from_pretrained(tmp_path).eval()(IDS).logits, net(IDS))


def test_what_was_loaded_can_be_trained(saved):
    net = load_pretrained(saved(peers.gpt2()))
    net(IDS).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_another_network_is_not_written(tmp_path):
    with pytest.raises(InvalidParameter, match="got Transformer that is none of them"):
        save_pretrained(Transformer(40, dim=8, depth=1, heads=2), tmp_path)
    with pytest.raises(InvalidParameter, match="got GPT"):
        save_pretrained(GPT(40, rotary=True, **SMALL), tmp_path)


# ---- folders that do not fit ----


@pytest.fixture
def folder(saved):
    return saved(peers.gpt2())


def change_config(folder, **changes):
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def change_weights(folder, **changes):
    weights = load_file(folder / "model.safetensors")
    weights.update(changes)
    save_file({k: v for k, v in weights.items() if v is not None}, folder / "model.safetensors")


def test_names_of_published_gpt2_weights_are_known(folder):
    weights = load_file(folder / "model.safetensors")
    before = load_pretrained(folder)(IDS)
    bare = {name.removeprefix("transformer."): tensor for name, tensor in weights.items()}
    bare["h.0.attn.bias"] = torch.ones(1, 1, 24, 24)
    bare["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    save_file(bare, folder / "model.safetensors")
    assert load_pretrained(folder)(IDS).equal(before)


def test_old_names_of_norms_in_bert_are_known(saved):
    folder = saved(peers.bert())
    before = load_pretrained(folder)(IDS)
    weights = load_file(folder / "model.safetensors")
    old = {
        n.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): t
        for n, t in weights.items()
    }
    save_file(old, folder / "model.safetensors")
    assert load_pretrained(folder)(IDS).equal(before)


def test_a_missing_shard_is_named(tmp_path):
    save_pretrained(GPT(40, **SMALL), tmp_path, shard_bytes=5000)
    gone = sorted(tmp_path.glob("model-*"))[1]
    gone.unlink()
    with pytest.raises(InvalidData, match=f"`{gone.name}` is not there"):
        load_pretrained(tmp_path)


def test_extra_tensors_are_named_and_can_be_ignored(folder):
    before = load_pretrained(folder)(IDS)
    change_weights(folder, **{"score.weight": torch.ones(2, 16)})
    with pytest.raises(CheckpointMismatch, match=r"`score.weight` have no place.*extra='ignore'"):
        load_pretrained(folder)
    assert load_pretrained(folder, extra="ignore")(IDS).equal(before)


def test_missing_tensors_are_named(folder):
    change_weights(folder, **{"transformer.h.1.ln_2.bias": None})
    with pytest.raises(CheckpointMismatch, match=r"`transformer.h.1.ln_2.bias` must be there"):
        load_pretrained(folder, extra="ignore")


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e5m2])
def test_tensors_that_hold_no_real_numbers_are_named(folder, dtype):
    table = load_file(folder / "model.safetensors")["transformer.wte.weight"].to(dtype)
    change_weights(folder, **{"transformer.wte.weight": table})
    with pytest.raises(CheckpointMismatch, match=r"wte.weight` must hold real numbers"):
        load_pretrained(folder)


def test_tensors_of_several_types_all_get_the_widest(folder):
    before = load_pretrained(folder)
    table = load_file(folder / "model.safetensors")["transformer.ln_f.bias"].half()
    change_weights(folder, **{"transformer.ln_f.bias": table})
    net = load_pretrained(folder)
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    assert_close(net(IDS), before(IDS), atol=1e-2, rtol=1e-2)


def test_a_pickle_is_refused_with_what_to_do(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointMismatch, match=r"`pytorch_model.bin`, a pickle.*save_pretrained"):
        load_pretrained(folder)


def test_another_kind_of_model_is_named(folder):
    change_config(folder, model_type="gpt_neo")
    with pytest.raises(CheckpointMismatch, match=r"must be `gpt2`, `bert`.*got 'gpt_neo'"):
        load_pretrained(folder)


def test_weights_of_another_size_than_the_configuration_are_named(folder):
    change_config(folder, vocab_size=41)
    with pytest.raises(CheckpointMismatch, match=r"wte.weight` must give the shape \(41, 16\)"):
        load_pretrained(folder)


def test_a_configuration_of_another_kind_than_the_weights_is_told(saved, tmp_path):
    folder = saved(peers.gpt2())
    peers.bert().config.save_pretrained(folder)
    with pytest.raises(CheckpointMismatch, match=r"do not fit BERT: `bert.embeddings"):
        load_pretrained(folder)


def test_a_tokenizer_with_more_tokens_than_the_weights_is_told(folder):
    vocabulary = {f"w{i}": i for i in range(41)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    with pytest.raises(CheckpointMismatch, match=r"at most 40 tokens.*got 41"):
        load_pretrained(folder)


def test_a_variant_we_do_not_compute_is_refused(folder):
    change_config(folder, scale_attn_by_inverse_layer_idx=True)
    with pytest.raises(CheckpointMismatch, match="`scale_attn_by_inverse_layer_idx`.*got True"):
        load_pretrained(folder)


def test_a_cut_file_is_told(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DamagedFile, match="whole safetensors file"):
        load_pretrained(folder)


def test_folders_without_their_files_are_told(folder, tmp_path):
    with pytest.raises(InvalidData, match="must be a folder"):
        load_pretrained(tmp_path / "nowhere")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InvalidData, match=r"must hold `model.safetensors`.*it has `config.json`"):
        load_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(DamagedFile, match="must be JSON"):
        load_pretrained(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InvalidData, match=r"must hold `config.json`"):
        load_pretrained(folder)


def test_a_shard_outside_the_folder_is_not_read(tmp_path):
    save_pretrained(GPT(40, **SMALL), tmp_path / "a", shard_bytes=5000)
    index = tmp_path / "a" / "model.safetensors.index.json"
    index.write_text(index.read_text().replace('"model-00001', '"../model-00001'))
    first = sorted((tmp_path / "a").glob("model-00001*"))[0]
    first.rename(tmp_path / first.name)
    with pytest.raises(InvalidData, match=f"`{first.name}` is not there"):
        load_pretrained(tmp_path / "a")
