"""The course's claims about labelling pixels, on small images of squares and discs."""

import functools

import torch

from castalia import Training
from castalia.evaluate import boundary_accuracy, mean_iou, pixel_accuracy
from castalia.models.vision import UNetSegmenter
from castalia.nets.vision import FCN, SegNet
from castalia.objectives import PixelCrossEntropy
from castalia.testing import toy, train_tensors
from castalia.testing.toys import shapes


def edges(net, *, size, noise, n, epochs, seed):
    """Share of right pixels beside outlines, on new images, of a network after training."""
    X, y = shapes(2 * n, size, noise, seed)
    x, masks = torch.from_numpy(X).float()[:, None] / 50 - 2.5, torch.from_numpy(y)
    training = Training(validation=0, schedule="cosine")
    settings = {"training": training, "epochs": epochs, "batch_size": 4, "lr": 1e-2, "seed": seed}
    train_tensors(net, PixelCrossEntropy(), x[:n], masks[:n], **settings)
    with torch.no_grad():
        return boundary_accuracy(y[n:], net.eval()(x[n:]).argmax(dim=1).numpy(), width=1)


@functools.cache
def unet():
    X, y = toy("shapes")
    settings = {"widths": (8, 16), "depth": 1, "epochs": 12, "batch_size": 4, "lr": 1e-2}
    return UNetSegmenter(**settings, random_state=0).fit(X[:32], y[:32])


def test_mean_iou_of_toy_shapes_is_above_nine_tenths():
    X, y = toy("shapes")
    assert mean_iou(y[32:], unet().predict(X[32:])) > 0.9


def test_a_label_for_every_pixel_is_right_for_more_than_95_percent():
    X, y = toy("shapes")
    found = unet().predict(X[32:])
    assert found.shape == y[32:].shape  # shaped like the input
    assert pixel_accuracy(y[32:], found) > 0.95


def test_finer_fcns_are_better_at_boundaries():
    seed, found = 0, []
    for stride in (32, 16, 8):
        torch.manual_seed(seed)
        small = {"widths": (8, 8, 16, 16, 16), "depths": (1,) * 5, "hidden": 16, "dropout": 0.0}
        net = FCN(1, 3, stride=stride, **small)
        found.append(edges(net, size=32, noise=10, n=24, epochs=12, seed=seed))
    assert found[0] < found[1] < found[2] - 0.05


def test_places_of_maxima_beat_upsampling_without_them_at_edges():
    seed, found = 0, {}
    for indices in (True, False):
        torch.manual_seed(seed)
        net = SegNet(1, 3, widths=(8, 16, 16), depths=(1, 1, 1), indices=indices)
        found[indices] = edges(net, size=24, noise=5, n=32, epochs=25, seed=seed)
    assert found[True] > found[False] + 0.05


def test_a_unet_learns_a_tiny_set_by_heart():
    X, y = shapes(4, noise=40)
    training = Training(validation=0)
    model = UNetSegmenter(
        widths=(8, 16), epochs=80, batch_size=4, lr=0.02, training=training, random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.98
