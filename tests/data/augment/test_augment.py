"""Random changes of batches: exact where the change is known."""

import math

import pytest
import torch
from scipy import stats
from torch.testing import assert_close

from castalia.data.augment import (
    Augment,
    Flip,
    LabelNoise,
    Mask,
    Mixup,
    Noise,
    Recolor,
    Rotate,
    Shift,
    Zoom,
    geometry,
    warp,
)
from castalia.errors import InvalidData, InvalidParameter


def images(n=6, channels=2, height=7, width=9):
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(0))


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def turn(degrees, n=1):
    angle = math.radians(degrees)
    rows = [[math.cos(angle), math.sin(angle), 0], [-math.sin(angle), math.cos(angle), 0]]
    return torch.tensor([*rows, [0, 0, 1]]).expand(n, 3, 3)


def test_quarter_turns_are_those_of_rot90():
    x = images(height=8, width=8)
    for quarters in (1, 2, 3):
        assert_close(
            warp(x, turn(90 * quarters, 6)),
            torch.rot90(x, quarters, dims=(2, 3)),
            atol=1e-5,
            rtol=0,
        )


def test_mirror_images_are_those_of_flip():
    x = images()
    for axis, dim in (("horizontal", 3), ("vertical", 2)):
        found, _ = Flip(axis, chance=1.0)(x)
        assert_close(found, x.flip(dim), atol=1e-5, rtol=0)
        assert_close(Flip(axis, chance=0.0)(x)[0], x, atol=1e-5, rtol=0)


def test_about_half_of_the_images_are_mirrored():
    x = torch.arange(4.0).expand(1000, 1, 1, 4)
    found, _ = Flip()(x, generator=source())
    assert abs((found[:, 0, 0, 0] > 1.5).sum().item() - 500) < 3 * 250**0.5


def test_a_shift_moves_by_pixels_and_never_further_than_its_share():
    x = torch.zeros(200, 1, 10, 20)
    x[:, :, 5, 10] = 1
    maps = geometry([Shift(0.2)], x, source())
    assert maps[:, 0, 2].abs().max() <= 4
    assert maps[:, 1, 2].abs().max() <= 2
    assert maps[:, 0, 2].abs().max() > 3.5
    assert len(maps[:, 0, 2].unique()) > 190
    whole = maps.clone()
    whole[:, :2, 2] = whole[:, :2, 2].round()
    moved = warp(x, whole)
    at = moved.flatten(1).argmax(dim=1)
    assert_close(at % 20 - 10, whole[:, 0, 2].long())
    assert_close(at // 20 - 5, whole[:, 1, 2].long())


def test_a_zoom_of_two_shows_the_middle_half_twice_as_large():
    x = torch.arange(8.0).expand(1, 1, 8, 8)
    found, _ = Zoom(2.0, 2.0, padding="border")(x)
    assert_close(found[0, 0, 0], torch.linspace(1.75, 5.25, 8))


def test_every_image_has_parameters_of_its_own():
    x = images(1).expand(4, -1, -1, -1)
    for step in (Rotate(), Shift(), Zoom(), Recolor(), Noise(), Mask()):
        found, _ = step(x, generator=source())
        assert not torch.allclose(found[0], found[1])


def test_neighbouring_changes_of_place_are_one_interpolation():
    x = images(height=16, width=16)
    maps = turn(10, 6), turn(20, 6)
    twice, once = warp(warp(x, maps[0]), maps[1]), warp(x, maps[1] @ maps[0])
    assert not torch.allclose(twice, once, atol=0.05)
    steps = Rotate(10), Shift(0.1), Flip()
    joined = steps[0] | steps[1] | steps[2]
    found, _ = joined(x, generator=source())
    assert_close(found, warp(x, geometry(steps, x, source())))
    mixed = Rotate(10) | Noise(0.0) | Rotate(10, padding="border")
    assert len(mixed.steps) == 3
    assert mixed(x)[0].shape == x.shape


def test_products_of_maps_say_where_points_go():
    x = torch.zeros(1, 1, 21, 31)
    x[0, 0, 4, 20] = 1  # 5 right of the middle, 6 above it
    maps = geometry([Rotate(40), Shift(0.1)], x, source(3))
    to = maps[0] @ torch.tensor([5.0, -6.0, 1.0])
    seen = warp(x, maps)[0, 0]
    down, right = torch.meshgrid(torch.arange(21.0), torch.arange(31.0), indexing="ij")
    centre = [(seen * v).sum() / seen.sum() for v in (right - 15, down - 10)]
    assert_close(torch.stack(centre), to[:2], atol=0.35, rtol=0)


def test_masks_move_along_with_their_image():
    x = images(height=12, width=12)
    mask = (x[:, :1] > 0.5).float()
    maps = geometry([Rotate(180), Zoom()], x, source())
    found = warp(mask, maps, mode="nearest")
    assert set(found.unique().tolist()) == {0.0, 1.0}


def test_the_same_generator_gives_the_same_change_and_none_touches_the_input():
    x, y, before = images(), torch.arange(6), images()
    steps = Rotate() | Zoom() | Recolor() | Noise() | Mask() | Mixup(classes=6)
    first, second, other = (steps(x, y, generator=source(seed)) for seed in (0, 0, 1))
    assert_close(first, second, rtol=0, atol=0)
    assert not torch.equal(first[0], other[0])
    assert_close(x, before, rtol=0, atol=0)


def test_recoloured_images_keep_their_structure():
    x = images(height=5, width=5, channels=3)
    found, _ = Recolor(brightness=0.3, contrast=0.0, saturation=0.0)(x)
    assert_close((found - x).flatten(1).std(dim=1), torch.zeros(6), atol=1e-6, rtol=0)
    assert (found - x).abs().max() <= 0.3
    found, _ = Recolor(0.0, 0.5, 0.0)(x)
    assert_close(found.mean(dim=(1, 2, 3)), x.mean(dim=(1, 2, 3)))
    ratio = found.flatten(1).std(dim=1) / x.flatten(1).std(dim=1)
    assert ratio.min() >= 0.5
    assert ratio.max() <= 1.5
    assert ratio.std() > 0.05
    found, _ = Recolor(0.0, 0.0, 0.5)(x)
    assert_close(found.mean(dim=1), x.mean(dim=1))
    bright, _ = Recolor(5.0, limits=(0, 1))(x)
    assert bright.min() >= 0
    assert bright.max() <= 1


def test_a_mask_hides_one_rectangle_in_all_channels_or_single_inputs():
    found, _ = Mask(0.25, fill=9.0)(torch.zeros(50, 2, 8, 10), generator=source())
    hidden = found == 9
    assert (hidden.sum(dim=(2, 3)) == 4 * 5).all()
    assert torch.equal(hidden[:, 0], hidden[:, 1])
    assert (hidden[:, 0].any(dim=2).sum(dim=1) == 4).all()
    assert hidden[:, 0].any(dim=0).all()  # it may lie anywhere
    found, _ = Mask(0.25)(torch.ones(200, 50), generator=source())
    assert abs((found == 0).float().mean().item() - 0.25) < 3 * (0.25 * 0.75 / 10000) ** 0.5


def test_noise_has_its_width_for_rows_of_any_shape():
    for shape in ((5000, 4), (500, 1, 6, 7)):
        found, _ = Noise(0.3)(torch.zeros(shape, dtype=torch.float64), generator=source())
        assert found.std().item() == pytest.approx(0.3, rel=0.03)
        assert found.dtype == torch.float64


def test_mixed_rows_lie_between_two_rows_and_targets_follow():
    codes = torch.arange(6).repeat(500)
    x = torch.nn.functional.one_hot(codes, 6).double()
    found, soft = Mixup(0.4, classes=6)(x, codes, generator=source())
    assert_close(found, soft)  # inputs and targets are the same here, so they mix the same
    assert_close(soft.sum(dim=1), torch.ones(3000).double())
    assert ((soft > 0).sum(dim=1) <= 2).all()
    assert (soft.argmax(dim=1) == codes).all()
    share = soft.gather(1, codes[:, None])[soft.amax(dim=1) < 1]
    folded = stats.beta(0.4, 0.4)
    assert stats.kstest(share, lambda m: folded.cdf(m) - folded.cdf(1 - m)).pvalue > 0.01


def test_mixed_numbers_stay_numbers():
    x = torch.randn(20, 3, generator=source())
    found, y = Mixup(1.0)(x, 2 * x[:, :1], generator=source())
    assert_close(y, 2 * found[:, :1])
    assert Mixup()(x)[1] is None


def test_wrong_labels_are_as_many_as_asked_for_and_never_the_true_one():
    y = torch.arange(4).repeat(2500)
    x = torch.zeros(10000, 1)
    same, found = LabelNoise(0.3, 4)(x, y, generator=source())
    assert same is x
    wrong = found != y
    assert abs(wrong.sum().item() - 3000) < 3 * (10000 * 0.3 * 0.7) ** 0.5
    steps = torch.bincount((found - y)[wrong] % 4, minlength=4)
    assert steps[0] == 0
    assert stats.chisquare(steps[1:]).pvalue > 0.01


def test_nothing_is_a_transform_too():
    x, y = Augment([])(images(), torch.arange(6))
    assert_close(x, images())
    assert repr(Augment([Noise(0.1), Mask()])) == "Noise(std=0.1) | Mask(share=0.25, fill=0.0)"


def test_errors_name_the_value():
    with pytest.raises(InvalidData, match=r"Rotate: images must be floats .*got torch.uint8"):
        Rotate()(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))
    with pytest.raises(InvalidData, match=r"Recolor: images must be .*got torch.float32 \(2, 3\)"):
        Recolor()(torch.zeros(2, 3))
    with pytest.raises(InvalidParameter, match=r"Shift: `padding` must be .*got 'mirror'"):
        Shift(padding="mirror")
    with pytest.raises(InvalidParameter, match=r"Flip: `axis` must be .*got 'x'"):
        Flip("x")
    with pytest.raises(InvalidParameter, match=r"got low=2 and high=1"):
        Zoom(2, 1)
    with pytest.raises(InvalidParameter, match=r"Mask: `share` must be between 0 and 1; got 2"):
        Mask(2)
    with pytest.raises(InvalidParameter, match=r"Mixup: `classes` must be the number of classes"):
        Mixup()(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(InvalidParameter, match=r"Mixup: `alpha` must be above 0; got 0"):
        Mixup(0)
    with pytest.raises(InvalidData, match=r"LabelNoise: targets must be class codes .*got None"):
        LabelNoise(0.1, 3)(torch.zeros(2, 3))
    with pytest.raises(InvalidParameter, match=r"LabelNoise: `classes` must be at least 2; got 1"):
        LabelNoise(0.1, 1)


def test_noise_and_codes_out_of_range_are_refused():
    with pytest.raises(InvalidParameter, match="`share` must be from 0 to 1; got 1.5"):
        LabelNoise(1.5, 3)
    with pytest.raises(InvalidParameter, match="`std` must be finite and at least 0"):
        Noise(-1.0)
    with pytest.raises(InvalidParameter, match="every step must be a transform; got 3"):
        Noise(0.1) | 3
    for step in (Mixup(classes=2), LabelNoise(0.5, 2)):
        with pytest.raises(InvalidData, match="codes must be from 0 to 1; got 0 to 2"):
            step(torch.rand(3, 2), torch.arange(3))
