"""RandAugment, TrivialAugment and CutMix: each image its own change, by the formulas."""

import pytest
import torch
from torch.testing import assert_close

import castalia
from castalia import ConvNetClassifier
from castalia.data.augment import CutMix, RandAugment, TrivialAugment
from castalia.data.augment.policy_augmentations import (
    NARROW,
    PLACES,
    VALUES,
    _equalise,
    _maps,
    _posterise,
    _solarise,
    _stretch,
)
from castalia.errors import InvalidParameter
from castalia.testing import toy

ONE = torch.ones(1, 1, 1, 1)


def images(n=64):
    return torch.rand(n, 3, 12, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("augment", [RandAugment(), TrivialAugment()])
def test_a_generator_decides_and_every_image_has_its_own_change(augment):
    x = images(200)
    first, second = (augment(x, generator=torch.Generator().manual_seed(1))[0] for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, augment(x, generator=torch.Generator().manual_seed(2))[0])
    same = (first == x).flatten(1).all(dim=1)
    assert 0 < same.sum() < 60  # some are left alone
    assert first.min() >= -1e-6
    assert first.max() <= 1 + 1e-6


def test_no_strength_changes_nothing_but_by_stretched_and_equalised_values():
    x = images()
    for change in VALUES[:4]:
        assert_close(change(x, 0 * ONE, ONE, NARROW), x)
    for kind in range(len(PLACES)):
        maps = _maps(x, torch.full((64,), float(kind)), torch.zeros(64), NARROW)
        assert_close(maps, torch.eye(3).expand(64, 3, 3))


def test_values_change_by_their_formulas():
    x = torch.tensor([0.0, 0.2, 0.6, 1.0]).view(1, 1, 2, 2)
    assert_close(_solarise(x, 0.5 * ONE, ONE, NARROW).flatten(), torch.tensor([0, 0.2, 0.4, 0]))
    assert_close(_posterise(x, 7 / 4 * ONE, ONE, NARROW).flatten(), torch.tensor([0, 0, 0.5, 0.5]))
    assert_close(_equalise(x, ONE, ONE, NARROW).flatten(), torch.linspace(0, 1, 4))
    two = torch.cat([x, 0.25 + x / 2], dim=1)
    assert_close(_stretch(two, ONE, ONE, NARROW)[:, 1:], x)
    brighter, darker = (VALUES[0](x, 0.5 * ONE, sign * ONE, NARROW) for sign in (1, -1))
    assert_close(darker, x * (1 - 0.45))
    assert_close(brighter, (x * 1.45).clamp(max=1))


def test_places_change_by_their_maps():
    x = images(1)
    kind = torch.tensor([2.0])
    assert_close(_maps(x, kind, torch.ones(1), NARROW)[0, :, 2], torch.tensor([5.4, 0.0, 1.0]))
    turned = _maps(x, torch.tensor([4.0]), torch.ones(1), NARROW)[0, :2, :2]
    assert_close(turned @ turned.mT, torch.eye(2))


@pytest.mark.parametrize("settings", [{"changes": 0}, {"strength": 1.5}])
def test_what_cannot_be_is_refused(settings):
    with pytest.raises(InvalidParameter, match="RandAugment: `(changes|strength)` must be"):
        RandAugment(**settings)


def test_cutmix_mixes_targets_by_the_area_that_was_exchanged():
    x = torch.arange(50.0).view(50, 1, 1, 1).expand(50, 2, 16, 16).contiguous()
    mixed, y = CutMix(classes=50)(x, torch.arange(50))
    own = (mixed == x).float().mean(dim=(1, 2, 3))
    assert_close(y.diagonal(), own)
    assert_close(y.sum(dim=1), torch.ones(50))
    assert (own >= 0.4).all()
    assert own.min() < 0.9
    for i in range(50):  # one rectangle of one other image
        assert len(mixed[i].unique()) <= 2


def test_cutmix_needs_the_number_of_classes():
    with pytest.raises(InvalidParameter, match=r"Set CutMix\(classes=…\)"):
        CutMix()(images(2), torch.tensor([0, 1]))


def test_they_are_saved_with_their_model(tmp_path):
    X, y = toy("stripes")
    augment = RandAugment(1, 0.2) | TrivialAugment() | CutMix(classes=3)
    model = ConvNetClassifier(widths=(4,), convs=1, epochs=1, augment=augment, random_state=0)
    castalia.save(model.fit(X, y), tmp_path / "model")
    assert castalia.load(tmp_path / "model").augment == augment
