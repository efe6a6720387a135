"""Losses of every kind are recognised, and outputs and targets recovered exactly."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor.autograd_graph import read_graph
from castalia.diagnose.monitor.graph_summary import quick_ending, read
from castalia.diagnose.monitor.head_reader import read_head
from castalia.diagnose.record import Look

torch.manual_seed(0)
X = torch.randn(6, 5)
NET = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
NAMES = {id(p): name for name, p in NET.named_parameters()}
CLASSES = torch.tensor([0, 1, 2, 2, 1, 0])
REAL = torch.randn(6, 3)
MANY = torch.randint(0, 2, (6, 3)).float()
SHARES = torch.softmax(torch.randn(6, 3), 1)
COUNTS = torch.randint(0, 5, (6, 3)).float()
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])
MASK = torch.tensor([1.0, 1, 0, 1, 0, 1])


def head_of(loss):
    return read_head(read_graph(loss, NAMES))


def log_softmax(out):
    return out.log_softmax(1)


# name: loss of the outputs, what it is called, what is kept as outputs (of out), targets
LOSSES = {
    "cross-entropy": (lambda o: F.cross_entropy(o, CLASSES), "cross_entropy", log_softmax, CLASSES),
    "cross-entropy module": (
        lambda o: nn.CrossEntropyLoss()(o, CLASSES),
        "cross_entropy",
        log_softmax,
        CLASSES,
    ),
    "cross-entropy summed": (
        lambda o: F.cross_entropy(o, CLASSES, reduction="sum"),
        "cross_entropy",
        log_softmax,
        CLASSES,
    ),
    "cross-entropy masked": (
        lambda o: (F.cross_entropy(o, CLASSES, reduction="none") * MASK).sum() / MASK.sum(),
        "cross_entropy",
        log_softmax,
        CLASSES,
    ),
    "cross-entropy summed over rows": (
        lambda o: F.cross_entropy(o, CLASSES, reduction="sum") / 6,
        "cross_entropy",
        log_softmax,
        CLASSES,
    ),
    "cross-entropy weighted": (
        lambda o: F.cross_entropy(o, CLASSES, weight=WEIGHTS),
        "cross_entropy",
        log_softmax,
        CLASSES,
    ),
    "nll": (lambda o: F.nll_loss(o, CLASSES), "nll", lambda o: o, CLASSES),
    "mse": (lambda o: F.mse_loss(o, REAL), "mse", lambda o: o, REAL),
    "smooth l1": (lambda o: F.smooth_l1_loss(o, REAL), "smooth_l1", lambda o: o, REAL),
    "huber": (lambda o: F.huber_loss(o, REAL), "huber", lambda o: o, REAL),
    "bce": (lambda o: F.binary_cross_entropy(o.sigmoid(), MANY), "bce", torch.sigmoid, MANY),
    "bce with logits": (
        lambda o: F.binary_cross_entropy_with_logits(o, MANY),
        "bce_logits",
        lambda o: o,
        MANY,
    ),
    "kl": (
        lambda o: F.kl_div(o.log_softmax(1), SHARES, reduction="sum"),
        "soft_cross_entropy",
        log_softmax,
        SHARES,
    ),
    "kl of probabilities": (
        lambda o: F.kl_div(o.softmax(1), SHARES, reduction="batchmean"),
        "kl_div",
        None,
        SHARES,
    ),
    "poisson": (lambda o: F.poisson_nll_loss(o, COUNTS), "poisson", None, COUNTS),
    "poisson by hand": (lambda o: (torch.exp(o) - COUNTS * o).mean(), "poisson", None, COUNTS),
    "poisson of a rate": (
        lambda o: F.poisson_nll_loss(o.exp(), COUNTS, log_input=False),
        "poisson_rate",
        None,
        COUNTS,
    ),
    "soft targets": (
        lambda o: F.cross_entropy(o, SHARES),
        "soft_cross_entropy",
        log_softmax,
        SHARES,
    ),
    "soft targets by hand": (
        lambda o: -(SHARES * o.log_softmax(1)).sum(1).mean(),
        "soft_cross_entropy",
        log_softmax,
        SHARES,
    ),
    "log of softmax by hand": (
        lambda o: -(SHARES * torch.log(o.softmax(1))).sum(1).mean(),
        "soft_cross_entropy",
        None,
        SHARES,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
def test_a_loss_is_recognised_with_what_entered_it(name, scaled):
    make, called, outputs, targets = LOSSES[name]
    out = NET(X)
    loss = make(out)
    ending = head_of(loss / 4 * torch.tensor(1024.0) if scaled else loss)
    assert ending.head.loss == called
    assert ending.head.layer == "2"
    assert ending.head.outputs == (6, 3)
    assert not ending.head.negated
    assert torch.equal(ending.targets, targets)
    if outputs is not None:
        torch.testing.assert_close(ending.outputs, outputs(out).detach())
    by = 1024.0 if name in ("cross-entropy summed", "kl") else 256.0  # a quarter of a sum: a mean
    assert ending.head.scale == pytest.approx(by if scaled else 1.0)


@pytest.mark.parametrize("name", ["cross-entropy", "mse", "bce with logits", "huber"])
def test_a_glance_recovers_the_same(name):
    make, _, outputs, targets = LOSSES[name]
    out = NET(X)
    seen, wanted, _ = quick_ending(make(out) / 3)
    torch.testing.assert_close(seen, outputs(out).detach())
    assert torch.equal(wanted, targets)


BY_HAND = {
    "square": (lambda o: ((o - REAL) ** 2).mean(), "mse"),
    "square turned": (lambda o: ((REAL - o) ** 2).sum(1).mean(), "mse"),
    "square by method": (lambda o: (o - REAL).square().mean(), "mse"),
    "product": (lambda o: ((d := o - REAL) * d).mean(), "mse"),
    "absolute": (lambda o: (o - REAL).abs().mean(), "l1"),
    "l1": (lambda o: F.l1_loss(o, REAL), "l1"),
    "absolute turned": (lambda o: (REAL - o).abs().mean(), "l1"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_targets_of_a_loss_by_hand_are_worked_out_from_the_outputs(name):
    make, called = BY_HAND[name]
    out = NET(X)
    ending = head_of(make(out))
    ending.complete(out)
    assert ending.head.loss == called
    assert torch.equal(ending.outputs, out)
    torch.testing.assert_close(ending.targets, REAL)
    assert not ending.head.negated


def test_binary_cross_entropy_by_hand_is_recognised():
    p = NET(X).sigmoid()
    loss = -(MANY * torch.log(p) + (1 - MANY) * torch.log(1 - p)).mean()
    ending = head_of(loss)
    assert ending.head.loss == "bce"
    assert [a.kind for a in ending.head.chain] == ["sigmoid"]


def test_label_smoothing_is_still_a_cross_entropy():
    ending = head_of(F.cross_entropy(NET(X), CLASSES, label_smoothing=0.1))
    assert ending.head.loss == "cross_entropy"
    assert torch.equal(ending.targets, CLASSES)


def test_an_ignored_class_is_read_with_its_sign():
    assert head_of(F.cross_entropy(NET(X), CLASSES)).head.ignore_index == -100
    assert head_of(F.cross_entropy(NET(X), CLASSES, ignore_index=2)).head.ignore_index == 2


def test_weights_and_reduction_are_read():
    plain = head_of(F.cross_entropy(NET(X), CLASSES)).head
    other = head_of(F.cross_entropy(NET(X), CLASSES, weight=WEIGHTS, reduction="none").mean()).head
    assert (plain.weighted, plain.reduction) == (False, "mean")
    assert (other.weighted, other.reduction) == (True, "none")


@pytest.mark.parametrize(
    "make",
    [
        lambda o: -F.cross_entropy(o, CLASSES),
        lambda o: -F.mse_loss(o, REAL) / 2,
        lambda o: -((o - REAL) ** 2).mean(),
    ],
    ids=["cross-entropy", "mse", "by hand"],
)
def test_a_negated_loss_is_told(make):
    assert head_of(make(NET(X))).head.negated


def test_several_terms_are_listed():
    out = NET(X)
    head = head_of(F.cross_entropy(out, CLASSES) + 0.1 * F.mse_loss(out, REAL)).head
    assert {head.loss, *head.others} == {"cross_entropy", "mse"}


CHAINS = {
    "none": (lambda o: F.cross_entropy(o, CLASSES), []),
    "softmax": (lambda o: F.cross_entropy(o.softmax(1), CLASSES), [("softmax", 1)]),
    "softmax over rows": (lambda o: F.cross_entropy(o.softmax(0), CLASSES), [("softmax", 0)]),
    "sigmoid": (
        lambda o: F.binary_cross_entropy_with_logits(o.sigmoid(), MANY),
        [("sigmoid", None)],
    ),
    "moved about": (
        lambda o: F.mse_loss(torch.tanh(o.view(3, 6).t()).squeeze().reshape(18), REAL.flatten()),
        [("tanh", None)],
    ),
    "two": (lambda o: F.mse_loss(o.relu().exp(), REAL), [("exp", None), ("relu", None)]),
    "clamp": (lambda o: F.mse_loss(o.clamp(min=0), REAL), [("relu", None)]),
    "dropout": (lambda o: F.mse_loss(F.dropout(o.tanh(), 0.5), REAL), [("tanh", None)]),
}


@pytest.mark.parametrize("name", CHAINS)
def test_what_stands_between_the_last_layer_and_the_loss_is_read(name):
    make, chain = CHAINS[name]
    head = head_of(make(NET(X))).head
    assert [(a.kind, a.dim) for a in head.chain] == chain
    assert head.layer == "2"


def test_outputs_blown_up_by_their_targets_are_told():
    net = nn.Linear(5, 1)
    for loss in (
        ((net(X) - torch.randn(6)) ** 2).mean(),
        F.l1_loss(net(X).expand(6, 6), torch.randn(6, 6)),
    ):
        head = read_head(read_graph(loss, {})).head
        assert head.broadcast == ((6, 1), (6, 6))
    assert head_of(F.mse_loss(NET(X), REAL)).head.broadcast is None


def test_pairs_of_rows_that_are_compared_by_their_lengths_are_not_blown_up():
    lengths = nn.Linear(5, 3)(X).pow(2).sum(1, keepdim=True)
    loss = (1 / (1 + lengths + torch.rand(1, 6))).mean()  # as a kernel of codes and draws
    assert read_head(read_graph(loss, {})).head.broadcast is None
    loss = (lengths - torch.rand(6)).square().mean()  # a sum that is an output is one
    assert read_head(read_graph(loss, {})).head.broadcast == ((6, 1), (6, 6))


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (lambda z: z.log(), "log of 0"),
        (lambda z: z.sqrt(), "square root at 0"),
        (lambda z: 1 / z, "division by 0"),
        (lambda z: torch.ones(2) / z, "division by 0"),
        (lambda z: z.rsqrt(), "inverse square root of 0"),
        (lambda z: z.norm(dim=0), "norm of a zero vector"),
        (lambda z: (z + 200).exp(), "overflow of exp"),
        (lambda z: z.pow(0.5), "power of 0"),
        (lambda z: (z + 1).acos(), "acos at its limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_operations_at_their_singular_points_are_named_and_others_not(operation, words):
    layer = nn.Linear(2, 2)
    names = {id(layer.weight): "a.weight", id(layer.bias): "a.bias"}
    harmless = {"overflow of exp": -75.0, "acos at its limit": -0.25}.get(words, 0.25)
    for weight, expected in ((0.0, True), (harmless, False)):
        nn.init.constant_(layer.weight, weight)
        nn.init.constant_(layer.bias, 0.0)
        z = layer(torch.ones(3, 2))
        look = Look(0)
        read(operation(z).sum(), names).fill(look)
        found = [s for s in look.suspects if s.startswith(words)]
        assert bool(found) is expected, look.suspects
        assert not found or found[0].endswith("in `a`")


def test_a_batch_norms_distance_from_its_running_statistics():
    norm = nn.BatchNorm1d(2, momentum=0.0, eps=1e-9)
    x = torch.tensor([[0.0, 5.0], [2.0, 9.0]])  # means 1 and 7, variances 1 and 4 (biased)
    look = Look(0)
    read(norm(x).square().mean() * norm.weight.sum(), {id(norm.weight): "n.weight"}).fill(look)
    count, far = look.batch_norms["n"]
    assert count == 2
    assert far == pytest.approx((1 / 1 + 7 / 2) / 2)  # of means; variances are off by less
    assert math.log(4.0) / 4 < far


def test_layers_in_a_row_with_nothing_between_are_read():
    net = nn.Sequential(
        nn.Linear(5, 4), nn.Dropout(0.1), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)
    )
    look = Look(0)
    names = {id(p): n for n, p in net.named_parameters()}
    read(F.cross_entropy(net(X), CLASSES), names).fill(look)
    assert [(layer, feeders) for layer, _, feeders in look.structure] == [
        ("0", ()),
        ("2", ("0",)),
        ("4", ()),
    ]


def test_a_transposed_shared_or_cast_weight_is_still_the_layers():
    net = nn.Linear(5, 5)
    names = {id(net.weight): "tied.weight", id(net.bias): "tied.bias"}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.mse_loss(torch.relu(net(X)) @ net.weight, X)
    reading = read(loss, names)
    assert [layer for layer, *_ in reading.structure] == ["tied", "tied"]
    assert reading.used == {"tied.weight", "tied.bias"}
    assert reading.ending.head.layer == "tied"


def test_what_others_packed_away_is_left_alone():
    unpacked = []

    def pack(tensor):
        return tensor

    def unpack(tensor):
        unpacked.append(1)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = F.cross_entropy(NET(X), CLASSES)
    ending = head_of(loss)
    assert ending.head.loss == "cross_entropy"
    assert ending.outputs is None
    assert not unpacked
    assert quick_ending(loss)[:2] == (None, None)
    assert not unpacked


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.into, self.branch, self.out = nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h = self.into(x)
        return self.out(torch.relu(h + torch.relu(self.branch(h))))


def test_a_layer_that_is_also_added_behind_a_branch_is_not_in_a_row_with_it():
    net, look = Residual(), Look(0)
    names = {id(p): n for n, p in net.named_parameters()}
    read(F.cross_entropy(net(X), CLASSES), names).fill(look)
    assert {layer: feeders for layer, _, feeders in look.structure}["branch"] == ()


def test_dropout_on_the_outputs_is_told_from_dropout_before_the_last_layer():
    hidden, last = NET[0], NET[2]
    behind = F.dropout(NET(X), 0.5)
    before = last(F.dropout(hidden(X).relu(), 0.5))
    assert head_of(F.cross_entropy(behind, CLASSES)).head.dropped
    assert not head_of(F.cross_entropy(before, CLASSES)).head.dropped
    assert not head_of(F.cross_entropy(NET(X), CLASSES)).head.dropped


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss])
def test_outputs_given_in_the_place_of_the_targets_are_the_outputs(loss):
    out = NET(X)
    ending = head_of(loss(REAL, out))
    assert torch.equal(ending.outputs, out)
    assert torch.equal(ending.targets, REAL)


def test_all_layers_that_give_answers_are_the_last_ones():
    body, actor, critic = nn.Linear(5, 4), nn.Linear(4, 3), nn.Linear(4, 1)
    net = nn.ModuleDict({"body": body, "actor": actor, "critic": critic})
    names = {id(p): n for n, p in net.named_parameters()}
    h = body(X).tanh()
    loss = F.cross_entropy(actor(h), CLASSES) + (critic(h) - REAL[:, :1]).square().mean()
    assert set(read(loss, names).ending.head.last) == {"actor", "critic"}


@pytest.mark.parametrize(
    ("act", "twice"), [(torch.sigmoid, [False]), (log_softmax, [False, False])]
)
def test_a_softmax_of_a_softmax_is_seen_among_several_losses(act, twice):
    game = F.softplus(NET(X)).mean()

    def seen(outputs):
        loss = game + F.cross_entropy(outputs, CLASSES)
        return [found.twice for found in read(loss, NAMES).softmaxes]

    assert seen(act(NET(X))) == twice
    assert seen(torch.softmax(NET(X), 1).view(6, 3)) == [False, True]
