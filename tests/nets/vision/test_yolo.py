"""The grid detector: the paper's layers and numbers, and where its boxes lie."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import YOLO, YOLO_LAYERS, slim_layers
from castalia.nets.vision.yolo import cell_grid


def small(**settings):
    return YOLO(3, 4, size=(64, 96), layers=slim_layers(8, 1, 16), hidden=0, **settings)


def test_the_layers_are_those_of_the_paper():
    with torch.device("meta"):  # the dense layer alone has 200 million weights
        net = YOLO(3, 20)
    convolutions = [m for m in net.body.modules() if isinstance(m, nn.Conv2d)]
    widths = [(c.out_channels, c.kernel_size[0], c.stride[0]) for c in convolutions]
    assert len(convolutions) == 24
    assert widths[:2] == [(64, 7, 2), (192, 3, 1)]
    assert widths[2:6] == [(128, 1, 1), (256, 3, 1), (256, 1, 1), (512, 3, 1)]
    assert widths[6:16] == [(256, 1, 1), (512, 3, 1)] * 4 + [(512, 1, 1), (1024, 3, 1)]
    assert widths[16:20] == [(512, 1, 1), (1024, 3, 1)] * 2  # the last of the pre-trained twenty
    assert widths[20:] == [(1024, 3, 1), (1024, 3, 2), (1024, 3, 1), (1024, 3, 1)]
    assert sum(isinstance(m, nn.MaxPool2d) for m in net.body) == 4
    slopes = {m.negative_slope for m in net.modules() if isinstance(m, nn.LeakyReLU)}
    dense = [m for m in net.head if isinstance(m, nn.Linear)]
    assert slopes == {0.1}
    assert isinstance(net.head[-1], nn.Unflatten)
    assert [d.out_features for d in dense] == [4096, 1470]
    assert dense[0].in_features == 7 * 7 * 1024


def test_the_papers_network_has_7_by_7_by_30_outputs():
    # The paper's strides with few channels: the same grid at a small cost.
    thin = tuple(x if isinstance(x, str) else (4, *x[1:]) for x in YOLO_LAYERS)
    net = YOLO(3, 20, layers=thin, hidden=16)
    assert net.grid == (7, 7)
    assert net.head[-2].out_features == 7 * 7 * (5 * 2 + 20) == 1470
    assert net.body(torch.zeros(1, 3, 448, 448)).shape == (1, 4, 7, 7)
    assert net(torch.zeros(1, 3, 448, 448)).shape == (1, 7 * 7 * 2, 25)


@pytest.mark.parametrize("hidden", [0, 16])
def test_an_answer_of_a_cell_becomes_a_box_in_shares_of_the_image(hidden):
    net = YOLO(3, 4, size=(64, 96), layers=slim_layers(8, 1, 16), hidden=hidden).eval()
    raw = torch.zeros(1, 14, 4, 6)  # 4 rows, 6 columns, 2 boxes of 5 numbers and 4 classes
    raw[0, 5:10, 1, 2] = torch.tensor([0.25, 0.5, 0.6, 0.5, 0.7])  # second box, row 1, column 2
    raw[0, 10:, 1, 2] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    net.head = nn.Sequential(Answer(raw))
    found = net(torch.zeros(1, 3, 64, 96))[0, 2 * (1 * 6 + 2) + 1]
    expected = [(2 + 0.25) / 6, (1 + 0.5) / 4, 0.36, 0.25, 0.7, 0.1, 0.2, 0.3, 0.4]
    assert_close(found, torch.tensor(expected))


class Answer(nn.Module):
    def __init__(self, raw):
        super().__init__()
        self.raw = raw

    def forward(self, x):
        return self.raw


def test_scores_are_class_probability_times_confidence():
    outputs = torch.tensor([[[0.5, 0.5, 0.1, 0.1, 0.8, 0.5, 0.25], [0, 0, 0, 0, -0.1, 0.5, 1.2]]])
    expected = torch.tensor([[[0.4, 0.2], [0.0, 0.0]]])
    assert_close(YOLO.scores(small(), outputs), expected)


def test_the_boxes_of_a_cell_start_with_different_sizes_in_its_middle():
    net = small(boxes=3).eval()
    found = net(torch.zeros(1, 3, 64, 96))
    middle = net.cells(torch.zeros(1, 3, 64, 96))[:, :2]
    assert_close(found[0, :, :2], middle, atol=0.02, rtol=0)
    assert found[0, :3, 2].diff().min() > 0.1


def test_cells_tile_the_image():
    cells = cell_grid(3, 5, 1, torch.zeros((), dtype=torch.float64))
    assert_close(cells[:, 2:].prod(dim=1).sum(), torch.tensor(1.0, dtype=torch.float64))
    assert_close(cells[7], torch.tensor([2.5 / 5, 1.5 / 3, 1 / 5, 1 / 3], dtype=torch.float64))


def test_half_precision_answers_in_float32():
    net = small()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert net(torch.zeros(2, 3, 64, 96)).dtype == torch.float32
    assert net.double()(torch.zeros(2, 3, 64, 96).double()).dtype == torch.float64


def test_a_layer_that_is_none_is_named():
    with pytest.raises(InvalidParameter, match="`layers` must hold .* got 'pol'"):
        YOLO(3, 2, layers=((8, 3, 2), "pol"))
