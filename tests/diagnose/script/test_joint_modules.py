"""Several modules that one optimizer trains, watched as one."""

import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.script import Session
from castalia.diagnose.script.joint_modules import Parts

X, Y = torch.randn(32, 3, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 2


def test_a_part_in_training_mode_puts_the_whole_in_it():
    encoder, head = nn.Linear(3, 4), nn.Linear(4, 2)
    whole = Parts([encoder.eval(), head])
    assert whole.training
    head.eval()
    assert not whole.training
    whole.training = True
    assert not encoder.training


def test_a_call_begins_with_the_first_part_that_has_gradients_and_ends_with_the_last():
    parts = [nn.Linear(3, 3) for _ in range(3)]
    assert Parts(parts, entrance=1).called_parts == (parts[1], parts[2])


def train(cut):
    """An encoder and a head of which the loss, or the graph, loses sight of the encoder."""
    torch.manual_seed(0)
    encoder, head = nn.Sequential(nn.Linear(3, 8), nn.Tanh()), nn.Linear(8, 2)
    session = Session()
    session.start()
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(30):
        with torch.set_grad_enabled(cut != "no_grad"):
            h = encoder(X)
        loss = F.cross_entropy(head(h.detach() if cut == "detach" else h), Y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    session.stop()
    return session.diagnosis()


def test_a_part_that_gets_no_gradient_is_found_beside_one_that_does():
    for cut in ("no_grad", "detach"):
        first = train(cut).findings[0]
        assert (first.code, first.where) == ("CST110", "Sequential.0.weight"), cut
    assert "CST110" not in train("nothing").codes


def test_a_validation_is_not_mixed_with_the_step_in_which_its_end_is_noticed():
    torch.manual_seed(0)
    net, held = nn.Linear(3, 2), torch.randn(20, 3)
    session = Session()
    session.start()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(6):
        net.train()
        loss = F.cross_entropy(net(X), Y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            F.cross_entropy(net(held), torch.arange(20) % 2)
    record = session._live[0].doctor.record
    session.stop()
    assert {len(x) for x in record.validation.inputs} == {20}
    assert record.validated_in_training_mode == 0


def test_a_head_put_on_after_the_training_was_not_forgotten_by_its_optimizer():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    session = Session()
    session.start()
    for _ in range(2):
        optimizer = torch.optim.SGD(net[2].parameters() if _ else net.parameters(), lr=0.1)
        for _ in range(20):
            loss = F.cross_entropy(net(X), Y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net[2] = nn.Linear(4, 2)
    session.stop()
    assert not [one for one in session.diagnosis().findings if one.where == "2.weight"]


class Supervised(nn.Module):
    """A network of its own weights that calls its encoder, and is never called."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 2) / 4)
        self.encoder = nn.Sequential(nn.Linear(3, 16), nn.Tanh())

    def loss(self, x, y):
        return F.cross_entropy(self.encoder(x) @ self.weight, y)


def test_a_network_that_only_calls_its_parts_is_watched_as_a_whole():
    torch.manual_seed(0)
    session = Session()
    session.start()
    net = Supervised()
    net.weight.requires_grad_(False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        net.loss(X, Y).backward()
        optimizer.step()
    session.stop()
    (record,) = session.records
    assert {w.name for w in record.weights} == {"weight", "encoder.0.weight", "encoder.0.bias"}
    assert record.train.inputs[1].shape == (32, 3)  # since the first backward()
    (found,) = [one for one in session.diagnosis().findings if one.code == "CST110"]
    assert found.where == "weight"
