"""The detector end to end: synthetic scenes, odd boxes, class names, saving."""

import copy
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone

import castalia
from castalia import Training
from castalia.data.augment import Flip
from castalia.data.images import Boxes, as_images
from castalia.errors import DataWarning, InvalidData, InvalidParameter
from castalia.models.vision import YOLODetector
from castalia.models.vision.detector_task import pad_boxes
from castalia.nn import iou_matrix
from castalia.objectives import Augmented, YOLOLoss
from castalia.protocols import Batch, Spec
from castalia.testing.toys import scenes

X, Y = scenes()
UNSEEN, TRUE = scenes(n=40, seed=1)
SETTINGS = {
    "anchors": {"strides": (4,), "anchors": 1, "epochs": 8, "image_size": 32, "overlap": 0.3},
    "grid": {"strides": (8,), "design": "grid", "epochs": 12, "image_size": 32, "overlap": 0.3},
}


def small(**settings):
    training = Training(schedule="cosine", validation=0)
    settings = {"training": training, "random_state": 0, "batch_size": 16, **settings}
    return YOLODetector(**{"width": 8, "lr": 1e-2, **settings})


def quick(**settings):
    return small(**{"epochs": 1, "width": 4, "strides": (8,), **settings})


@pytest.fixture(scope="module", params=["anchors", "grid"])
def fitted(request):
    return small(**SETTINGS[request.param]).fit(X, Y)


def best_overlaps(found, true):
    """For each true box the best overlap with a found box of its class."""
    overlap = iou_matrix(torch.from_numpy(true.corners), torch.from_numpy(found.corners))
    same = torch.from_numpy(true.labels[:, None] == found.labels)
    return (overlap * same).amax(dim=1) if len(found) else torch.zeros(len(true))


def test_shapes_never_seen_are_found_with_an_overlap_above_one_half(fitted):
    found = fitted.predict(UNSEEN)
    overlaps = torch.cat([best_overlaps(f, t) for f, t in zip(found, TRUE, strict=True)])
    assert (overlaps > 0.5).float().mean() > 0.9
    assert overlaps[overlaps > 0.5].mean() > 0.75


def test_one_box_is_left_for_each_thing(fitted):
    def finders(found):
        """Count the boxes of its class that overlap each thing by more than half."""
        return [
            n
            for f, t in zip(found, TRUE, strict=True)
            for n in (
                (iou_matrix(torch.from_numpy(t.corners), torch.from_numpy(f.corners)) > 0.5)
                & torch.from_numpy(t.labels[:, None] == f.labels)
            ).sum(dim=1)
        ]

    once = np.array(finders(fitted.predict(UNSEEN)))
    assert once.max() == 1
    assert (once == 1).mean() > 0.9
    assert sum(map(len, fitted.predict(UNSEEN))) < 1.1 * len(once)
    unfiltered = YOLODetector(**{**fitted.get_params(deep=False), "overlap": 1.0})
    vars(unfiltered).update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
    assert max(finders(unfiltered.predict(UNSEEN))) > 1  # there was something to remove


def test_scores_fall_and_lie_between_the_threshold_and_one(fitted):
    for boxes in fitted.predict(UNSEEN, threshold=0.4):
        assert (np.diff(boxes.scores) <= 0).all()
        assert ((boxes.scores >= 0.4) & (boxes.scores <= 1)).all()
    assert sum(map(len, fitted.predict(UNSEEN, threshold=0.9))) < sum(
        map(len, fitted.predict(UNSEEN))
    )


def test_boxes_come_in_the_pixels_of_the_picture_they_were_found_on(fitted):
    wide = UNSEEN.repeat(2, axis=2)  # 32 x 64; brought to 32 x 32 they are what they were
    found, plain = fitted.predict(wide), fitted.predict(UNSEEN)
    assert max(b.corners[:, 2].max() for b in found if len(b)) > 33
    assert fitted.score(wide, [b.scaled(1, 2) for b in TRUE]) > 0.9
    assert fitted.score(UNSEEN, TRUE) > 0.9
    assert sum(map(len, found)) == pytest.approx(sum(map(len, plain)), abs=3)


def test_arrays_and_records_of_boxes_are_one():
    codes = {"disc": 3, "square": 7}
    arrays = [np.column_stack([[codes[k] for k in b.labels], b.corners]) for b in Y[:40]]
    first, second = quick().fit(X[:40], Y[:40]), quick().fit(X[:40], arrays)
    assert second.classes_.tolist() == [3, 7]
    for a, b in zip(first.module_.parameters(), second.module_.parameters(), strict=True):
        assert torch.equal(a, b)


def test_boxes_that_cannot_be_are_left_out_with_one_warning_that_names_them():
    boxes = [Boxes(b.labels, b.corners) for b in Y[:20]]
    boxes[3] = Boxes(["disc"], [[10, 10, 10, 30]])  # no area
    boxes[5] = Boxes(["disc", "disc"], [[60, 5, 80, 20], [25, 10, 60, 25]])  # outside; half outside
    with pytest.warns(DataWarning) as caught:
        model = quick().fit(X[:20], boxes)
    assert len(caught) == 1
    assert "2 boxes without area inside the image left out (images 3, 5)" in str(caught[0].message)
    assert "1 box cut off at the edge (image 5)" in str(caught[0].message)
    clean = [*boxes]
    clean[3], clean[5] = Boxes([], []), Boxes(["disc"], [[25, 10, 32, 25]])
    same = quick().fit(X[:20], clean)
    assert torch.equal(model.module_.heads[0][1].weight, same.module_.heads[0][1].weight)


def test_nothing_but_impossible_boxes_is_an_error():
    flat = [Boxes(["disc"], [[5, 5, 5, 9]])] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        with pytest.raises(InvalidData, match="at least one box with an area .* none on 4 images"):
            quick().fit(X[:4], flat)


def test_pictures_without_boxes_are_background():
    boxes = [Boxes([], []) if i % 2 else Y[i] for i in range(20)]
    assert len(quick().fit(X[:20], boxes).predict(X[:2])) == 2


def test_difficult_boxes_are_not_learnt():
    hard = [Boxes(b.labels, b.corners, difficult=np.arange(len(b)) > 0) for b in Y[:20]]
    first = [b.take([0]) for b in Y[:20]]
    models = [quick().fit(X[:20], boxes) for boxes in (hard, first)]
    assert torch.equal(*(m.module_.heads[0][1].weight for m in models))


def test_boxes_move_with_their_pictures(fitted):
    model = clone(fitted).set_params(augment=Flip(chance=1.0))
    objective = model._objective(fitted.spec_)
    rows = fitted.adapter_.rows(as_images(X), np.float32)
    batch = Batch(
        rows.take(torch.arange(len(X))),
        pad_boxes(fitted.codec.check(fitted, fitted.adapter_, as_images(X), Y), fitted.classes_),
    )
    mirrored = batch.y.clone()
    mirrored[..., 1] = 1 - mirrored[..., 1]
    by_hand, left_behind = (
        Augmented(objective.objective, lambda x, y, new=new: (x.flip(3), new))
        for new in (mirrored, batch.y)
    )
    net = copy.deepcopy(fitted.module_).train()
    moved, expected, wrong = (
        change.terms(net, batch, "train")["box"].item()
        for change in (objective, by_hand, left_behind)
    )
    assert moved == pytest.approx(expected, rel=1e-3)
    assert wrong > 1.5 * moved


def test_a_saved_model_answers_the_same(fitted, tmp_path):
    again = castalia.load(castalia.save(fitted, tmp_path / "model"))
    assert again.predict(UNSEEN[:5]) == fitted.predict(UNSEEN[:5])


def test_anchors_are_typical_sizes_small_ones_on_the_fine_grid():
    model = quick(strides=(8, 16), anchors=2).fit(X[:40], Y[:40])
    areas = model.anchors_.prod(axis=2).ravel()
    assert model.anchors_.shape == (2, 2, 2)
    assert (np.diff(areas) > 0).all()
    assert 8 / 32 <= model.anchors_.min() <= model.anchors_.max() <= 14 / 32
    assert quick(design="grid").fit(X[:40], Y[:40]).anchors_ is None


def test_the_paper_design_is_the_papers_network(monkeypatch):
    # Its 270 million weights are made and counted where the network is tested.
    monkeypatch.setattr("castalia.models.vision.yolo_detector.YOLO", lambda *a, **k: (a, k))
    spec = Spec(3, 20, extra={"size": [448, 448]})
    arguments, settings = YOLODetector(design="paper")._network(spec)
    assert arguments == (3, 20)
    assert settings == {"size": [448, 448], "boxes": 2}  # layers and dense units: the defaults
    assert isinstance(YOLODetector(design="paper")._objective(spec), YOLOLoss)


def test_held_out_boxes_may_have_no_new_class():
    other = [Boxes(["cat"], [[0, 0, 9, 9]])]
    with pytest.raises(InvalidData, match="seen in training, `disc` and `square`; got 'cat'"):
        quick(training=Training(validation=(X[:1], other))).fit(X[:20], Y[:20])


def test_errors_name_the_values(fitted):
    with pytest.raises(InvalidData, match="same number of rows; got 3 images and boxes of 2"):
        quick().fit(X[:3], Y[:2])
    with pytest.raises(InvalidData, match="list with the boxes of each image; got 'boxes'"):
        quick().fit(X[:3], "boxes")
    with pytest.raises(InvalidParameter, match="`threshold` must be from 0 to 1; got 25"):
        fitted.predict(X[:1], threshold=25)
    with pytest.raises(InvalidParameter, match="`sample_weight` must be None"):
        fitted.score(X[:2], Y[:2], sample_weight=[1, 1])
    with pytest.raises(InvalidParameter, match=r"powers of two .* that rise.* got \(16, 24\)"):
        quick(strides=(16, 24)).fit(X[:20], Y[:20])
    with pytest.raises(InvalidParameter, match="`design` must be"):
        quick(design="v8").fit(X[:20], Y[:20])


@pytest.mark.parametrize(
    "boxes, said",
    [
        ([[0, 0.1, 0.1, 0.5, 0.5]], "in pixels; none is above 0.5, .* shares of the image"),
        ([[0, np.nan, 1, 5, 5]], "boxes of image 0 cannot be read.*finite numbers"),
        ([[0, 1, 5, 5]], r"boxes of image 0 cannot be read.*got shape \(1, 4\)"),
        ([["disc", "a", "b", "c", "d"]], "boxes of image 0 cannot be read"),
        (Boxes([0], [[1, 1, 5, 5]], difficult=[True]), "not marked difficult; got none on 2"),
    ],
    ids=["shares", "NaN", "columns", "words", "difficult"],
)
def test_boxes_that_cannot_be_learnt_are_told_with_their_picture(boxes, said):
    with pytest.raises(InvalidData, match=said):
        YOLODetector(epochs=1).fit(np.zeros((2, 32, 32)), [boxes, boxes])
