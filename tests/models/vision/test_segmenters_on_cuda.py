"""Segmenters on a GPU: recorded steps, bf16, channels last."""

import pytest
import torch

from castalia import Training
from castalia.models.vision import DilatedSegmenter, FCNSegmenter, SegNetSegmenter, UNetSegmenter
from castalia.testing import toy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SMALL = {
    FCNSegmenter: {"widths": (8, 8, 16, 16, 16), "depths": (1,) * 5, "hidden": 16, "dropout": 0.0},
    SegNetSegmenter: {"widths": (8, 16), "depths": (1, 1)},
    UNetSegmenter: {"widths": (8, 16), "depth": 1},
    DilatedSegmenter: {"widths": (8, 16), "depth": 1, "stride": 2, "dilations": (1, 2, 4)},
}


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", SMALL, ids=lambda kind: kind.__name__)
def test_a_segmenter_learns_on_cuda_with_weights_and_void(kind, precision):
    X, y = toy("shapes")
    y[:, 0] = 255
    training = Training(device="cuda", validation=0, precision=precision)
    settings = {"epochs": 20, "batch_size": 4, "lr": 1e-2, "class_weight": "median", "void": 255}
    model = kind(**SMALL[kind], **settings, training=training, random_state=0).fit(X[:32], y[:32])
    assert model.score(X[32:], y[32:]) > 0.5
    assert model.settings_["precision"] == precision
