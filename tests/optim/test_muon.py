"""Muon: the orthogonal step, torch's own for matrices, and its place in the loop."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import castalia
from castalia import ConvNetClassifier, Training
from castalia.errors import InvalidParameter
from castalia.optim import Muon, build_optimizer, hidden_matrices, orthogonalise
from castalia.testing import toy


@pytest.mark.parametrize("shape", [(6, 6), (5, 12), (12, 5), (3, 4, 9)])
def test_orthogonalised_matrices_keep_their_directions_and_lose_their_lengths(shape):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    found = torch.linalg.svd(orthogonalise(x, 6), full_matrices=False)
    assert (found.S > 0.6).all()
    assert (found.S < 1.3).all()
    turned = u.mT @ orthogonalise(x, 6) @ v.mT  # diagonal where singular vectors are the same
    assert_close(turned, torch.diag_embed(turned.diagonal(dim1=-2, dim2=-1)), atol=1e-9, rtol=0)


@pytest.mark.parametrize(
    "ours, theirs", [("adamw", "match_rms_adamw"), ("shape", "original")], ids=["adamw", "shape"]
)
def test_matrices_move_as_torchs_muon_moves_them(ours, theirs):
    reference = getattr(torch.optim, "Muon", None)
    if reference is None:
        pytest.skip("torch has no Muon before 2.9")
    source = torch.Generator().manual_seed(1)
    shapes = [(6, 4), (4, 6), (6, 4), (16, 3)]
    mine = [torch.randn(s, generator=source).requires_grad_() for s in shapes]
    its = [p.detach().clone().requires_grad_() for p in mine]
    optimizers = (
        Muon(mine, lr=0.05, weight_decay=0.1, scale=ours),
        reference(its, lr=0.05, weight_decay=0.1, adjust_lr_fn=theirs),
    )
    for _ in range(5):
        for a, b in zip(mine, its, strict=True):
            a.grad = torch.randn(a.shape, generator=source)
            b.grad = a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for a, b in zip(mine, its, strict=True):  # torch multiplies in bf16
        assert_close(a, b, atol=0.02, rtol=0)


def test_filters_move_as_the_matrices_they_are():
    filters = torch.randn(4, 3, 2, 2).requires_grad_()
    matrix = filters.detach().flatten(1).clone().requires_grad_()
    filters.grad = torch.randn(4, 3, 2, 2)
    matrix.grad = filters.grad.flatten(1).clone()
    Muon([filters], lr=0.1).step()
    Muon([matrix], lr=0.1).step()
    assert_close(filters.flatten(1), matrix)


@pytest.mark.parametrize(
    "rest, reference",
    [
        ("adamw", lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.9, 0.95), weight_decay=0.1)),
        ("nesterov", lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    ],
)
def test_the_rest_moves_by_the_optimizer_that_is_named(rest, reference):
    decay = 0.1 if rest == "adamw" else 0.0
    mine, its = (torch.ones(5, dtype=torch.float64).requires_grad_() for _ in range(2))
    ours = Muon([mine], lr=0.4, rest=rest, rest_scale=0.25, weight_decay=decay)
    other = reference([its])
    for i in range(4):
        mine.grad = torch.linspace(-1, 1, 5, dtype=torch.float64) * (i + 1)
        its.grad = mine.grad.clone()
        ours.step()
        other.step()
    assert_close(mine, its)


def test_a_sphere_keeps_the_norm_of_matrices():
    w = torch.randn(8, 5).requires_grad_()
    w.grad = torch.randn(8, 5)
    Muon([w], lr=0.3, sphere=True).step()
    assert w.norm().item() == pytest.approx(8**0.5, rel=1e-5)


def test_embeddings_and_scores_are_left_to_the_rest():
    net = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 3))
    optimizer = build_optimizer("muon", list(net.parameters()), lr=1, hidden=hidden_matrices(net))
    turned = [p for g in optimizer.param_groups if g["orthogonal"] for p in g["params"]]
    assert len(turned) == 1
    assert turned[0] is net[1].weight


def test_tied_scores_leave_every_block_to_muon():
    blocks = [nn.Linear(4, 4) for _ in range(2)]
    net = nn.Sequential(nn.Embedding(9, 4), *blocks)
    assert [id(p) for p in hidden_matrices(net)] == [id(b.weight) for b in blocks]


def test_a_loaded_state_continues_to_the_bit():
    def made():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.LazyLinear(2))
        net(torch.zeros(1, 1, 5, 5))
        return net, build_optimizer("muon", list(net.parameters()), lr=0.01, weight_decay=0.1)

    def step(net, optimizer):
        optimizer.zero_grad()
        net(torch.linspace(0, 1, 50).view(2, 1, 5, 5)).square().sum().backward()
        optimizer.step()

    (net, optimizer), (again, other) = made(), made()
    for _ in range(3):
        step(net, optimizer)
    again.load_state_dict(net.state_dict())
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(3):
        step(net, optimizer)
        step(again, other)
    for a, b in zip(net.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)


def test_arguments_stand_beside_the_name_and_are_saved(tmp_path):
    X, y = toy("stripes")
    training = Training(optimizer=("muon", {"momentum": 0.9}), watch=False, verbose=False)
    model = ConvNetClassifier(widths=(4, 8), convs=1, epochs=10, lr=0.02, training=training)
    model.set_params(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    castalia.save(model, tmp_path / "model")
    assert castalia.load(tmp_path / "model").training.optimizer == ("muon", {"momentum": 0.9})


def test_an_argument_it_does_not_have_is_named():
    with pytest.raises(InvalidParameter, match="of optimizer 'muon' must be .* got 'momentun'"):
        build_optimizer(("muon", {"momentun": 0.9}), [torch.ones(2, 2)], lr=1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_recorded_steps_follow_the_schedule_and_end_where_eager_ones_do():
    X, y = toy("stripes")
    found = []
    for step in ("auto", "plain"):
        training = Training(
            optimizer="muon", schedule="cosine", step=step, precision="float32", watch=False
        )
        model = ConvNetClassifier(
            widths=(8, 16), epochs=6, lr=0.01, training=training, random_state=0
        )
        found.append(model.fit(X, y))
    assert found[0].settings_["graph"]
    for a, b in zip(found[0].module_.parameters(), found[1].module_.parameters(), strict=True):
        assert_close(a, b, atol=2e-3, rtol=0)
