"""Changed and attacked rows on a GPU, where steps are recorded as a graph."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.data.augment import Flip, LabelNoise, Mask, Mixup, Noise, Recolor, Rotate, Shift, Zoom
from castalia.evaluate import LossLandscape
from castalia.nn import GaussianNoise, OriginalDropout, geometric_ensemble
from castalia.objectives import Adversarial, Augmented, CrossEntropy, fgsm, pgd
from castalia.testing import train_tensors

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def problem():
    torch.manual_seed(0)
    x, y = torch.rand(256, 3, 8, 8), torch.arange(256) % 4
    x[:, 0] += y[:, None, None] / 2
    net = nn.Sequential(
        GaussianNoise(0.05),
        nn.Conv2d(3, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        OriginalDropout(0.9),
        nn.Linear(288, 4),
    )
    return net, x, y


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_every_augmentation_and_attack_trains_on_cuda(precision):
    net, x, y = problem()
    moves = Rotate(5) | Flip() | Shift(0.05) | Zoom() | Recolor(0.05) | Noise(0.05) | Mask(0.05)
    objective = Adversarial(CrossEntropy(), 0.02)
    objective = Augmented(objective, moves | LabelNoise(0.02, 4) | Mixup(0.2, classes=4))
    training = Training(device="cuda", validation=0, precision=precision)
    settings = {"epochs": 30, "batch_size": 32, "lr": 5e-3}
    state = train_tensors(net, objective, x, y, training=training, **settings)
    assert state.history[-1]["loss"] < 0.7 * state.history[0]["loss"]
    assert (net(x.cuda()).argmax(dim=1).cpu() == y).float().mean() > 0.9


def test_recorded_steps_draw_new_changes_every_time():
    torch.manual_seed(0)
    net, x = nn.Linear(4, 2), torch.zeros(64, 4)
    seen = Augmented(CrossEntropy(), Noise(1.0) | Mixup(classes=2))
    training = Training(device="cuda", validation=0, optimizer="sgd")
    y = torch.arange(64) % 2
    state = train_tensors(net, seen, x, y, training=training, epochs=20, batch_size=64, lr=1e-8)
    losses = [line["loss"] for line in state.history]
    assert len(set(losses)) == 20


def test_attacks_and_landscapes_on_cuda_are_those_of_the_cpu():
    net, x, y = problem()
    cuda = problem()[0].cuda()
    near = fgsm(cuda, CrossEntropy(), x.cuda(), y.cuda(), 0.1).cpu()
    assert (near == fgsm(net, CrossEntropy(), x, y, 0.1)).float().mean() > 0.999
    for norm in ("inf", "l2"):
        found = pgd(cuda, CrossEntropy(), x.cuda(), y.cuda(), 0.1, norm=norm).cpu()
        change = (found - x).flatten(1)
        assert change.norm(p=torch.inf if norm == "inf" else 2, dim=1).max() < 0.1001
    shown, ours = (
        LossLandscape.from_network(n, CrossEntropy(), x.to(d), y.to(d), points=3).loss
        for n, d in ((cuda, "cuda"), (net, "cpu"))
    )
    assert_close(torch.tensor(shown), torch.tensor(ours), rtol=1e-3, atol=1e-4)


def test_masks_are_enumerated_on_cuda():
    weight, bias, x = torch.randn(3, 14).cuda(), torch.randn(3).cuda(), torch.randn(5, 14).cuda()
    found = geometric_ensemble(weight, bias, x)
    assert_close(found, torch.softmax(x @ weight.T / 2 + bias, dim=1), rtol=1e-3, atol=1e-4)
