"""``castalia generate``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from castalia.cli.fit_options import ContenderName
from castalia.cli.output import AsJson, Output
from castalia.errors import InvalidData, InvalidParameter

__all__ = ["generate"]


def generate(
    model: Annotated[
        str,
        typer.Argument(help="Folder of a run, a saved model, or of a GPT-2 or Llama."),
    ],
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="How the text begins.")] = "",
    tokens: Annotated[int, typer.Option(help="Most tokens to add.")] = 200,
    temperature: Annotated[
        float, typer.Option(help="0 takes the most probable token; above, tokens are drawn.")
    ] = 0.8,
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="Draw among the k most probable tokens.")
    ] = None,
    top_p: Annotated[
        float, typer.Option("--top-p", help="Draw among the fewest that hold this probability.")
    ] = 1.0,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1, tokens that occurred become less probable.")
    ] = 1.0,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", help="Text that ends the writing; repeatable.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-n", help="How many texts.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Seed of the draws [random].")] = None,
    name: ContenderName = None,
    as_json: AsJson = False,
) -> None:
    """Continue a text with a saved language model."""
    if samples < 1:
        raise InvalidParameter(f"generate: `samples` must be a whole number from 1; got {samples}.")
    writer = _writer(model, name)
    _check_prompt(writer, prompt)
    texts: list[str] = []
    for number in range(samples):
        written = writer.generate(
            prompt,
            tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            repetition_penalty=repetition_penalty,
            stop=stop,
            random_state=_seed(seed, number),
        )
        texts.append(written)
        if not as_json:
            typer.echo(texts[-1] if number + 1 == samples else f"{texts[-1]}\n{'-' * 40}")
    if as_json:
        Output(True).data({"prompt": prompt, "texts": texts})


def _writer(path: str, name: str | None) -> Any:
    """Load a model and see that it writes texts."""
    from pathlib import Path

    folder = Path(path)
    ours = ("model.json", "model", "stages")  # a run has a config of its own
    if (folder / "config.json").is_file() and not any((folder / name).exists() for name in ours):
        return _reader_of(folder).from_pretrained(folder)
    from castalia.method.saved_model import load_model

    found = load_model(folder, name)
    if not hasattr(found, "generate") or not hasattr(found, "token_log_probabilities"):
        raise InvalidData(
            f"generate: `{path}` must hold a language model; it holds a {type(found).__name__}. "
            "`castalia predict` answers with it."
        )
    return found


def _reader_of(folder: Any) -> Any:
    """Return the estimator that reads a folder of Hugging Face's."""
    from castalia.models.language import GPTLanguageModel, LlamaLanguageModel
    from castalia.nets.language.huggingface.checkpoint_folder import read_config

    llama = read_config(folder).get("model_type") in ("llama", "mistral", "qwen2")
    return LlamaLanguageModel if llama else GPTLanguageModel


def _check_prompt(writer: Any, prompt: str) -> None:
    """Refuse a prompt with symbols that the model has never seen."""
    tokenizer = writer.tokenizer_
    unknown = None if tokenizer is None else tokenizer.find_id("unknown")
    if unknown is None or unknown not in tokenizer.encode(prompt):
        return
    from castalia.utils.text import listing

    letters = [sign for sign in dict.fromkeys(prompt) if unknown in tokenizer.encode(sign)]
    words = [word for word in dict.fromkeys(prompt.split()) if unknown in tokenizer.encode(word)]
    whole = len(tokenizer.encode(prompt)) < len(prompt)  # of words rather than of letters
    raise InvalidData(
        "generate: `prompt` must be written in symbols that the model has learnt; it does not know "
        f"{listing(words if whole and words else letters, 'and', 8)}."
    )


def _seed(seed: int | None, number: int) -> int:
    """Return the seed of a text: drawn, or derived from the one that was given."""
    import secrets

    return secrets.randbelow(2**31) if seed is None else seed + number
