"""Loss of label maps: void, class weights, and rows that add up."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia import Training
from castalia.errors import InvalidParameter
from castalia.objectives import CrossEntropy, PixelCrossEntropy
from castalia.protocols import Batch
from castalia.testing import train_tensors

VOID = 3


@pytest.fixture
def maps():
    """Scores (4, 3, 5, 6) and masks with a little void, one with nothing else."""
    source = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 3, 5, 6, generator=source, dtype=torch.float64)
    masks = torch.randint(0, 4, (4, 5, 6), generator=source)
    masks[2] = VOID
    return scores, masks.to(torch.uint8)


def test_without_void_and_weights_it_is_cross_entropy(maps):
    scores, masks = maps[0], maps[1].long() % 3
    assert_close(PixelCrossEntropy().rows(scores, masks), CrossEntropy().rows(scores, masks))


def test_a_row_is_the_mean_over_its_counted_pixels(maps):
    scores, masks = maps
    found = PixelCrossEntropy(void=VOID).rows(scores, masks)
    for i in (0, 1, 3):
        counted = masks[i] != VOID
        pixels = scores[i].movedim(0, -1)[counted]
        assert_close(found[i], F.cross_entropy(pixels, masks[i][counted].long()))
    assert found[2] == 0


def test_class_weights_multiply_and_do_not_divide(maps):
    scores, masks = maps
    weight = [1.0, 4.0, 0.5]
    found = PixelCrossEntropy(class_weight=weight, void=VOID).rows(scores, masks)[0]
    counted = masks[0] != VOID
    codes = masks[0][counted].long()
    each = F.cross_entropy(scores[0].movedim(0, -1)[counted], codes, reduction="none")
    assert_close(found, (each * torch.tensor(weight).double()[codes]).mean())


def test_void_pixels_get_no_gradient(maps):
    scores, masks = maps
    scores.requires_grad_()
    PixelCrossEntropy(void=VOID, label_smoothing=0.1).rows(scores, masks).sum().backward()
    there = scores.grad.abs().sum(dim=1) > 0
    assert there.equal(masks != VOID)


def test_micro_batches_give_the_step_of_the_whole_batch(maps):
    torch.manual_seed(0)
    x, masks = torch.randn(8, 2, 5, 6, dtype=torch.float64), maps[1].repeat(2, 1, 1)
    weight = torch.tensor([1.0, 2.0, 5.0, 1.0, 0.5, 1.0, 3.0, 1.0]).double()
    objective = PixelCrossEntropy(class_weight=[1.0, 3.0, 0.2], void=VOID)
    nets = []
    for accumulate in (1, 4):
        torch.manual_seed(1)
        nets.append(torch.nn.Conv2d(2, 3, 3, padding=1).double())
        training = Training(accumulate=accumulate, optimizer="sgd", validation=0)
        train_tensors(
            nets[-1], objective, x, masks, weight=weight, training=training, epochs=3, batch_size=8
        )
    assert_close(nets[0].weight, nets[1].weight)


def test_scores_in_bfloat16_are_compared_in_float32(maps):
    scores, masks = maps[0].bfloat16(), maps[1]
    found = PixelCrossEntropy(class_weight=[1, 2, 3], void=VOID).rows(scores, masks)
    assert found.dtype == torch.float32
    exact = PixelCrossEntropy(class_weight=[1, 2, 3], void=VOID).rows(scores.double(), masks)
    assert_close(found.double(), exact)


def test_terms_are_weighted_by_rows(maps):
    scores, masks = maps
    weight = torch.tensor([1.0, 0.0, 1.0, 2.0]).double()
    objective = PixelCrossEntropy(void=VOID)
    rows = objective.rows(scores, masks)
    found = objective.terms(torch.nn.Identity(), Batch(scores, masks, weight), "train")["loss"]
    assert_close(found, (rows[0] + 2 * rows[3]) / 4)


def test_label_smoothing_must_be_a_share():
    with pytest.raises(InvalidParameter, match="at least 0 and below 1; got 1.5"):
        PixelCrossEntropy(label_smoothing=1.5)
