"""Masks and boxes that move with their images; what a CUDA graph can record; what can be saved."""

import json

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from castalia.base.saved_values import decode, encode
from castalia.data.augment import (
    Augment,
    Crop,
    Cutout,
    Flip,
    LabelNoise,
    Mask,
    Mixup,
    Noise,
    Recolor,
    Rotate,
    Shift,
    WithBoxes,
    WithMasks,
    Zoom,
    geometry,
    warp,
)
from castalia.errors import InvalidParameter, ShapeMismatch

PLACES = Rotate(20) | Flip() | Shift(0.2) | Zoom() | Crop(2)
VALUES = Recolor() | Noise(0.1) | Mask(0.2) | Cutout(0.4)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def images(n=6, channels=2, height=12, width=16):
    return torch.rand(n, channels, height, width, generator=source(7))


def test_crops_are_windows_of_the_padded_image():
    x = images(40, height=6, width=5)
    found, _ = Crop(2)(x, generator=source())
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2))
    places = set()
    for image, wide in zip(found, padded, strict=True):
        windows = wide.unfold(1, 6, 1).unfold(2, 5, 1).permute(1, 2, 0, 3, 4)  # (5, 5, C, 6, 5)
        near = (windows == image).flatten(2).all(dim=2)
        assert near.sum() == 1
        places.add(tuple(near.nonzero()[0].tolist()))
    assert {down for down, _ in places} == {across for _, across in places} == set(range(5))
    assert torch.equal(Crop(0)(x)[0], x)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_whole_moves_are_those_of_interpolation_but_exact(padding):
    steps = [Flip(padding=padding), Crop(3, padding=padding), Flip("vertical", padding=padding)]
    for height, width in ((7, 10), (8, 5)):
        x = images(30, height=height, width=width).double()
        maps = geometry(steps, x, source())
        found = Augment(steps)(x, generator=source())[0]
        assert_close(found, warp(x, maps, padding=padding), atol=1e-9, rtol=0)
        assert torch.isin(found, torch.cat([x.flatten(), torch.zeros(1)])).all()


def test_cutout_hides_a_rectangle_that_the_edges_may_cut():
    found, _ = Cutout(0.5, fill=9.0)(torch.zeros(300, 2, 8, 12), generator=source())
    hidden = (found == 9).all(dim=1)
    down, across = hidden.any(dim=2).sum(dim=1), hidden.any(dim=1).sum(dim=1)
    assert_close(hidden.sum(dim=(1, 2)), down * across)
    assert down.min() == 2  # half of it lies outside when its middle is an edge
    assert down.max() == 4
    assert across.max() == 6
    assert hidden.any(dim=0).all()


def test_masks_show_where_the_values_of_their_image_went():
    y = torch.randint(0, 5, (6, 12, 16), generator=source())
    x = y[:, None].double()  # an image of its own mask
    for step in (Flip(), Crop(3), Flip("vertical") | Crop(2)):
        moved, found = WithMasks(step, void=-1)(x, y, generator=source(3))
        inside = found != -1
        assert found.dtype == y.dtype
        assert_close(moved[:, 0][inside], found[inside].double(), atol=1e-6, rtol=0)
        assert (moved[:, 0][~inside].abs() < 1e-6).all()
    assert (~inside).any()


def test_turned_masks_hold_classes_and_the_void_only():
    y = torch.randint(0, 3, (6, 12, 16), generator=source()) * 7
    found = WithMasks(Rotate(45) | VALUES, void=255)(images(), y, generator=source())[1]
    assert set(found.unique().tolist()) == {0, 7, 14, 255}
    kept = WithMasks(Rotate(45, padding="reflection"))(images(), y, generator=source())[1]
    assert set(kept.unique().tolist()) == {0, 7, 14}
    maps = geometry([Rotate(45)], images(), source())
    counted = warp((y - 255)[:, None].float(), maps, mode="nearest")[:, 0] + 255
    assert_close(found, counted.long())


def test_images_are_changed_as_without_their_targets():
    x, y = images(), torch.zeros(6, 12, 16, dtype=torch.long)
    boxes = torch.tensor([1.0, 0.5, 0.5, 0.2, 0.2]).expand(6, 3, 5)
    steps = PLACES | VALUES
    alone = steps(x, generator=source())[0]
    assert_close(WithMasks(steps)(x, y, generator=source())[0], alone)
    assert_close(WithBoxes(steps)(x, boxes, generator=source())[0], alone)


def brute(box, maps, height, width):
    """The smallest box around four moved corners, not yet cut off: x1, y1, x2, y2 in pixels."""
    _, cx, cy, w, h = box
    corners = [
        maps
        @ torch.stack([(cx + i * w - 0.5) * width, (cy + j * h - 0.5) * height, box.new_ones(())])
        for i in (-0.5, 0.5)
        for j in (-0.5, 0.5)
    ]
    points = torch.stack(corners)[:, :2] + torch.tensor([width / 2, height / 2])
    return torch.cat([points.amin(dim=0), points.amax(dim=0)])


def test_boxes_go_where_their_corners_go_and_are_cut_off_at_the_edges():
    x, steps = images(), [Rotate(30), Zoom(0.5, 2.0), Shift(0.4)]
    y = torch.rand(6, 8, 5, generator=source(1)) * torch.tensor([4, 1, 1, 0.5, 0.5])
    y[..., 0] = y[..., 0].floor()
    y[:, 5:, 0] = -1  # padding
    found = WithBoxes(Augment(steps), least=0.2)(x, y, generator=source(2))[1]
    maps = geometry(steps, x, source(2))
    gone = 0
    for image in range(6):
        for box in range(8):
            x1, y1, x2, y2 = brute(y[image, box], maps[image], 12, 16)
            left, right = x1.clamp(0, 16), x2.clamp(0, 16)
            top, bottom = y1.clamp(0, 12), y2.clamp(0, 12)
            share = (right - left) * (bottom - top) / ((x2 - x1) * (y2 - y1))
            if y[image, box, 0] < 0 or share < 0.2:
                gone += int(y[image, box, 0] >= 0)
                assert found[image, box].tolist() == [-1, 0, 0, 0, 0]
                continue
            want = [
                (left + right) / 32,
                (top + bottom) / 24,
                (right - left) / 16,
                (bottom - top) / 12,
            ]
            assert found[image, box, 0] == y[image, box, 0]
            assert_close(found[image, box, 1:], torch.stack(want), atol=1e-5, rtol=0)
    assert gone > 3


def test_a_box_stays_around_the_thing_it_marks():
    x = torch.zeros(50, 1, 40, 60)
    x[:, :, 10:20, 24:36] = 1
    y = torch.tensor([3.0, 30 / 60, 15 / 40, 12 / 60, 10 / 40]).expand(50, 1, 5)
    moved, boxes = WithBoxes(Rotate(20) | Flip() | Shift(0.1) | Zoom())(x, y, generator=source())
    for image, (_, cx, cy, w, h) in zip(moved[:, 0] > 0.5, boxes[:, 0], strict=True):
        down, across = image.nonzero().unbind(dim=1)
        assert across.min() + 1.1 > (cx - w / 2) * 60
        assert across.max() - 0.1 < (cx + w / 2) * 60
        assert down.min() + 1.1 > (cy - h / 2) * 40
        assert down.max() - 0.1 < (cy + h / 2) * 40


class Unrecordable(TorchDispatchMode):
    """Refuses what a CUDA graph cannot record: host reads, host constants, shapes that depend."""

    BAD = ("_local_scalar_dense", "lift_fresh", "nonzero", "masked_select", "unique", "linalg_inv")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().split("::")[1]
        assert not name.startswith(self.BAD), name
        booleans = [i for i in (args[1] if name == "index.Tensor" else []) if i is not None]
        assert not any(i.dtype == torch.bool for i in booleans), name
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ["places", "whole", "values", "mixup", "masks", "boxes"])
def test_every_change_can_be_recorded(name):
    x, y = images(), torch.rand(6, 3)
    known = {"places": PLACES, "whole": Crop() | Flip(), "values": VALUES, "mixup": Mixup(0.4)}
    step = known.get(name)
    if name == "masks":
        step, y = WithMasks(PLACES | VALUES), torch.zeros(6, 12, 16, dtype=torch.long)
    if name == "boxes":
        step, y = WithBoxes(PLACES | VALUES), torch.rand(6, 4, 5)
    with Unrecordable():
        step(x, y)
    with pytest.raises(AssertionError), Unrecordable():
        torch.tensor([1.0]).add(1)


@pytest.mark.gpu
def test_every_change_is_recorded_by_a_cuda_graph():
    x = images().cuda()
    masks, boxes = torch.zeros(6, 12, 16, dtype=torch.long), torch.rand(6, 4, 5)
    codes = torch.arange(6).cuda()
    pairs = [
        (PLACES | VALUES, codes),
        (Crop() | Flip(), codes),
        (Mixup(0.4, classes=6), codes),
        (LabelNoise(0.5, 6), codes),
        (WithMasks(PLACES | VALUES), masks.cuda()),
        (WithBoxes(PLACES | VALUES), boxes.cuda()),
    ]
    for step, y in pairs:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            step(x, y)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found, _ = step(x, y)
        graph.replay()
        first = found.clone()
        graph.replay()
        assert torch.isfinite(found).all()
        assert isinstance(step, LabelNoise) or not torch.equal(first, found)


def test_autocast_does_not_blur_where_points_go():
    x = images(height=64, width=64)
    exact = PLACES(x, generator=source())[0]
    with torch.autocast("cpu", torch.bfloat16):
        found = PLACES(x, generator=source())[0]
    assert_close(found, exact)
    assert found.dtype == exact.dtype


@pytest.mark.parametrize(
    "step",
    [
        PLACES,
        VALUES,
        Mixup(0.4, 3),
        LabelNoise(0.1, 3),
        Augment([]),
        Recolor(limits=(0, 1)),
        WithMasks(PLACES | Cutout(0.3), void=11),
        WithBoxes(Flip("vertical"), least=0.5),
    ],
    ids=repr,
)
def test_transforms_can_be_saved_and_come_back_equal(step):
    tree, tensors = encode({"augment": step})
    again = decode(json.loads(json.dumps(tree)), tensors)["augment"]
    assert again == step
    assert repr(again) == repr(step)
    assert hash(again) == hash(step)
    assert step != Noise(0.77)


def test_errors_name_the_value():
    with pytest.raises(InvalidParameter, match="Crop: `pixels` must be a whole .*got 1.5"):
        Crop(1.5)
    with pytest.raises(InvalidParameter, match="Cutout: `share` must be between 0 and 1; got 2"):
        Cutout(2)
    with pytest.raises(InvalidParameter, match=r"leave labels alone; got Mixup\(alpha=0.2"):
        WithBoxes(Flip() | Mixup())
    with pytest.raises(InvalidParameter, match="WithMasks: `augment` must be a transform .*got 3"):
        WithMasks(3)
    with pytest.raises(InvalidParameter, match="`least` must be from 0 to 1; got 3"):
        WithBoxes(Flip(), least=3)
    with pytest.raises(ShapeMismatch, match=r"\(6, 12, 16\); got \(6, 5, 5\)"):
        WithMasks(Flip())(images(), torch.zeros(6, 5, 5))
    with pytest.raises(ShapeMismatch, match=r"must be \(B, M, 5\).*got \(6, 4\)"):
        WithBoxes(Flip())(images(), torch.zeros(6, 4))
