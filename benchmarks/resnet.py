"""ResNet-18 on a GPU: our whole ``fit`` against bare torchvision loops and Lightning's Trainer.

Everybody trains from images to the last step, compilation included: bf16, channels last,
momentum. A first epoch of each fills the compiler's caches and is thrown away. Loops that launch
kernel by kernel train for fewer epochs on small images, where they take much longer. Bare loops
keep normalised float images on the device and draw their batches there, which costs them less
than our bytes that are normalised batch by batch.
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

LR, CLASSES = 0.01, 10
EAGER = ("defaults", "eager")


@dataclass(frozen=True)
class Setting:
    size: int
    batch: int
    pictures: int
    epochs: int

    def slower(self) -> Setting:
        """The setting of loops that wait for launches."""
        return replace(self, epochs=max(1, self.epochs // 8)) if self.size <= 64 else self


SETTINGS = {
    "full": (Setting(32, 128, 25_600, 40), Setting(224, 256, 5_120, 60)),
    "quick": (Setting(32, 128, 25_600, 20), Setting(224, 256, 5_120, 30)),
    "tiny": (Setting(32, 16, 64, 1),),
}
ROUNDS = {"full": 3, "quick": 1, "tiny": 1}


def network(size: int) -> nn.Module:
    """torchvision's ResNet-18; for small images with the usual 3 x 3 stem without pooling."""
    from torchvision.models import resnet18

    net = resnet18(num_classes=CLASSES)
    if size <= 64:
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
    return net


def pictures(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Random bytes and labels."""
    random = np.random.default_rng(0)
    shape = (setting.pictures, setting.size, setting.size, 3)
    return random.integers(0, 256, shape, dtype=np.uint8), np.arange(setting.pictures) % CLASSES


def on_device(X: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
    """Normalised floats (N, 3, H, W), channels last, and labels."""
    x = torch.from_numpy(X).cuda().permute(0, 3, 1, 2)
    return (x.float() - 127.5) / 73.6, torch.from_numpy(y).cuda()


def bare(X: np.ndarray, y: np.ndarray, setting: Setting, mode: str) -> None:
    """The loop that one writes by hand."""
    x, labels = on_device(X, y)
    net = network(setting.size).to("cuda", memory_format=torch.channels_last)
    run = net if mode == "eager" else torch.compile(net, mode=None if mode == "compiled" else mode)
    optimizer = torch.optim.SGD(net.parameters(), LR, momentum=0.9, fused=True)
    for _ in range(setting.epochs):
        order = torch.randperm(len(x), device="cuda")
        for index in order.split(setting.batch):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(run(x[index]), labels[index])
            loss.backward()
            optimizer.step()


def castalia(X: np.ndarray, y: np.ndarray, setting: Setting, compiled: bool | str) -> None:
    """Our fit, as anybody would call it."""
    from castalia import ResNetClassifier, Training

    training = Training(
        optimizer="momentum", validation=0, precision="bf16", compile=compiled, verbose=False
    )
    ResNetClassifier(
        depth=18,
        epochs=setting.epochs,
        batch_size=setting.batch,
        lr=LR,
        random_state=0,
        training=training,
    ).fit(X, y)


def lightning(X: np.ndarray, y: np.ndarray, setting: Setting, compiled: bool) -> None:
    """Lightning's Trainer with the same network, its data on the device."""
    import lightning.pytorch as pl

    x, labels = on_device(X, y)

    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self):  # noqa: ANN204
            order = torch.randperm(len(x), device="cuda")
            for index in order.split(setting.batch):
                yield x[index], labels[index]

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = network(setting.size).to(memory_format=torch.channels_last)
            self.run = torch.compile(self.net) if compiled else self.net

        def training_step(self, batch: tuple[Tensor, Tensor], number: int) -> Tensor:
            return F.cross_entropy(self.run(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.net.parameters(), LR, momentum=0.9)

    trainer = pl.Trainer(
        max_epochs=setting.epochs,
        precision="bf16-mixed",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), torch.utils.data.DataLoader(Batches(), batch_size=None))


Fit = Callable[[np.ndarray, np.ndarray, Setting], None]


def contenders(compiled: int = 0) -> dict[str, tuple[Fit, bool]]:
    """What everybody runs, or those that compile, and whether it launches kernel by kernel."""
    found: dict[str, tuple[Fit, bool]] = {
        "castalia, compile=True": (lambda X, y, s: castalia(X, y, s, True), False),
        "castalia, defaults": (lambda X, y, s: castalia(X, y, s, "auto"), False),
        "bare, reduce-overhead": (lambda X, y, s: bare(X, y, s, "reduce-overhead"), False),
        "bare, compiled": (lambda X, y, s: bare(X, y, s, "compiled"), True),
        "bare, eager": (lambda X, y, s: bare(X, y, s, "eager"), True),
    }
    if installed("lightning"):
        found["Lightning, compiled"] = (lambda X, y, s: lightning(X, y, s, True), True)
    if compiled:
        return {name: what for name, what in found.items() if not name.endswith(EAGER)}
    return found


def measure(setting: Setting, rounds: int, compiled: int) -> dict[str, list[float]]:
    """Images a second of every contender, by round."""
    X, y = pictures(setting)
    speeds: dict[str, list[float]] = {name: [] for name in contenders(compiled)}
    for number in range(-1, rounds):
        for name, (fit, launches) in contenders(compiled).items():
            mine = setting.slower() if launches else setting
            mine = mine if number >= 0 else replace(mine, epochs=1)
            torch._dynamo.reset()
            torch.cuda.synchronize()
            started = time.perf_counter()
            fit(X, y, mine)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - started
            if number >= 0:
                speeds[name].append(mine.epochs * mine.pictures / seconds)
                print(f"{mine}, {name}: {speeds[name][-1]:,.0f} pictures/s", flush=True)
    return speeds


def run(
    scale: str = "full", rounds: int | None = None, size: int | None = None, compiled: int = 0
) -> Report:
    """Time whole trainings in turns; ``compiled`` leaves out those that do not compile."""
    if not torch.cuda.is_available():
        return Report("resnet", "Not measured.", "No CUDA device: this benchmark needs one.")
    lines, bars, figures = ["| images | contender | pictures/s |", "|---|---|---|"], [], {}
    settings = [s for s in SETTINGS[scale] if size in (None, s.size)]
    for setting in settings:
        speeds = measure(setting, rounds or ROUNDS[scale], compiled)
        what = f"{setting.size} x {setting.size}, batch {setting.batch}"
        lines += [f"| {what} | {name} | {Spread.of(v):,.0f} |" for name, v in speeds.items()]
        ours = Spread.of(speeds["castalia, compile=True"]).median
        best = max(Spread.of(v).median for name, v in speeds.items() if name.startswith("bare"))
        bars.append(Bar(f"{what}: whole fit over the best bare loop", ours / best, ">=", 0.97))
        if "Lightning, compiled" in speeds:
            peer = Spread.of(speeds["Lightning, compiled"]).median
            bars.append(Bar(f"{what}: whole fit over Lightning's Trainer", ours / peer, ">=", 1.0))
        figures[what] = speeds
    setting_text = "; ".join(
        f"{s.size} x {s.size}: {s.pictures:,} images, {s.epochs} epochs, batch {s.batch}"
        for s in settings
    )
    return Report("resnet", f"ResNet-18, bf16. {setting_text}.", "\n".join(lines), bars, figures)


if __name__ == "__main__":
    main(run, rounds=int, size=int, compiled=int)
