"""The network that tells images: what a word may depend on, and where it looks."""

import pytest
import torch
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.vision import Captioner

SIZES = {"size": (12, 8), "widths": (4, 6, 8), "convs": 1, "dim": 5, "hidden": 7}


def network(attention):
    torch.manual_seed(0)
    net = Captioner(3, 11, attention=attention, **SIZES).eval().double()
    return net, torch.randn(2, 3, 12, 8).double(), torch.randint(11, (2, 6))


@pytest.mark.parametrize("attention", [True, False])
def test_a_word_depends_on_the_picture_and_on_the_words_before_it_only(attention):
    net, x, ids = network(attention)
    later = ids.clone()
    later[:, 4:] = (later[:, 4:] + 1) % 11
    out = net(x, ids)
    assert_close(out[:, :4], net(x, later)[:, :4])
    assert (out[:, 4:] - net(x, later)[:, 4:]).abs().amax() > 1e-4
    assert ((out - net(x + 1, ids)).abs().amax(dim=(0, 2)) > 1e-5).all()


@pytest.mark.parametrize("attention", [True, False])
def test_word_by_word_with_a_cache_is_the_same_as_all_at_once(attention):
    net, x, ids = network(attention)
    memory, cache = net.encode(x), net.cache(2, 6)
    steps = [net.decode(ids[:, t : t + 1], memory, cache=cache) for t in range(6)]
    assert_close(torch.cat(steps, dim=1), net.decode(ids, memory))
    assert cache.seen == 6


def test_the_weights_over_the_places_sum_to_one_and_gather_what_they_say():
    net, x, ids = network(attention=True)
    weights = net.alignments(x, ids)
    assert weights.shape == (2, 6, 3, 2)  # two poolings
    assert_close(weights.sum(dim=(2, 3)), torch.ones(2, 6).double())
    # The first word's sum, written out from the module's own parts
    memory = net.encode(x)
    s = torch.tanh(net.begin(memory.mean(dim=1))).chunk(2, dim=-1)[0]
    assert_close(weights[:, 0].flatten(1), net.attention.weights(s[:, None], memory)[:, 0])


def test_the_place_of_a_vector_stands_beside_its_maps():
    net, x, _ = network(attention=True)
    places = net.encode(x)[0, :, -2:]
    rows, columns = places.unflatten(0, (3, 2)).unbind(-1)
    assert rows[:, 0].tolist() == [-1, 0, 1]
    assert columns[0].tolist() == [-1, 1]


def test_without_attention_there_are_no_alignments():
    net, x, ids = network(attention=False)
    with pytest.raises(InvalidParameter, match="without attention there are no alignments"):
        net.alignments(x, ids)
