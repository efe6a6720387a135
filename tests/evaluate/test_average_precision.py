"""Average precision against hand-made lists and against loops written from the definitions."""

import numpy as np
import pytest

from castalia.data.images import Boxes
from castalia.errors import InvalidData, InvalidParameter, ShapeMismatch
from castalia.evaluate import detection_scores, mean_average_precision


def iou_of(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def ranking(found, label):
    rows = [
        (-float(boxes.scores[k]), image, k, boxes.corners[k].tolist())
        for image, boxes in enumerate(found)
        for k in range(len(boxes))
        if boxes.labels[k] == label
    ]
    return [(image, corners) for _, image, _, corners in sorted(rows, key=lambda r: r[:3])]


def truths(true, label):
    return [
        [
            (b.corners[k].tolist(), bool(b.difficult[k]))
            for k in range(len(b))
            if b.labels[k] == label
        ]
        for b in true
    ]


def outcomes(true, found, label, iou, coco):
    """Walk down the ranking of one class: True a hit, False a miss; ignored ones are left out."""
    boxes, taken, result = truths(true, label), set(), []
    for image, corners in ranking(found, label):
        overlap = [(iou_of(corners, c), i, hard) for i, (c, hard) in enumerate(boxes[image])]
        if coco:
            free = [o for o in overlap if not o[2] and (image, o[1]) not in taken and o[0] >= iou]
            if not free and any(hard and o >= iou for o, _, hard in overlap):
                continue
            best = max(free, default=None)
        else:
            best = max(overlap, key=lambda o: (o[0], -o[1]), default=None)
            best = best if best and best[0] >= iou else None
            if best and best[2]:
                continue
        hit = best is not None and (image, best[1]) not in taken
        if hit:
            taken.add((image, best[1]))
        result.append(hit)
    return result, sum(not hard for image in boxes for _, hard in image)


def area_of(hits, n, kind):
    """Integrate precision over recall by looking for the best precision at or beyond a recall."""
    curve = [(sum(hits[: k + 1]) / n, sum(hits[: k + 1]) / (k + 1)) for k in range(len(hits))]

    def beyond(recall):
        return max((p for r, p in curve if r >= recall - 1e-12), default=0.0)

    if kind == "voc":
        return sum(beyond(k / n) / n for k in range(1, n + 1))
    points = 11 if kind == "voc07" else 101
    return sum(beyond(k / (points - 1)) for k in range(points)) / points


def by_brute_force(true, found, kind, iou):
    overlaps = [0.5 + 0.05 * k for k in range(10)] if kind == "coco" else [iou]
    means = {}
    for label in sorted({x for boxes in true for x in boxes.labels.tolist()}):
        runs = [outcomes(true, found, label, t, kind == "coco") for t in overlaps]
        if runs[0][1]:
            means[label] = np.mean([area_of(hits, n, kind) for hits, n in runs])
    return means


def scenes(seed, n_images=8):
    """Crowded true boxes, some difficult, and predictions near some of them, with equal scores."""
    random = np.random.default_rng(seed)
    true, found = [], []
    for _ in range(n_images):
        n = random.integers(0, 7)
        low = random.uniform(0, 40, (n, 2))
        corners = np.hstack([low, low + random.uniform(10, 30, (n, 2))])
        labels = np.array(["ape", "bee", "cow"])[random.integers(0, 3, n)]
        true.append(Boxes(labels, corners, difficult=random.random(n) < 0.2))
        again = random.integers(0, n, 2 * n) if n else np.zeros(0, int)
        near = corners[again] + random.normal(0, 3, (len(again), 4))
        scores = random.integers(1, 9, len(again)) / 10
        found.append(Boxes(labels[again], near, scores=scores))
    return true, found


@pytest.mark.parametrize("kind", ["voc", "voc07", "coco"])
@pytest.mark.parametrize("seed", range(6))
def test_it_equals_brute_force(kind, seed):
    true, found = scenes(seed)
    iou = (0.5, 0.7)[seed % 2]
    scores = detection_scores(true, found, iou=iou, kind=kind)
    expected = by_brute_force(true, found, kind, iou)
    assert {c.label: c.precision for c in scores.classes if c.true} == pytest.approx(expected)
    assert scores.mean == pytest.approx(np.mean(list(expected.values())))
    assert 0.05 < scores.mean < 0.95


def one(scores, hits, n_true):
    """Images of one class where the ranking has these hits."""
    true = [Boxes([0], [[0, 0, 10, 10]]) for _ in range(n_true)]
    found, image = [[] for _ in range(n_true)], 0
    for score, hit in zip(scores, hits, strict=True):
        found[image].append([0, *((0, 0, 10, 10) if hit else (50, 50, 60, 60)), score])
        image += hit
    return true, [np.array(rows).reshape(-1, 6) for rows in found]


def test_a_short_list_gives_what_one_computes_by_hand():
    # Hits at ranks 1, 3 and 4 of 4 true boxes: precisions 1, 2/3, 3/4, made to fall 1, 3/4, 3/4.
    true, found = one([0.9, 0.8, 0.7, 0.6, 0.5], [True, False, True, True, False], 4)
    assert mean_average_precision(true, found) == pytest.approx((1 + 3 / 4 + 3 / 4) / 4)
    # Recalls 0, .1, .2 are met with precision 1; .3 to .7 with 3/4; .8, .9 and 1 never.
    elevens = (3 * 1 + 5 * 3 / 4) / 11
    assert mean_average_precision(true, found, kind="voc07") == pytest.approx(elevens)
    hundreds = (26 * 1 + 50 * 3 / 4) / 101
    assert mean_average_precision(true, found, kind="coco") == pytest.approx(hundreds)


def test_finding_a_box_twice_is_a_mistake():
    true = [Boxes(["a"], [[0, 0, 10, 10]])] * 2
    twice = Boxes(["a", "a"], [[0, 0, 10, 10], [0, 0, 10, 9]], scores=[0.9, 0.8])
    once = Boxes(["a"], [[0, 0, 10, 10]], scores=[0.7])
    assert mean_average_precision(true, [twice, once]) == pytest.approx((1 + 2 / 3) / 2)


def test_finding_a_difficult_box_counts_neither_way():
    true = [Boxes(["a", "a"], [[0, 0, 10, 10], [20, 0, 30, 10]], difficult=[False, True])]
    for kind in ("voc", "coco"):
        hard = Boxes(["a"] * 3, [[20, 0, 30, 10]] * 2 + [[0, 0, 10, 10]], scores=[0.9, 0.8, 0.7])
        assert mean_average_precision(true, [hard], kind=kind) == pytest.approx(1.0)


def test_a_class_without_true_boxes_leaves_the_mean_alone_and_is_shown():
    true = [Boxes(["a"], [[0, 0, 10, 10]])]
    found = [Boxes(["a", "b"], [[0, 0, 10, 10]] * 2, scores=[0.9, 0.8])]
    scores = detection_scores(true, found)
    assert scores.mean == 1.0
    assert [(c.label, c.true, c.predicted) for c in scores.classes] == [("a", 1, 1), ("b", 0, 1)]
    assert np.isnan(scores.classes[1].precision)


def test_where_voc_and_coco_part_ways():
    # The second prediction overlaps the found box most, and another, free one enough.
    true = [Boxes([0, 0], [[0, 0, 10, 10], [2, 0, 12, 10]])]
    found = [Boxes([0, 0], [[0, 0, 10, 10], [0.5, 0, 10.5, 10]], scores=[0.9, 0.8])]
    coco = detection_scores(true, found, kind="coco")
    assert mean_average_precision(true, found) == pytest.approx(0.5)
    assert coco.classes[0].recall > 0.5


def test_nothing_to_find_is_no_number():
    assert np.isnan(mean_average_precision([np.zeros((0, 5))], [np.zeros((0, 6))]))


def test_errors_name_the_values():
    boxes = [Boxes([0], [[0, 0, 1, 1]])]
    with pytest.raises(InvalidParameter, match=r"`kind` must be .*got 'VOC'. Did you mean `voc`"):
        mean_average_precision(boxes, boxes, kind="VOC")
    with pytest.raises(InvalidParameter, match="`iou` must be above 0 and at most 1; got 50"):
        mean_average_precision(boxes, boxes, iou=50)
    with pytest.raises(ShapeMismatch, match="one entry an image, 1 as `y_true` does; got 2"):
        mean_average_precision(boxes, boxes * 2)
    with pytest.raises(InvalidData, match="must have `scores`"):
        mean_average_precision(boxes, boxes)
    with pytest.raises(ShapeMismatch, match=r"\(M, 5\) .*got shape \(1, 4\)"):
        mean_average_precision([[[0, 0, 1, 1]]], boxes)
