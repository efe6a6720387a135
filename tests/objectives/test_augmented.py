"""Rows changed in training, and in training only."""

import torch
from torch import nn
from torch.testing import assert_close

from castalia import Training
from castalia.data.augment import Mixup, Noise
from castalia.objectives import L2, Augmented, CrossEntropy, SquaredError
from castalia.protocols import Batch
from castalia.testing import train_tensors


def test_rows_are_changed_in_training_and_left_alone_in_validation():
    torch.manual_seed(0)
    net, x = nn.Linear(3, 1).double(), torch.randn(50, 3).double()
    objective = Augmented(SquaredError(), Noise(1.0)) + L2(0.1)
    batch, plain = Batch(x, x[:, :1]), SquaredError() + L2(0.1)
    assert_close(objective.terms(net.eval(), batch, "train"), plain.terms(net, batch, "train"))
    noisy = objective.terms(net.train(), batch, "train")["loss"]
    assert noisy > plain.terms(net, batch, "train")["loss"] + 0.1


def test_noise_by_augmentation_is_ridge_regression():
    torch.manual_seed(0)
    x = torch.randn(40, 3).double()
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]).double()
    net = nn.Linear(3, 1, bias=False).double()
    training = Training(optimizer="sgd", schedule="linear_decay", average="swa", validation=0)
    objective = Augmented(SquaredError(scale="half"), Noise(0.5))
    train_tensors(net, objective, x, y, training=training, epochs=1000, batch_size=40, lr=0.05)
    ridge = torch.linalg.solve(x.T @ x + 40 * 0.5**2 * torch.eye(3).double(), x.T @ y)
    assert_close(net.weight.detach().T, ridge, rtol=0, atol=0.03)


def test_mixed_rows_train_a_classifier_with_soft_targets():
    source = torch.Generator().manual_seed(0)
    y = torch.arange(300) % 3
    x = 3 * nn.functional.one_hot(y, 3) + torch.randn(300, 3, generator=source)
    torch.manual_seed(0)
    net = nn.Linear(3, 3)
    objective = Augmented(CrossEntropy(), Mixup(0.4, classes=3))
    state = train_tensors(
        net, objective, x, y, validation=(x, y), training=Training(), epochs=20, lr=0.05
    )
    assert (net(x).argmax(dim=1) == y).float().mean() > 0.9
    assert state.history[-1]["val_loss"] < state.history[-1]["loss"]  # plain rows are easier
