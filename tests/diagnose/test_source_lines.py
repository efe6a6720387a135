"""Findings name the line of the user's code that causes them."""

import torch
from torch import nn

from castalia.diagnose import Diagnosis, finding, watch
from castalia.diagnose.finding_record import SourceLine
from castalia.diagnose.source_lines import calling_line, class_line, located


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)

    def forward(self, x):
        return self.body(x)


def lines_of(name):
    with open(__file__) as file:
        return [i for i, text in enumerate(file, 1) if name in text]


def test_the_calling_line_is_the_innermost_of_the_user():
    found = torch.utils._pytree.tree_map(lambda _: calling_line(), [0])[0]  # through torch
    assert found.path.endswith("test_source_lines.py")
    assert found.text.startswith("found = torch.utils")


def test_only_classes_of_the_user_have_a_line():
    assert class_line(Net).text == "class Net(nn.Module):"
    assert class_line(nn.Linear) is None
    assert class_line(int) is None


def test_a_watched_loop_names_its_backward_pass_and_its_module():
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    X, y = torch.randn(32, 4), torch.randn(32)
    doctor = watch(net, optimizer)
    for _ in range(12):
        loss = ((net(X) - y) ** 2).mean()
        loss.backward()  # the only backward pass of this file
        optimizer.step()
    found = {one.code: one for one in doctor.diagnosis()}
    assert found["CST112"].source.line == lines_of("the only backward pass of this file")[0]
    assert found["CST112"].source.text.startswith("loss.backward()")
    assert found["CST304"].source == found["CST112"].source  # no loss function was called


def test_a_layer_comes_before_its_module_and_symptoms_have_lines_too():
    lines = {name: SourceLine("net.py", i) for i, name in enumerate(("module", "body.0", "loss"))}
    of_layer = finding("CST106", "warning", 0.8, "Dead.", "Leaky.", where="body.0.weight")
    of_none = finding("CST106", "warning", 0.8, "Dead.", "Leaky.", where="body.9")
    assert located(of_layer, lines).source.line == 1
    assert located(of_none, lines).source.line == 0
    assert located(finding("CST401", "warning", 0.8, "Overfits.", "Stop."), lines).source is None


def test_lines_are_written_and_read_again():
    found = finding("CST112", "error", 0.9, "Never reset.", "Reset.")
    found = located(found, {"backward": SourceLine("a b.py", 7, "loss.backward()")})
    whole = Diagnosis((found,), subject="a b.py")
    assert Diagnosis.from_json(whole.to_json()).findings[0].source == found.source
    assert "a b.py:7  loss.backward()" in str(whole)
    assert "<code>a b.py:7</code>" in whole._repr_html_()


def test_what_is_cut_off_is_named_where_it_stands_and_what_no_optimizer_knows_where_that_is_made():
    lines = {name: SourceLine("net.py", i) for i, name in enumerate(("optimizer", "body"))}
    for words, line in (("it is cut off.", 1), ("it is not known to the optimizer.", 0)):
        found = finding("CST110", "error", 0.9, words, "Keep the graph.", where="body.weight")
        assert located(found, lines).source.line == line
