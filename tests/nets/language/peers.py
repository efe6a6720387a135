"""Small random models of transformers, with weights large enough that a mistake shows."""

import torch

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "vocab_size": 40,
    "hidden_dropout_prob": 0.1,
}


def lively(model, seed=0):
    """Draw all weights anew: fresh models have biases of zero and gains of one."""
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            gain = 1.0 if "norm" in name.lower() or ".ln_" in name else 0.0
            if tensor.ndim == 1 and name.endswith("weight"):
                gain = 1.0
            tensor.copy_(gain + 0.25 * torch.randn(tensor.shape, generator=source))
    return model.eval()


def gpt2(**changes):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=40,
        n_positions=24,
        n_embd=16,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
        **changes,
    )
    return lively(GPT2LMHeadModel(config))


def bert(kind="BertForPreTraining"):
    import transformers

    config = transformers.BertConfig(max_position_embeddings=24, **SIZES)
    return lively(getattr(transformers, kind)(config))


def roberta(kind="RobertaForMaskedLM"):
    import transformers

    sizes = {"max_position_embeddings": 26, "type_vocab_size": 1, "pad_token_id": 1}
    return lively(getattr(transformers, kind)(transformers.RobertaConfig(**sizes, **SIZES)))


def t5(**changes):
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {
        "vocab_size": 40,
        "d_model": 16,
        "d_kv": 6,
        "d_ff": 24,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "relative_attention_num_buckets": 8,
        "relative_attention_max_distance": 10,
        "decoder_start_token_id": 0,
        "eos_token_id": None,
    }
    return lively(T5ForConditionalGeneration(T5Config(**{**sizes, **changes})))


def bart(**changes):
    from transformers import BartConfig, BartForConditionalGeneration

    sizes = {
        "vocab_size": 40,
        "max_position_embeddings": 24,
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 24,
        "decoder_ffn_dim": 24,
        "forced_eos_token_id": None,
    }
    return lively(BartForConditionalGeneration(BartConfig(**{**sizes, **changes})))


LLAMA = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "bos_token_id": None,
    "eos_token_id": None,
}


def llama(kind="Llama", **changes):
    """Return a small Llama, Mistral or Qwen2."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(**{**LLAMA, **changes})
    return lively(getattr(transformers, f"{kind}ForCausalLM")(config))


def mistral():
    return llama("Mistral", sliding_window=4)


def qwen2():
    return llama("Qwen2")


def distilbert(kind="DistilBertForMaskedLM", **changes):
    import transformers

    sizes = {"vocab_size": 40, "max_position_embeddings": 24, "dim": 16, "n_layers": 2}
    sizes |= {"n_heads": 4, "hidden_dim": 24, **changes}
    return lively(getattr(transformers, kind)(transformers.DistilBertConfig(**sizes)))


def xlm_roberta(kind="XLMRobertaForMaskedLM"):
    import transformers

    sizes = {"max_position_embeddings": 26, "type_vocab_size": 1, "pad_token_id": 1}
    return lively(getattr(transformers, kind)(transformers.XLMRobertaConfig(**sizes, **SIZES)))


def mt5():
    from transformers import MT5Config, MT5ForConditionalGeneration

    sizes = {"vocab_size": 40, "d_model": 16, "d_kv": 6, "d_ff": 24, "num_layers": 2}
    sizes |= {"num_heads": 4, "relative_attention_num_buckets": 8, "eos_token_id": None}
    config = MT5Config(**sizes, relative_attention_max_distance=10)
    return lively(MT5ForConditionalGeneration(config))


def marian(**changes):
    from transformers import MarianConfig, MarianMTModel

    sizes = {"vocab_size": 40, "max_position_embeddings": 24, "d_model": 16}
    for half in ("encoder", "decoder"):
        sizes |= {f"{half}_layers": 2, f"{half}_attention_heads": 4, f"{half}_ffn_dim": 24}
    special = {"pad_token_id": 39, "decoder_start_token_id": 39, "forced_eos_token_id": None}
    config = MarianConfig(**{**sizes, **special, "eos_token_id": None, **changes})
    model = MarianMTModel(config)
    tables = [
        half.embed_positions.weight.clone() for half in (model.model.encoder, model.model.decoder)
    ]
    lively(model)
    for half, table in zip((model.model.encoder, model.model.decoder), tables, strict=True):
        half.embed_positions.weight.data.copy_(table)  # an equation's, not weights
    return model
