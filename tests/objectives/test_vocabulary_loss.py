"""The loss of a large vocabulary against cross-entropy over scores held all at once."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from castalia.nets.language import GPT
from castalia.objectives import CausalLM
from castalia.objectives import next_token as language
from castalia.objectives import vocabulary_loss as vocabulary
from castalia.objectives.vocabulary_loss import vocabulary_loss
from castalia.protocols import Batch, StepPlan


def problem(tokens=11, size=100, dtype=torch.float64, device="cpu"):
    torch.manual_seed(0)
    h = torch.randn(tokens, 8, dtype=dtype, device=device, requires_grad=True)
    table = torch.randn(size, 8, dtype=dtype, device=device, requires_grad=True)
    targets = torch.randint(size, (tokens,), device=device)
    share = torch.rand(tokens, dtype=dtype, device=device)
    share[3] = 0
    return h, table, targets, share


def plain(h, table, targets, share):
    return (share * F.cross_entropy(h @ table.T, targets, reduction="none")).sum()


@pytest.mark.parametrize("scores", [1 << 29, 300, 1])
@pytest.mark.parametrize("size", [100, 128])
def test_loss_and_gradients_are_those_of_cross_entropy(scores, size, monkeypatch):
    monkeypatch.setattr(vocabulary, "SCORES", scores)  # all tokens at once, some, one
    given = problem(size=size)
    found, expected = vocabulary_loss(*given), plain(*given)
    assert_close(found, expected)
    mine = torch.autograd.grad(3 * found, given[:2])
    assert_close(mine, torch.autograd.grad(3 * expected, given[:2]))


def test_products_are_in_the_format_of_autocast():
    h, table, targets, share = problem(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = vocabulary_loss(h, table, targets, share)
    assert found.dtype == torch.float32
    mine = torch.autograd.grad(found, (h, table))
    assert [g.dtype for g in mine] == [torch.float32] * 2
    expected = plain(h, table, targets, share)
    assert_close(found, expected, rtol=0.02, atol=0.02)
    assert not found.equal(expected)
    assert_close(mine, torch.autograd.grad(expected, (h, table)), rtol=0.1, atol=0.1)


def test_a_frozen_table_gets_no_gradient():
    h, table, targets, share = problem()
    (slope,) = torch.autograd.grad(vocabulary_loss(h, table, targets, share), h)
    table.requires_grad_(False)
    loss = vocabulary_loss(h, table, targets, share)
    assert loss.grad_fn.saved_tensors[1] is None
    loss.backward()
    assert_close(h.grad, slope)
    assert table.grad is None


def test_a_second_derivative_is_refused():
    h, table, targets, share = problem()
    (slope,) = torch.autograd.grad(vocabulary_loss(h, table, targets, share), h, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        slope.sum().backward()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("ignore", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_the_same_either_way(tied, ignore, weighted, monkeypatch):
    asked = []
    monkeypatch.setattr(language, "has_triton", lambda device: True)
    monkeypatch.setattr(
        language, "vocabulary_loss", lambda *args: asked.append(1) or vocabulary_loss(*args)
    )
    torch.manual_seed(0)
    net = GPT(language.LARGE, context=9, dim=8, depth=1, heads=2, tied=tied).double()
    x = torch.randint(4, (3, 9))
    x[1] = 2  # a row of which nothing may count
    weight = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64) if weighted else None
    found = []
    for second_order in (True, False):
        objective = CausalLM(ignore=ignore)
        objective.prepare(StepPlan(second_order=second_order))
        net.zero_grad()
        loss = objective.terms(net, Batch(x, None, weight), "train")["loss"]
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in net.parameters())])
    assert_close(found[0], found[1], rtol=1e-5, atol=1e-8)
    assert len(asked) == 1


def test_who_listens_to_a_network_hears_its_scores(monkeypatch):
    monkeypatch.setattr(language, "has_triton", lambda device: True)
    net = GPT(language.LARGE, context=9, dim=8, depth=1, heads=2)
    assert language._has_large_table(net)
    hook = net.register_forward_hook(lambda *_: None)
    assert not language._has_large_table(net)
    hook.remove()
    assert not language._has_large_table(GPT(97, context=9, dim=8, depth=1, heads=2))
    monkeypatch.setattr(language, "has_triton", lambda device: False)
    assert not language._has_large_table(net)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [5000, 50_257])
def test_the_kernel_gives_the_same_loss_and_gradients(size, dtype):
    h, table, targets, share = problem(33, size, torch.float32, "cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=dtype is torch.bfloat16):
        found = vocabulary_loss(h, table, targets, share)
    mine = torch.autograd.grad(found, (h, table))
    expected = plain(h, table, targets, share)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype is torch.float32 else {"rtol": 0.05, "atol": 0.05}
    assert_close(found, expected, **close)
    assert_close(mine, torch.autograd.grad(expected, (h, table)), **close)
