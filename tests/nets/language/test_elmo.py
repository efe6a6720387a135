"""ELMo reads each direction without the other, and padding does not exist for it."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from castalia.data.text import LETTERS, spell
from castalia.errors import InvalidParameter
from castalia.nets.language import ELMo, ELMoReader, SpelledTokens
from castalia.objectives import BidirectionalLM
from castalia.protocols import Batch

DRAW = torch.Generator().manual_seed(0)
IDS = torch.randint(4, 20, (3, 9), generator=DRAW)
PADDED = torch.where(torch.arange(9) < torch.tensor([[9], [4], [6]]), IDS, 0)


def net(**settings):
    torch.manual_seed(0)
    return ELMo(20, **{"dim": 6, "dropout": 0.0, **settings}).eval()


@pytest.mark.parametrize("hidden", [None, 10])
def test_forward_scores_ignore_later_tokens_and_backward_scores_earlier_ones(hidden):
    model, other = net(hidden=hidden), IDS.clone()
    other[:, 5] = (other[:, 5] + 1) % 16 + 4
    before, after = model(IDS), model(other)
    same = torch.isclose(before, after, atol=1e-6).all(dim=-1)  # (B, T, 2)
    place = torch.arange(9)
    assert (same[..., 0] == (place < 5)).all()
    assert (same[..., 1] == (place > 5)).all()


def test_the_layers_are_those_of_two_lstms_and_the_second_adds_its_input():
    model = net()
    x = model.tokens(IDS)
    f1 = model.forwards[0](x)[0]
    f2 = model.forwards[1](f1)[0] + f1
    b1 = model.backwards[0](x.flip(1))[0]
    b2 = model.backwards[1](b1)[0] + b1
    expected = [(x, x), (f1, b1.flip(1)), (f2, b2.flip(1))]
    for found, parts in zip(model.layers(IDS), expected, strict=True):
        assert_close(found, torch.cat(parts, dim=-1))
    assert_close(model(IDS)[:, :, 1], model.output(b2.flip(1)))


def test_padding_changes_nothing():
    model = net()
    for row, length in ((1, 4), (2, 6)):
        alone = model(PADDED[row : row + 1, :length])
        assert_close(model(PADDED)[row, :length], alone[0])


def test_tokens_and_outputs_are_shared_and_states_are_not():
    model = net(dim=8, depth=2)
    layer = 4 * 8 * (8 + 8) + 2 * 4 * 8  # weights and both biases
    assert sum(p.numel() for p in model.parameters()) == 20 * 8 + 4 * layer + 20 * (8 + 1)


def test_the_loss_is_the_sum_of_both_log_likelihoods():
    model = net()
    terms = BidirectionalLM(pad=0).terms(model, Batch(PADDED), "train")
    log_p, ahead, back = model(PADDED).log_softmax(dim=-1), [], []
    for row, length in enumerate((9, 4, 6)):
        ids, steps = PADDED[row, :length], torch.arange(length - 1)
        ahead.append(-log_p[row, steps, 0, ids[1:]].mean())
        back.append(-log_p[row, steps + 1, 1, ids[:-1]].mean())
    assert_close(terms["forward"], torch.stack(ahead).mean())
    assert_close(terms["backward"], torch.stack(back).mean())
    assert_close(terms["loss"], terms["forward"] + terms["backward"])


def test_spelled_tokens_have_the_filters_of_the_paper():
    made = SpelledTokens(512, letters=50)
    sizes = [(conv.kernel_size[0], conv.out_channels) for conv in made.filters]
    assert sizes == [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)]
    assert made.letters.num_embeddings == LETTERS


def test_a_spelled_token_is_a_highway_over_the_largest_answers_of_its_filters():
    made = SpelledTokens(8, letters=5, highways=1)
    spelled = torch.from_numpy(spell(["tea", "to"], 5)).long()
    x = made.letters(spelled).transpose(1, 2)
    x = torch.cat([conv(x).relu().amax(dim=2) for conv in made.filters], dim=1)
    new, gate = made.highways[0](x).chunk(2, dim=1)
    gate = gate.sigmoid()
    assert_close(made(spelled), made.project(gate * new.relu() + (1 - gate) * x))


def test_with_spellings_the_ids_are_not_read():
    model, rows = net(letters=4), torch.zeros(2, 6, 3, dtype=torch.long)
    rows[:, 0] = torch.tensor([[2, 5, 3], [2, 9, 3]])
    rows[:, 2:, 1] = torch.from_numpy(spell(["a", "a"], 4)).long()
    assert_close(*model(rows).unbind())
    rows[1, 2:, 1] = torch.from_numpy(spell(["b"], 4))[0].long()
    assert not torch.allclose(*model(rows).unbind(), atol=1e-4)


@pytest.mark.parametrize("pool", ["mean", "max", None])
def test_a_reader_pools_the_mix_over_real_tokens(pool):
    made = ELMoReader(net(predicts=False), 2, pool=pool).eval()
    nn.init.uniform_(made.mix.scores)
    alone = made(PADDED[1:2, :4])
    together = made(PADDED)[1:2]
    assert_close(together if pool else together[:, :4], alone)
    if pool == "mean":
        assert_close(alone, made.head(made.mix(made.encoder.layers(PADDED[1:2, :4])).mean(dim=1)))


def test_settings_that_make_no_sense_are_named():
    with pytest.raises(InvalidParameter, match="`hidden` must be None or more than dim=6.*got 6"):
        net(hidden=6)
    with pytest.raises(InvalidParameter, match="`pool` must be 'mean', 'max' or None; got 'sum'"):
        ELMoReader(net(), 2, pool="sum")
    with pytest.raises(InvalidParameter, match="predicts nothing"):
        net(predicts=False)(IDS)
