"""Overlap, suppression and anchors, against loops written from the definitions."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter, ShapeMismatch
from castalia.nn import (
    anchor_sizes,
    box_iou,
    from_corners,
    iou_matrix,
    non_maximum_suppression,
    suppress,
    to_corners,
)

PASCAL = torch.tensor([[57.0, 133, 329, 265], [153.0, 95, 396, 218]])


def scattered(n, seed=0, size=30.0):
    generator = torch.Generator().manual_seed(seed)
    low = torch.rand(n, 2, generator=generator, dtype=torch.float64) * 100
    sides = torch.rand(n, 2, generator=generator, dtype=torch.float64) * size + 1
    return torch.cat([low, low + sides], dim=1)


def area(x1, y1, x2, y2):
    return max(x2 - x1, 0.0) * max(y2 - y1, 0.0)


def iou_of(a, b):
    shared = area(max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
    union = area(*a) + area(*b) - shared
    return shared / union if union else 0.0


def greedy(corners, scores, labels, iou):
    """Walk down the ranking and keep what no kept box of the label overlaps too much."""
    kept = []
    for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
        if all(labels[i] != labels[k] or iou_of(corners[i], corners[k]) <= iou for k in kept):
            kept.append(i)
    return kept


def test_the_pascal_pair_overlaps_as_computed_by_hand():
    assert_close(box_iou(*PASCAL), torch.tensor(14960 / (35904 + 29889 - 14960)))
    assert float(box_iou(*PASCAL)) == pytest.approx(0.294297, abs=5e-7)
    assert float(box_iou(*PASCAL, inclusive=True)) == pytest.approx(0.296477, abs=5e-7)


def test_the_matrix_is_that_of_the_definition():
    first, second = scattered(20), scattered(15, seed=1)
    expected = [[iou_of(a, b) for b in second.tolist()] for a in first.tolist()]
    assert_close(iou_matrix(first, second), torch.tensor(expected, dtype=torch.float64))


def test_generalised_overlap_is_negative_for_boxes_apart_and_plain_for_boxes_inside():
    apart = torch.tensor([0.0, 0, 1, 1]), torch.tensor([3.0, 0, 4, 1])
    assert_close(box_iou(*apart, kind="generalised"), torch.tensor(-(4 - 2) / 4))
    inside = torch.tensor([0.0, 0, 4, 4]), torch.tensor([1.0, 1, 2, 2])
    assert_close(box_iou(*inside, kind="generalised"), torch.tensor(1 / 16))


def test_complete_overlap_subtracts_distance_and_aspect_as_in_the_paper():
    a, b = torch.tensor([0.0, 0, 4, 2], dtype=torch.float64), torch.tensor([1.0, 1, 3, 4]).double()
    iou = 2 / (8 + 6 - 2)
    distance = ((2 - 2) ** 2 + (1 - 2.5) ** 2) / (4**2 + 4**2)
    angles = torch.atan(torch.tensor([4 / 2, 2 / 3], dtype=torch.float64))
    v = float(4 / torch.pi**2 * (angles[0] - angles[1]) ** 2)
    expected = iou - distance - v * v / (1 - iou + v)
    assert float(box_iou(a, b, kind="complete")) == pytest.approx(expected)


def test_boxes_without_area_overlap_by_nothing():
    point = torch.tensor([2.0, 2, 2, 2])
    for kind in ("plain", "generalised", "complete"):
        assert torch.isfinite(box_iou(point, point, kind=kind))
    assert box_iou(point, point) == 0


@pytest.mark.parametrize("kind", ["plain", "generalised", "complete"])
def test_slopes_are_those_of_differences(kind):
    first, second = scattered(6).requires_grad_(), scattered(6, seed=3)
    if kind == "complete":  # the weight of the aspect is a constant for the gradient: compare parts
        box_iou(first, second, kind=kind).sum().backward()
        assert torch.isfinite(first.grad).all()
        assert (first.grad != 0).any()
        return
    assert torch.autograd.gradcheck(lambda a: box_iou(a, second, kind=kind), first)


def test_it_agrees_with_torchvision():
    ops = pytest.importorskip("torchvision.ops")
    a, b = scattered(20), scattered(20, seed=1)
    assert_close(iou_matrix(a, b), ops.box_iou(a, b))
    assert_close(iou_matrix(a, b, kind="generalised"), ops.generalized_box_iou(a, b))
    assert_close(iou_matrix(a, b, kind="complete"), ops.complete_box_iou(a, b))
    scores, labels = torch.rand(20).double(), torch.arange(20) % 3
    kept = non_maximum_suppression(a, scores, labels, iou=0.3)
    assert kept.tolist() == ops.batched_nms(a, scores, labels, 0.3).tolist()


def test_centres_and_corners_are_inverse():
    corners = scattered(10)
    assert_close(to_corners(from_corners(corners)), corners)


@pytest.mark.parametrize("iou", [0.1, 0.5, 0.8])
@pytest.mark.parametrize("n_labels", [1, 3])
def test_suppression_keeps_what_the_greedy_loop_keeps(iou, n_labels):
    for seed in range(10):
        corners = scattered(60, seed, size=40.0)
        generator = torch.Generator().manual_seed(seed)
        scores = torch.randint(0, 20, (60,), generator=generator) / 20.0  # many are equal
        labels = torch.randint(0, n_labels, (60,), generator=generator)
        kept = non_maximum_suppression(corners, scores, labels, iou=iou)
        expected = greedy(corners.tolist(), scores.tolist(), labels.tolist(), iou)
        assert kept.tolist() == expected


def test_a_long_chain_keeps_every_second_box():
    # Each box overlaps the next only: the slowest case of the iteration.
    starts = torch.arange(40.0) * 2
    zero = torch.zeros(40)
    chain = torch.stack([starts, zero, starts + 3, zero + 1], dim=1)
    kept = non_maximum_suppression(chain, 1 - torch.arange(40) / 100, iou=0.1)
    assert kept.tolist() == list(range(0, 40, 2))


def test_a_batch_is_suppressed_image_by_image():
    corners = torch.stack([scattered(30, seed, size=40.0) for seed in range(4)])
    scores = torch.rand(4, 30, generator=torch.Generator().manual_seed(0))
    alone = torch.stack([suppress(c, s) for c, s in zip(corners, scores, strict=True)])
    assert torch.equal(suppress(corners, scores), alone)
    assert not alone.all()


def test_no_boxes_are_no_trouble():
    assert non_maximum_suppression(torch.zeros(0, 4), torch.zeros(0)).tolist() == []


def test_anchors_are_a_fixed_point_of_k_means_and_better_than_equal_squares():
    sizes = scattered(200, size=60.0)[:, 2:] - scattered(200, size=60.0)[:, :2]
    anchors = anchor_sizes(sizes, 4)

    def best(anchors):
        overlap = [
            [iou_of((0, 0, *s), (0, 0, *a)) for a in anchors.tolist()] for s in sizes.tolist()
        ]
        return torch.tensor(overlap).max(dim=1)

    nearest = best(anchors)
    means = torch.stack([sizes[nearest.indices == k].mean(dim=0) for k in range(4)])
    assert_close(anchors, means)
    squares = torch.tensor([15.0, 30, 45, 60])[:, None].expand(4, 2)
    assert nearest.values.mean() > best(squares).values.mean()
    assert anchors.prod(dim=1).diff().min() > 0


def test_fewer_sizes_than_anchors_repeat():
    assert anchor_sizes(torch.tensor([[3.0, 4.0]]), 3).tolist() == [[3.0, 4.0]] * 3


def test_errors_name_the_values():
    with pytest.raises(InvalidParameter, match="`kind` must be one of .* got 'giou'"):
        box_iou(*PASCAL, kind="giou")
    with pytest.raises(ShapeMismatch, match=r"got \(2, 4\) and \(3,\)"):
        non_maximum_suppression(PASCAL, torch.zeros(3))
    with pytest.raises(ShapeMismatch, match=r"N above 0; got \(0, 2\)"):
        anchor_sizes(torch.zeros(0, 2), 2)
