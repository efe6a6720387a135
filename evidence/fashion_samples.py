"""Fashion-MNIST drawn by a DCGAN, a diffusion model and a VAE: Fréchet distances.

FID (2017, Heusel et al., arXiv 1706.08500) between 10,000 drawn images and the training images, on
the last features of a ResNet-18 that is trained here to classify them (the usual Inception weights
are not needed); it is saved beside the figures. The reference is the FID of the 10,000 test images.
The diffusion model is given the classes and draws as many images of each; the others are not. Set
MINUTES to train each model longer or less than a minute, MODELS to train some of them only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.linalg import sqrtm
from torch import nn

import castalia
from castalia.data.augment import Crop, Flip
from castalia.data.images import as_images, load_images
from castalia.evaluate.displays import image_grid
from castalia.models.generative import (
    DiffusionModel,
    GenerativeAdversarialNetwork,
    VariationalAutoencoder,
)
from castalia.models.vision import ResNetClassifier
from castalia.train import Training
from evidence.clock import EPOCHS, Clock
from evidence.kept_figures import Kept
from evidence.rows import folder, print_table

MINUTES = float(os.environ.get("MINUTES", 1))
SHARES = {"DiffusionModel": 2.0, "GenerativeAdversarialNetwork": 1.0, "VariationalAutoencoder": 0.5}
MODELS = os.environ.get("MODELS", ",".join(SHARES)).split(",")
GUIDANCE = (0.0, 0.1)  # of the diffusion model; the first is reported


def run(quick: bool = False) -> None:
    """Train the feature network, then each model, and compare."""
    folder()
    (train, labels), (test, truth) = (
        load_images("fashion-mnist"),
        load_images("fashion-mnist", "test"),
    )
    if quick:
        train, labels, test, truth = train[:400], labels[:400], test[:200], truth[:200]
    kept, out = Kept("fashion_samples"), Path(os.environ.get("OUT", "."))
    network = _features(out / "fashion_resnet18", train, labels, quick)
    real = moments(network, train)
    first, second = (moments(network, train[i::2]) for i in range(2))
    kept.find("network", lambda: {"accuracy": 100 * float(network.score(test, truth))})
    kept.find("test images", lambda: {"fid": frechet(moments(network, test), real)})
    kept.find("halves of the training images", lambda: {"fid": frechet(first, second)})

    def drawn(name: str) -> dict[str, Any]:
        seconds = 1.0 if quick else 60 * MINUTES * SHARES[name]
        model = MAKERS[name](seconds, quick)
        classes = (labels, np.arange(len(test)) % 10) if model.conditional else (None, None)
        model.fit(train, classes[0])
        fids = {}
        for guidance in GUIDANCE if model.conditional else (None,):
            if guidance is not None:
                model.set_params(guidance=guidance)
            images = model.sample(len(test), classes[1], random_state=1)
            fids[guidance] = frechet(moments(network, images), real)
            print(f"{name}, guidance {guidance}: FID {fids[guidance]:.3f}", flush=True)
            _picture(images, out / f"fashion_{name}_{guidance}.png")
        size = sum(p.numel() for p in model.module_.parameters())
        step = {key: model.settings_.get(key) for key in ("step", "precision")}
        found = {"fid": next(iter(fids.values())), "epochs": len(model.history_), "weights": size}
        return found | {"fids": {str(key): value for key, value in fids.items()}, **step}

    for name in MODELS:
        kept.find(name, lambda name=name: drawn(name))
    reference = kept.figures["test images"]["fid"]
    rows = [
        [name, f"{f['fid']:.2f}", f"{f['fid'] / reference:.1f}", f"{f['seconds']:.0f}"]
        for name, f in kept.figures.items()
        if "fid" in f
    ]
    accuracy = kept.figures["network"]["accuracy"]
    title = f"Fashion-MNIST drawn (FID on a ResNet-18 of {accuracy:.1f} %)"
    print_table(title, ["images", "FID", "times that of test images", "s"], rows)


def timed(seconds: float, decay: float = 0.999, **settings: Any) -> dict[str, Any]:
    """Arguments of a fit that lasts some seconds."""
    clock = Clock(seconds, lines=4)
    training = Training(
        schedule=clock, callbacks=[clock], average=("ema", decay), validation=0, watch=False,
        **settings,
    )  # fmt: skip
    return {"epochs": EPOCHS, "training": training, "random_state": 0}


def vae(seconds: float, quick: bool) -> VariationalAutoencoder:
    """Convolutions and 32 latent units."""
    return VariationalAutoencoder(
        code=32, width=4 if quick else 64, batch_size=256, lr=1e-3, **timed(seconds)
    )


def gan(seconds: float, quick: bool) -> GenerativeAdversarialNetwork:
    """A DCGAN with a normalised discriminator."""
    return GenerativeAdversarialNetwork(
        noise=64, width=4 if quick else 64, spectral_norm=True, batch_size=128, lr=2e-4,
        **timed(seconds, optimizer=("adam", {"betas": (0.5, 0.999)})),
    )  # fmt: skip


def diffusion(seconds: float, quick: bool) -> DiffusionModel:
    """A U-Net of 10 million weights, draws of 100 steps."""
    settings = {"clip": 1.0, "compile": torch.cuda.is_available() or "auto"}
    return DiffusionModel(
        width=8 if quick else 64, sample_steps=5 if quick else 100, conditional=True,
        batch_size=256, lr=1e-3, **timed(seconds, 0.9995, **settings),
    )  # fmt: skip


MAKERS = {
    "DiffusionModel": diffusion,
    "GenerativeAdversarialNetwork": gan,
    "VariationalAutoencoder": vae,
}


def _features(path: Path, train: np.ndarray, labels: np.ndarray, quick: bool) -> ResNetClassifier:
    """The classifier whose features are compared, from its folder or trained now."""
    if path.is_dir():
        found: ResNetClassifier = castalia.load(path)
        return found
    training = Training(
        optimizer="nesterov", weight_decay=5e-4, schedule="warmup_cosine", validation=0
    )
    made = ResNetClassifier(
        depth=18, augment=Flip() | Crop(2), epochs=1 if quick else 12, batch_size=256, lr=0.08,
        training=training, random_state=0,
    ).fit(train, labels)  # fmt: skip
    castalia.save(made, path)
    return made


@torch.inference_mode()
def moments(model: Any, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of what the last layer is given."""
    net = model.module_.eval()
    head = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
    seen: list[torch.Tensor] = []
    hook = head.register_forward_pre_hook(lambda _, given: seen.append(given[0].double().cpu()))
    device = next(net.parameters()).device
    for block in model.adapter_.blocks(as_images(images), np.float32):
        for part in block.split(500):
            net(part.to(device))
    hook.remove()
    rows = torch.cat(seen).numpy()
    return rows.mean(axis=0), np.cov(rows, rowvar=False)


def frechet(one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> float:
    """Squared distance of the means, plus tr(A + B - 2 (A B)^1/2) of the covariances."""
    (mean, cov), (other, spread) = one, two
    root = sqrtm(cov @ spread)
    return float(np.square(mean - other).sum() + np.trace(cov + spread - 2 * np.real(root)))


def _picture(images: np.ndarray, path: Path) -> None:
    from PIL import Image

    Image.fromarray(image_grid(images[:64])).save(path)
