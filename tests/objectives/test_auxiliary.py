"""A task and the next token together."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.errors import InvalidParameter
from castalia.nets.language import GPT, CausalClassifier
from castalia.objectives import AuxiliaryLM, CausalLM, CrossEntropy
from castalia.protocols import Batch

PAD = 8


def network(outputs=2, **settings):
    torch.manual_seed(0)
    decoder = GPT(9, context=6, dim=8, depth=2, heads=2)
    return CausalClassifier(decoder, outputs, padding=PAD, **settings).eval()


def test_the_loss_is_that_of_the_task_plus_lambda_times_that_of_the_language_model():
    net, y = network(), torch.tensor([1, 0])
    ids = torch.tensor([[1, 2, 3, 4, 7], [5, 3, 7, PAD, PAD]])
    terms = AuxiliaryLM(CrossEntropy(), 0.3, pad=PAD).terms(net, Batch(ids, y), "train")
    task = F.cross_entropy(net(ids), y)
    rows = [
        F.cross_entropy(net.decoder(r[None, :n])[0, :-1], r[1:n])
        for r, n in zip(ids, (5, 3), strict=True)
    ]
    assert_close(terms["task"], task)
    assert_close(terms["language"], torch.stack(rows).mean())
    assert_close(terms["loss"], task + 0.3 * torch.stack(rows).mean())
    alone = CausalLM(ignore=PAD).terms(net.decoder, Batch(ids), "train")["loss"]
    assert_close(terms["language"], alone)


def test_weights_of_rows_count_in_both_parts():
    net, y = network(), torch.tensor([1, 0])
    ids = torch.tensor([[1, 2, 3, 4, 7], [5, 3, 7, PAD, PAD]])
    objective = AuxiliaryLM(CrossEntropy(), 0.5, pad=PAD)
    weighted = objective.terms(net, Batch(ids, y, torch.tensor([3.0, 0.0])), "train")
    alone = objective.terms(net, Batch(ids[:1], y[:1]), "train")
    for name in ("loss", "task", "language"):
        assert_close(weighted[name], alone[name])


def test_of_several_sequences_the_language_loss_is_their_mean():
    net = network(each=True)
    ids = torch.tensor([[[1, 2, 7], [1, 3, 7]]])
    objective = AuxiliaryLM(CrossEntropy(), 1.0, pad=PAD)
    found = objective.terms(net, Batch(ids, torch.tensor([1])), "train")["language"]
    one, other = (CausalLM().terms(net.decoder, Batch(ids[:, k]), "")["loss"] for k in (0, 1))
    assert_close(found, (one + other) / 2)


def test_a_negative_weight_is_refused():
    with pytest.raises(InvalidParameter, match="`weight` must be at least 0; got -1"):
        AuxiliaryLM(CrossEntropy(), -1, pad=0)
