"""GPT-2 124M: our whole ``fit`` against a bare compiled loop and transformers, on a GPU.

Everybody trains the same shape on the same random tokens in the same number of steps, from token
ids to the last step, compilation included: bf16, AdamW. The first round fills the compiler's caches
and is thrown away. The bare loop compiles network and loss together and draws its batches on the
device; transformers' network runs in the same loop. Without a GPU only the tiny size runs, to try
the script, and nothing is judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.harness import Bar, Report, Spread, installed, main
from castalia import Training
from castalia.models.language import GPTLanguageModel
from castalia.nets.language import GPT

LR = 3e-4
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Setting:
    vocabulary: int
    context: int
    dim: int
    depth: int
    heads: int
    batch: int
    steps: int

    @property
    def tokens(self) -> int:
        return self.batch * self.context * self.steps


SETTINGS = {
    "full": Setting(50_257, 1024, 768, 12, 12, 32, 120),
    "quick": Setting(50_257, 1024, 768, 12, 12, 32, 40),
    "tiny": Setting(97, 16, 16, 1, 2, 4, 3),
}
ROUNDS = {"full": 3, "quick": 1, "tiny": 1}
FIRST_STEPS = 8  # of the round that fills the compiler's caches


def stream(setting: Setting) -> np.ndarray:
    """Random tokens, one more than are learnt from; the largest id is among them."""
    ids = np.random.default_rng(0).integers(0, setting.vocabulary, setting.tokens + 1)
    ids[0] = setting.vocabulary - 1
    return ids


def castalia(ids: np.ndarray, setting: Setting, compiled: bool | str) -> None:
    """Our fit, as anybody would call it."""
    GPTLanguageModel(
        dim=setting.dim,
        depth=setting.depth,
        heads=setting.heads,
        context=setting.context,
        dropout=0.0,
        epochs=1,
        batch_size=setting.batch,
        lr=LR,
        random_state=0,
        training=Training(
            optimizer="adamw",
            weight_decay=0.1,
            validation=0,
            precision="bf16" if DEVICE == "cuda" else "float32",
            compile=compiled,
            verbose=False,
        ),
    ).fit([ids])


def bare(ids: np.ndarray, setting: Setting, net: nn.Module, logits: Callable) -> None:
    """The loop that one writes by hand; network and loss are compiled together on a GPU."""
    net = net.to(DEVICE)
    blocks = torch.from_numpy(ids).to(DEVICE)
    optimizer = torch.optim.AdamW(net.parameters(), LR, weight_decay=0.1, fused=True)

    def loss_of(x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits(net, x).flatten(0, 1).float(), y.flatten())

    run = torch.compile(loss_of) if DEVICE == "cuda" else loss_of
    order = torch.randperm(setting.steps * setting.batch, device=DEVICE) * setting.context
    reach = torch.arange(setting.context + 1, device=DEVICE)
    for starts in order.split(setting.batch):
        rows = blocks[starts[:, None] + reach]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
            loss = run(rows[:, :-1], rows[:, 1:])
        loss.backward()
        optimizer.step()


def ours(setting: Setting) -> nn.Module:
    return GPT(
        setting.vocabulary,
        context=setting.context,
        dim=setting.dim,
        depth=setting.depth,
        heads=setting.heads,
    )


def theirs(setting: Setting) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=setting.vocabulary,
        n_positions=setting.context,
        n_embd=setting.dim,
        n_layer=setting.depth,
        n_head=setting.heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    return GPT2LMHeadModel(config)


def contenders(setting: Setting) -> dict[str, Callable[[np.ndarray], None]]:
    cuda = DEVICE == "cuda"
    found: dict[str, Callable[[np.ndarray], None]] = {
        "castalia, compile=True": lambda ids: castalia(ids, setting, cuda),
        "bare, compiled": lambda ids: bare(ids, setting, ours(setting), lambda net, x: net(x)),
    }
    if cuda:
        found["castalia, defaults"] = lambda ids: castalia(ids, setting, "auto")
    if installed("transformers"):
        found["transformers, compiled"] = lambda ids: bare(
            ids, setting, theirs(setting), lambda net, x: net(input_ids=x).logits
        )
    return found


def measure(setting: Setting, rounds: int) -> dict[str, list[float]]:
    """Tokens a second of every contender, by round."""
    ids = stream(setting)
    speeds: dict[str, list[float]] = {name: [] for name in contenders(setting)}
    for number in range(-1, rounds):
        mine = setting if number >= 0 else replace(setting, steps=min(setting.steps, FIRST_STEPS))
        for name, fit in contenders(mine).items():
            torch._dynamo.reset()
            _wait()
            started = time.perf_counter()
            fit(ids[: mine.tokens + 1])
            _wait()
            if number >= 0:
                speeds[name].append(setting.tokens / (time.perf_counter() - started))
                print(f"{name}: {speeds[name][-1]:,.0f} tokens/s", flush=True)
    return speeds


def _wait() -> None:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def run(scale: str = "full", rounds: int | None = None, steps: int | None = None) -> Report:
    """Time whole trainings in turns."""
    setting = replace(SETTINGS[scale], steps=steps or SETTINGS[scale].steps)
    words = (
        f"{setting.depth} x {setting.dim}, T = {setting.context}, batch {setting.batch}, "
        f"{setting.steps} steps, {setting.tokens:,} tokens, {rounds or ROUNDS[scale]} rounds."
    )
    if DEVICE == "cpu" and scale != "tiny":
        return Report("gpt", "Not measured.", "No CUDA device: this benchmark needs one.")
    speeds = measure(setting, rounds or ROUNDS[scale])
    lines = ["| contender | tokens/s |", "|---|---|"]
    lines += [f"| {name} | {Spread.of(v):,.0f} |" for name, v in speeds.items()]
    bars = []
    if DEVICE == "cuda":
        fit = Spread.of(speeds["castalia, compile=True"]).median
        hand = Spread.of(speeds["bare, compiled"]).median
        bars.append(Bar("whole fit over the bare compiled loop", fit / hand, ">=", 0.98))
        if "transformers, compiled" in speeds:
            peer = Spread.of(speeds["transformers, compiled"]).median
            bars.append(Bar("whole fit over transformers compiled", fit / peer, ">=", 1.4))
    return Report("gpt", words, "\n".join(lines), bars, {"tokens/s": speeds})


if __name__ == "__main__":
    main(run, rounds=int, steps=int)
