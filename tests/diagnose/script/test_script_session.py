"""Which modules are watched, with which optimizers, from when on."""

import copy
import os

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

from castalia.diagnose.script import Session

X, Y = torch.randn(12, 3), torch.arange(12) % 2


def network():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def step(net, optimizer, x=X, y=Y):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def test_the_module_that_owns_the_optimizer_s_parameters_is_watched_before_its_first_call(
    session, doctors
):
    watched = []

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = network()

        def forward(self, x):
            watched.append(len(doctors))
            return self.body(x)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(X)
    assert watched == [1]
    assert doctors[0].module is net
    assert doctors[0].optimizers == [optimizer]


def test_calls_are_no_longer_seen_once_the_module_is_known(session, doctors):
    original = nn.Module.__call__.__wrapped__
    net = network()
    step(net, torch.optim.SGD(net.parameters(), lr=0.1))
    assert nn.Module.__call__ is original


def test_a_frozen_part_called_on_its_own_is_not_watched(session, doctors):
    backbone, head = nn.Linear(3, 3), nn.Linear(3, 2)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    loss = F.cross_entropy(head(backbone(X)), Y)
    loss.backward()
    assert [doctor.module for doctor in doctors] == [head]
    assert doctors[0].optimizers == [optimizer]


def test_two_modules_that_share_an_optimizer_are_watched_as_one_from_the_first_backward(
    session, doctors
):
    encoder, decoder = nn.Linear(3, 2), nn.Linear(2, 3)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
    loss = F.mse_loss(decoder(encoder(X)), X)
    assert doctors == []
    loss.backward()
    assert [list(doctor.module.children()) for doctor in doctors] == [[encoder, decoder]]
    assert [doctor.optimizers for doctor in doctors] == [[optimizer]]


def test_a_part_called_before_the_whole_gives_way_to_it(session, doctors):
    net = network()
    torch.optim.SGD(net.parameters(), lr=0.1)  # gone at once, as nobody keeps it
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net[0](X)
    step(net, optimizer)
    assert [doctor.module for doctor in doctors] == [net]


def test_an_adversarial_pair_gets_a_doctor_each(session, doctors):
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    optimizers = [torch.optim.Adam(net.parameters()) for net in (generator, critic)]
    for _ in range(3):
        critic(generator(torch.randn(4, 2)).detach()).mean().backward()
        (-critic(generator(torch.randn(4, 2))).mean()).backward()
    assert [doctor.module for doctor in doctors] == [generator, critic]
    assert [doctor.optimizers for doctor in doctors] == [[one] for one in optimizers]


def test_the_second_optimizer_of_a_pair_may_come_into_use_later(session, doctors):
    first, second = nn.Linear(3, 1), nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in (first, second)]
    for _ in range(5):
        first(X).mean().backward()
    second(X).mean().backward()
    assert [doctor.optimizers for doctor in doctors] == [[one] for one in optimizers]


def test_an_optimizer_of_another_module_is_handed_to_the_doctor_of_the_one_that_runs(
    session, doctors
):
    net, other = network(), network()
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    step(net, optimizer)
    assert [(doctor.module, doctor.optimizers) for doctor in doctors] == [(net, [optimizer])]


def test_updates_by_hand_are_watched_too(session, doctors):
    net = network()
    for _ in range(2):
        F.cross_entropy(net(X), Y).backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
                p.grad = None
    assert [(doctor.module, doctor.optimizers) for doctor in doctors] == [(net, [])]


def test_gradients_of_a_module_at_rest_are_no_training(session, doctors):
    net = network().eval()
    net(X.clone().requires_grad_()).sum().backward()
    assert doctors == []
    assert not session.saw_training


def test_tensors_without_a_module_are_watched_as_they_are(session, doctors):
    weight = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    F.mse_loss(X @ weight, X[:, 0]).backward()
    optimizer.step()
    (doctor,) = doctors
    assert [p is weight for p in doctor.module.parameters()] == [True]
    assert weight.abs().sum() > 0


def test_the_next_fold_ends_the_watch_over_the_one_before(session, doctors):
    for _ in range(3):
        net = network()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            step(net, optimizer)
    assert [doctor.closed for doctor in doctors] == [True, True, False]
    assert session.diagnosis().codes == ("CST112",)


def test_modules_of_one_class_trained_together_stay_watched(session, doctors):
    nets = [network() for _ in range(3)]
    optimizers = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
    for _ in range(3):
        for net, optimizer in zip(nets, optimizers, strict=True):
            step(net, optimizer)
    assert [doctor.closed for doctor in doctors] == [False] * 3


def test_a_new_optimizer_for_other_parameters_begins_a_new_training(session, doctors):
    net = network()
    step(net, torch.optim.SGD(net[2].parameters(), lr=0.1))
    fine = torch.optim.SGD(net.parameters(), lr=0.01)
    step(net, fine)
    assert [doctor.closed for doctor in doctors] == [True, False]
    assert doctors[1].optimizers == [fine]


def test_an_optimizer_made_anew_every_epoch_leaves_the_doctor_in_place_and_a_note(doctors):
    session = Session()
    session.start()
    net = network()
    for _ in range(3):
        step(net, torch.optim.SGD(net.parameters(), lr=0.1))
    session.stop()
    assert len(doctors) == 1
    assert "Sequential got a new optimizer while it was trained." in session.diagnosis().notes


def test_backward_goes_through_the_doctor_that_was_made_in_it(session, doctors, monkeypatch):
    from castalia.diagnose.script import script_session as module

    called = []

    def watch(net, optimizers, on_finding=None):
        below = torch.autograd.backward
        torch.autograd.backward = lambda *a, **k: (called.append(net), below(*a, **k))[1]
        return fake(net, optimizers)

    fake = module.watch
    monkeypatch.setattr(module, "watch", watch)
    below = torch.autograd.backward.__wrapped__
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam([*net.parameters(), torch.zeros(1, requires_grad=True)])
    net(X).sum().backward()
    session.stop()
    torch.autograd.backward = below
    assert called == [net]
    assert net.weight.grad is not None
    assert optimizer.param_groups


def test_everything_is_put_back(doctors):
    def now():
        names = [nn.Module.__call__, torch.optim.Optimizer.__init__, torch.autograd.backward]
        return [*names, DataLoader.__iter__, F.cross_entropy, F.kl_div]

    before = now()
    session = Session()
    session.start()
    during = now()
    session.stop()
    assert [a is b for a, b in zip(before, during, strict=True)] == [False] * 6
    assert [a is b for a, b in zip(before, now(), strict=True)] == [True] * 6


def test_a_forked_process_is_not_watched(session, doctors):
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(X)
    child = os.fork()
    if child == 0:
        quiet = not session.active and doctors[0].closed
        quiet &= not hasattr(F.cross_entropy, "__wrapped__")
        os._exit(0 if quiet and optimizer else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert session.active
    assert not doctors[0].closed


def test_our_own_mistakes_become_notes_and_the_training_goes_on(doctors, monkeypatch):
    def watch(module, optimizers, on_finding=None):
        raise RuntimeError("oh")

    monkeypatch.setattr("castalia.diagnose.script.script_session.watch", watch)
    session = Session()
    session.start()
    net = network()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = [step(net, optimizer) for _ in range(20)]
    session.stop()
    assert losses[-1] < losses[0]
    assert session.diagnosis().notes == ("The doctor stumbled (RuntimeError: oh).",)


def test_a_watched_training_ends_with_the_same_bits(session, doctors):
    def trained(start):
        net = copy.deepcopy(start)
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        torch.manual_seed(0)
        for _ in range(3):
            step(net, optimizer, F.dropout(X), Y)
            with torch.no_grad():
                F.cross_entropy(net(X[:5]), Y[:5].clone())
        return [*net.parameters(), torch.rand(3)]

    start = network()
    watched = trained(start)
    session.stop()
    assert len(doctors) == 1
    assert all(torch.equal(a, b) for a, b in zip(watched, trained(start), strict=True))


def compiled(net):
    return torch.compile(net, backend="eager")


@pytest.mark.parametrize("wrapped", [nn.DataParallel, compiled])
def test_a_wrapped_module_is_known_by_its_own_name(session, doctors, wrapped):
    net = wrapped(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    session._called(net)
    other = nn.Bilinear(3, 3, 1)
    optimizers = [optimizer, torch.optim.SGD(other.parameters(), lr=0.1)]
    other(X, X)
    assert [one.name for one in session._live] == ["Linear", "Bilinear"]
    assert len(optimizers) == len(doctors)
    assert session.diagnosis().findings[0].where == "Linear"


def test_a_muted_finding_is_not_made_and_a_strange_code_is_said(doctors):
    session = Session(mute=["CST112", "CST999"])
    session.start()
    net = network()
    step(net, torch.optim.SGD(net.parameters(), lr=0.1))
    session.stop()
    found = session.diagnosis()
    assert found.codes == ()
    assert found.notes == ("A note.", "`CST999` was to be muted, but there is no such code.")


def others(net):
    """Return an optimizer of copies of a network's parameters."""
    copies = [nn.Parameter(p.detach().clone()) for p in net.parameters()]
    return torch.optim.SGD(copies, lr=0.1)


def test_a_network_that_is_first_asked_without_gradients_is_watched_when_it_trains(
    session, doctors
):
    net = network()
    optimizer = others(net)
    with torch.no_grad():
        net(X)
    step(net, optimizer)
    assert [doctor.module for doctor in doctors] == [net]


def test_a_network_in_a_wrapper_that_is_gone_by_its_backward_is_watched(session, doctors):
    net = network()
    optimizer = others(net)
    step(lambda x: nn.Sequential(net)(x), optimizer)
    assert [doctor.module for doctor in doctors] == [net]


def test_modules_with_a_hash_of_their_own_are_no_stumbling_block(session, doctors):
    class Metric(nn.Module):  # as those of torchmetrics: the hash tells of a later state
        def __init__(self):
            super().__init__()
            self.state = [0]

        def __hash__(self):
            return hash(tuple(self.state))

        def __eq__(self, other):
            return self.state == other.state

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.metric = network(), Metric()

        def forward(self, x):
            self.metric.state.append(1)
            return self.body(x)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        step(net, optimizer)
    assert doctors[0].module is net
