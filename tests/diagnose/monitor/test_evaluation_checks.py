"""Questions in evaluation mode: they find what they look for and leave the network as it was."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose import watch
from castalia.diagnose.monitor.evaluation_checks import future_change, random_change

TOKENS = np.random.default_rng(0).integers(0, 9, (6, 10))


class Reader(nn.Module):
    """Reads forwards, or both ways; classes last, or before the places."""

    def __init__(self, both=False, classes_last=True):
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.classes_last = nn.Embedding(9, 8), classes_last
        self.rnn = nn.GRU(8, 8, batch_first=True, bidirectional=both)
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(16 if both else 8, 9)

    def forward(self, x):
        out = self.out(self.drop(self.rnn(self.embed(x))[0]))
        return out if self.classes_last else out.transpose(1, 2)


@pytest.mark.parametrize("classes_last", [True, False])
def test_only_a_reader_of_both_ways_sees_the_future(classes_last):
    assert future_change(Reader(classes_last=classes_last), TOKENS) == 0.0
    assert future_change(Reader(both=True, classes_last=classes_last), TOKENS) > 0.05


def test_outputs_without_a_place_for_each_token_tell_nothing():
    assert future_change(nn.Sequential(nn.Embedding(9, 4), nn.Flatten()), TOKENS) is None


def test_asking_changes_neither_modes_nor_random_numbers():
    net = Reader().train()
    net.drop.eval()
    state = torch.get_rng_state()
    future_change(net, TOKENS)
    random_change(net, TOKENS)
    assert (net.training, net.rnn.training, net.drop.training) == (True, True, False)
    assert torch.equal(torch.get_rng_state(), state)


class Careless(nn.Module):
    def __init__(self, careful):
        super().__init__()
        self.careful, self.lift, self.out = careful, nn.Linear(4, 16), nn.Linear(16, 1)

    def forward(self, x):
        training = self.training if self.careful else True
        return self.out(F.dropout(F.relu(self.lift(x)), 0.5, training))


@pytest.mark.parametrize("careful", [True, False])
def test_a_dropout_that_ignores_the_mode_is_found(careful):
    torch.manual_seed(0)
    net = Careless(careful)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    X = torch.randn(64, 4)
    with watch(net, optimizer) as doctor:
        for _ in range(30):
            optimizer.zero_grad()
            F.mse_loss(net(X), X[:, :1]).backward()
            optimizer.step()
    # Asked before the block is left: afterwards nobody watches.
    assert ("CST116" in doctor.diagnosis()) is not careful


def test_layers_in_a_plain_list_are_found_by_name_of_the_fault():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.out = [nn.Linear(4, 8), nn.Linear(8, 8)], nn.Linear(8, 1)

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.out(x)

    torch.manual_seed(0)
    net = Hidden()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    X = torch.randn(64, 4)
    with watch(net, optimizer) as doctor:
        for _ in range(20):
            optimizer.zero_grad()
            F.mse_loss(net(X), X[:, :1]).backward()
            optimizer.step()
        first = doctor.diagnosis().findings[0]
    assert (first.code, first.evidence[0].value) == ("CST110", 2.0)
    assert "ModuleList" in first.remedy.text


class OnlyTheLoss(Reader):
    """Returns nothing but its loss, and wants the targets for it."""

    def forward(self, x, targets):
        return F.cross_entropy(super().forward(x).flatten(0, 1), targets.flatten())


def test_what_could_not_be_asked_is_said():
    net = OnlyTheLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    tokens = torch.as_tensor(TOKENS)
    with watch(net, optimizer) as doctor:
        for _ in range(6):
            optimizer.zero_grad()
            net(tokens[:, :-1], tokens[:, 1:]).backward()
            optimizer.step()
    assert any("CST505" in note for note in doctor.diagnosis().notes)
    assert "future" not in doctor.record.final
