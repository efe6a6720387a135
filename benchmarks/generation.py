"""Tokens a second of ``generate`` against transformers' own: GPT-2 124M, greedy, bf16 on CUDA.

Both write as many tokens after the same prompts with the same random weights, taking turns in one
process, after a run each that is not timed. Without a GPU only the tiny size is worth running.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness import Bar, Contender, Report, Spread, installed, main, race
from castalia.nets.language import GPT, generate, save_pretrained

CUDA = torch.cuda.is_available()
PROMPT = 16
BARS = {1: 50.0, 64: 20.0}  # times as fast, by batch


@dataclass(frozen=True)
class Setting:
    network: dict[str, Any]
    tokens: int
    batches: tuple[int, ...]
    rounds: int


SETTINGS = {
    "full": Setting({"vocabulary": 50_257}, 256, (1, 64), 3),
    "quick": Setting({"vocabulary": 50_257}, 64, (1, 64), 1),
    "tiny": Setting(
        {"vocabulary": 97, "context": 64, "dim": 16, "depth": 1, "heads": 2}, 4, (1, 2), 1
    ),
}


def run(scale: str = "full") -> Report:
    """Time both at every batch size."""
    setting = SETTINGS[scale]
    torch.manual_seed(0)
    net = GPT(**setting.network).eval()
    peer = _peer(net) if installed("transformers") else None
    net = net.to("cuda", torch.bfloat16) if CUDA else net
    lines = ["| batch | contender | tokens/s | same tokens |", "|---|---|---|---|"]
    bars, figures = [], {}
    for batch in setting.batches:
        speeds, same = measure(net, peer, batch, setting)
        figures[str(batch)] = {"tokens/s": speeds, "same": same}
        lines += [
            f"| {batch} | {name} | {Spread.of(found):,.0f} | {same:.3f} |"
            for name, found in speeds.items()
        ]
        if CUDA and peer is not None and batch in BARS:
            ours, theirs = (Spread.of(found).median for found in speeds.values())
            what = f"tokens/s over transformers' generate, batch {batch}"
            bars.append(Bar(what, ours / theirs, ">=", BARS[batch]))
    words = f"{setting.tokens} tokens after prompts of {PROMPT}, {setting.rounds} rounds."
    return Report("generation", words, "\n".join(lines), bars, figures)


def measure(
    net: GPT, peer: Any, batch: int, setting: Setting
) -> tuple[dict[str, list[float]], float]:
    """Return tokens a second of each contender by round, and the share of equal tokens."""
    ids = torch.randint(net.vocabulary, (batch, PROMPT), device=next(net.parameters()).device)
    written: dict[str, Tensor] = {}
    sides: dict[str, Callable[[], Tensor]] = {
        "castalia": lambda: generate(net, ids, tokens=setting.tokens)
    }
    if peer is not None:
        settings = {"max_new_tokens": setting.tokens, "min_new_tokens": setting.tokens}
        settings |= {"attention_mask": torch.ones_like(ids), "do_sample": False, "pad_token_id": 0}
        sides["transformers"] = lambda: peer.generate(ids, **settings)[:, PROMPT:]
    contenders = [Contender(name, _kept(name, write, written)) for name, write in sides.items()]
    found = race(contenders, setting.rounds)
    first, *others = written.values()
    same = float((first == others[0]).float().mean()) if others else float("nan")
    speeds = {
        name: [batch * setting.tokens / wall for wall in result.wall]
        for name, result in found.items()
    }
    return speeds, same


def _kept(name: str, write: Callable[[], Tensor], written: dict[str, Tensor]) -> Callable[[], None]:
    def act() -> None:
        written[name] = write()
        if CUDA:
            torch.cuda.synchronize()

    return act


def _peer(net: GPT) -> Any:
    """Return transformers' network with the same weights."""
    from transformers import GPT2LMHeadModel

    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(net, folder)
        model = GPT2LMHeadModel.from_pretrained(folder).eval()
    return model.to("cuda", torch.bfloat16) if CUDA else model


if __name__ == "__main__":
    main(run)
