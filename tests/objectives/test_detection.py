"""The losses of detectors against loops written from the papers' sums."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nets.vision import YOLO, AnchorYOLO, slim_layers
from castalia.nn import box_iou, to_corners
from castalia.objectives import AnchorYOLOLoss, YOLOLoss
from castalia.protocols import Batch

S, BOXES, CLASSES = 3, 2, 4


class Grid(nn.Module):
    """Answers free numbers on a grid of S x S cells."""

    def __init__(self, outputs):
        super().__init__()
        self.outputs = nn.Parameter(outputs)

    def forward(self, x):
        return self.outputs

    def cells(self, x):
        places = [((c + 0.5) / S, (r + 0.5) / S) for r in range(S) for c in range(S)]
        return torch.tensor([[*p, 1 / S, 1 / S] for p in places for _ in range(BOXES)]).double()

    def priors(self, x):
        sizes = torch.tensor([[0.2, 0.3], [0.5, 0.4]]).repeat(S * S, 1).double()
        return torch.cat([self.cells(x)[:, :2], sizes], dim=1)


def problem(seed=0, batch=5, most=4):
    """Random answers; targets with distinct cells, padded to ``most`` rows."""
    g = torch.Generator().manual_seed(seed)
    outputs = torch.rand(batch, S * S * BOXES, 5 + CLASSES, generator=g, dtype=torch.float64)
    targets = torch.full((batch, most, 5), -1.0, dtype=torch.float64)
    for b in range(batch):
        cells = torch.randperm(S * S, generator=g)[: b % (most + 1)]
        for m, cell in enumerate(cells.tolist()):
            inside = torch.rand(2, generator=g) * 0.98 + 0.01
            centre = (torch.tensor([cell % S, cell // S]) + inside) / S
            size = torch.rand(2, generator=g) * 0.6 + 0.05
            label = torch.randint(0, CLASSES, (1,), generator=g)
            targets[b, m] = torch.cat([label, centre, size])
    return outputs, targets


def overlap(a, b):
    return float(box_iou(to_corners(a), to_corners(b)))


def by_the_paper(outputs, targets, coordinates=5.0, empty=0.5):
    """Equation 3, one image: sums over cells and boxes."""
    box = confidence = classes = 0.0
    responsible = {}
    for target in targets:
        if target[0] < 0:
            continue
        column, row = int(target[1] * S), int(target[2] * S)
        boxes = [(row * S + column) * BOXES + k for k in range(BOXES)]
        best = max(boxes, key=lambda i: overlap(outputs[i, :4], target[1:]))
        responsible[best] = target
    for i, (x, y, w, h, c, *scores) in enumerate(outputs.tolist()):
        if i not in responsible:
            confidence += empty * c**2
            continue
        label, tx, ty, tw, th = responsible[i].tolist()
        box += coordinates * ((x - tx) ** 2 * S**2 + (y - ty) ** 2 * S**2)
        box += coordinates * ((w**0.5 - tw**0.5) ** 2 + (h**0.5 - th**0.5) ** 2)
        confidence += (c - overlap(outputs[i, :4], responsible[i][1:])) ** 2
        classes += sum((p - (k == label)) ** 2 for k, p in enumerate(scores))
    return box, confidence, classes


def test_it_is_the_sum_of_the_paper():
    outputs, targets = problem()
    terms = YOLOLoss().terms(Grid(outputs), Batch(torch.zeros(5), targets), "train")
    rows = [by_the_paper(o, t) for o, t in zip(outputs, targets, strict=True)]
    means = [sum(part) / len(rows) for part in zip(*rows, strict=True)]
    assert [terms[k].item() for k in ("box", "confidence", "classes")] == pytest.approx(means)
    assert terms["loss"].item() == pytest.approx(sum(means))


def test_confidence_is_to_be_the_overlap_of_the_responsible_box_and_0_elsewhere():
    outputs, targets = problem()
    net, x = Grid(outputs), torch.zeros(5)
    learns, owner = YOLOLoss().claims(net, x, outputs, targets)
    assert learns.sum(dim=1).tolist() == [0, 1, 2, 3, 4]  # one box a target, none for padding
    # The slope of (c - aim)^2 by c is 2 (c - aim), halved where the box is empty.
    YOLOLoss().parts(net, x, net.outputs, targets)["confidence"].sum().backward()
    weight = torch.where(learns, 1.0, 0.5)
    aim = outputs[..., 4] - net.outputs.grad[..., 4] / (2 * weight)
    reached = box_iou(to_corners(outputs[..., :4]), to_corners(owner[..., 1:]))
    assert_close(aim, reached * learns)
    assert not net.outputs.grad[..., :4].any()  # the overlap is an aim, not a path for slopes


def test_the_responsible_box_is_the_one_that_overlaps_most():
    outputs, targets = problem()
    learns, owner = YOLOLoss().claims(Grid(outputs), torch.zeros(5), outputs, targets)
    for b, i in learns.nonzero().tolist():
        other = i + 1 if i % BOXES == 0 else i - 1
        truth = owner[b, i, 1:]
        assert overlap(outputs[b, i, :4], truth) >= overlap(outputs[b, other, :4], truth)


def by_the_sum_of_anchors(net, outputs, targets, positives, ignore):
    """One image of AnchorYOLOLoss, box by box."""
    cells, priors = net.cells(None), net.priors(None)
    real = [t for t in targets if t[0] >= 0]
    claims = {}
    for target in real:
        near = [
            (overlap(priors[i], target[1:]), -i)
            for i in range(len(cells))
            if all(abs(target[1 + d] - cells[i, d]) < cells[i, 2 + d] for d in (0, 1))
        ]
        best = max(near)[0]
        for affinity, i in sorted(near, reverse=True)[:positives]:
            if affinity >= best / 2 and affinity > claims.get(-i, (-1,))[0]:
                claims[-i] = (affinity, target)
    box = confidence = classes = 0.0
    for i, row in enumerate(outputs):
        aim = 0.0
        if i in claims:
            target = claims[i][1]
            aim = overlap(row[:4], target[1:])
            corners = to_corners(row[:4]), to_corners(target[1:])
            box += 5.0 * (1 - float(box_iou(*corners, kind="complete")))
            label = F.one_hot(target[0].long(), CLASSES).double()
            classes += float(F.binary_cross_entropy(row[5:].sigmoid(), label, reduction="sum"))
        elif any(overlap(row[:4], t[1:]) >= ignore for t in real):
            continue
        p = 1 / (1 + math.exp(-row[4]))
        confidence -= aim * math.log(p) + (1 - aim) * math.log(1 - p)
    return [part / max(len(claims), 1) for part in (box, confidence, classes)]


@pytest.mark.parametrize("positives", [1, 3, 8])
def test_the_loss_for_anchors_is_its_sum(positives):
    outputs, targets = problem(seed=1)
    net, loss = Grid(outputs), AnchorYOLOLoss(positives=positives, ignore=0.3)
    terms = loss.terms(net, Batch(torch.zeros(5), targets), "train")
    rows = [
        by_the_sum_of_anchors(net, o, t, positives, 0.3)
        for o, t in zip(outputs, targets, strict=True)
    ]
    means = [sum(part) / len(rows) for part in zip(*rows, strict=True)]
    assert [terms[k].item() for k in ("box", "confidence", "classes")] == pytest.approx(means)


@pytest.mark.parametrize("loss", [YOLOLoss(), AnchorYOLOLoss()], ids=["paper", "anchors"])
def test_padding_changes_nothing_and_rows_are_averaged_by_weight(loss):
    outputs, targets = problem(seed=2)
    more = torch.cat([targets, torch.full((5, 3, 5), -1.0).double()], dim=1)
    weight = torch.tensor([1.0, 0, 2, 0, 1]).double()
    net = Grid(outputs)
    plain = loss.terms(net, Batch(torch.zeros(5), targets, weight), "train")
    padded = loss.terms(net, Batch(torch.zeros(5), more, weight), "train")
    chosen = [0, 2, 2, 4]
    repeated = loss.terms(Grid(outputs[chosen]), Batch(torch.zeros(4), targets[chosen]), "train")
    for name, value in plain.items():
        assert_close(padded[name], value)
        assert_close(repeated[name], value)


@pytest.mark.parametrize("loss", [YOLOLoss(), AnchorYOLOLoss()], ids=["paper", "anchors"])
def test_every_place_belongs_to_a_cell_edges_included(loss):
    outputs = torch.rand(1, S * S * BOXES, 5 + CLASSES).double()
    places = [k / 6 for k in range(7)]
    for cx in places:
        for cy in places:
            target = torch.tensor([[[0, cx, cy, 0.2, 0.2]]]).double()
            assert loss.claims(Grid(outputs), torch.zeros(1), outputs, target).learns.any()


def nets():
    grid = YOLO(3, 2, size=(32, 32), layers=slim_layers(4, 1, 8), hidden=0)
    anchors = AnchorYOLO(3, 2, anchors=[[(0.2, 0.2)], [(0.5, 0.5)]], strides=(8, 16), width=4)
    return {"paper": (grid, YOLOLoss()), "anchors": (anchors, AnchorYOLOLoss())}


@pytest.mark.parametrize("kind", ["paper", "anchors"])
def test_nothing_is_read_back_from_the_device(kind):
    net, loss = nets()[kind]
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:  # knows shapes, refuses values
        net = net.to("cpu")
        x, y = (mode.from_tensor(t) for t in (torch.rand(2, 3, 32, 32), torch.rand(2, 3, 5)))
        loss.terms(net, Batch(x, y), "train")["loss"].backward()


@pytest.mark.parametrize("kind", ["paper", "anchors"])
def test_a_few_steps_find_two_boxes(kind):
    torch.manual_seed(0)
    net, loss = nets()[kind]
    x = torch.rand(1, 3, 32, 32)
    y = torch.tensor([[[0, 0.25, 0.3, 0.25, 0.3], [1, 0.7, 0.75, 0.5, 0.4], [-1, 0, 0, 0, 0]]])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        loss.terms(net, Batch(x, y), "train")["loss"].backward()
        optimizer.step()
    outputs = net(x)[0]
    scores = net.scores(outputs)
    for label in (0, 1):
        best = outputs[scores[:, label].argmax(), :4]
        assert overlap(best.detach(), y[0, label, 1:]) > 0.7


def test_an_image_without_boxes_only_asks_for_silence():
    outputs, targets = torch.rand(1, 18, 9).double(), torch.full((1, 1, 5), -1.0).double()
    for loss in (YOLOLoss(), AnchorYOLOLoss()):
        terms = loss.terms(Grid(outputs), Batch(torch.zeros(1), targets), "train")
        assert terms["box"] == terms["classes"] == 0 < terms["confidence"]


def test_errors_name_the_values():
    with pytest.raises(InvalidParameter, match="`empty` must be 0 or more; got -1"):
        YOLOLoss(empty=-1)
    with pytest.raises(InvalidParameter, match="`positives` must be at least 1; got 0"):
        AnchorYOLOLoss(positives=0)
    outputs, _ = problem()
    with pytest.raises(ShapeMismatch, match=r"targets \(B, M, 5\).* got \(5, 18, 9\) and \(5, 4\)"):
        YOLOLoss().terms(Grid(outputs), Batch(torch.zeros(5), torch.zeros(5, 4)), "train")
