"""Loss functions under watch: what they tell, and that they stay what they were."""

import inspect
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from castalia.diagnose.script import Session
from castalia.diagnose.script.loss_calls import LOSSES, LossCall

OUTPUTS, TARGETS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]]), torch.tensor([0, 0, -100])


def call(name, outputs, targets, **more):
    loss = getattr(F, name)(outputs, targets, **more)
    return LossCall(name, loss, outputs, targets, **more)


@pytest.mark.parametrize("name", LOSSES)
def test_a_wrapped_loss_keeps_name_signature_and_documentation(session, name):
    wrapper = getattr(F, name)
    original = wrapper.__wrapped__
    assert wrapper is not original
    assert wrapper.__name__ == name
    assert wrapper.__doc__ == original.__doc__
    assert inspect.signature(wrapper) == inspect.signature(original)


def test_a_loss_that_raises_tells_shapes_and_range_and_raises_the_same_error(doctors):
    session = Session()
    session.start()
    net = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    outputs, targets = net(torch.zeros(4, 3)), torch.tensor([0, 1, 2, 1])
    with pytest.raises(IndexError, match="Target 2 is out of bounds"):
        nn.CrossEntropyLoss()(outputs, targets)
    session.stop()
    (log,) = doctors[0].logs
    assert log["outputs"] is outputs
    assert log["targets"] is targets
    assert doctors[0].failed == (outputs, targets)
    (note,) = session._notes
    assert note.startswith("`cross_entropy` raised IndexError on outputs of shape (4, 2) (float32,")
    assert note.endswith("and targets of shape (4,) (int64, from 0 to 2).")
    assert optimizer.param_groups


def test_a_loss_that_raises_before_the_first_backward_makes_the_doctor_come(doctors):
    session = Session()
    session.start()
    encoder, head = nn.Linear(3, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    with pytest.raises(ValueError, match="batch_size"):
        F.cross_entropy(head(encoder(torch.zeros(4, 3))), torch.tensor([0, 1]))
    session.stop()
    assert [list(doctor.module.children()) for doctor in doctors] == [[encoder, head]]
    assert len(doctors[0].logs) == 1
    assert optimizer.param_groups


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "name, outputs, targets",
    [
        ("cross_entropy", torch.randn(6, 3), torch.arange(6) % 3),
        ("mse_loss", torch.randn(6, 3), torch.randn(6, 3)),
        ("binary_cross_entropy_with_logits", torch.randn(6, 2), torch.ones(6, 2)),
    ],
)
def test_the_loss_of_an_item_is_the_same_whatever_the_reduction(name, outputs, targets, reduction):
    mean = getattr(F, name)(outputs, targets)
    found = call(name, outputs, targets, reduction=reduction).mean()
    torch.testing.assert_close(found, mean)


def test_right_answers_are_counted_without_the_ignored():
    right, counted = call("cross_entropy", OUTPUTS, TARGETS).right()
    assert (int(right), int(counted)) == (1, 2)
    outputs, targets = torch.tensor([0.2, 0.9, 0.6]), torch.tensor([0.0, 1.0, 0.0])
    right, counted = call("binary_cross_entropy", outputs, targets).right()
    assert (int(right), int(counted)) == (2, 3)
    right, _ = call("binary_cross_entropy_with_logits", outputs - 0.5, targets).right()
    assert int(right) == 2
    assert call("mse_loss", outputs, targets).right() is None
    assert call("cross_entropy", OUTPUTS, torch.softmax(OUTPUTS, 1)).right() is None


def test_a_warning_points_at_the_line_that_called_the_loss(session):
    with pytest.warns(UserWarning, match="Using a target size") as caught:
        F.mse_loss(OUTPUTS, torch.zeros(2))
    assert [one.filename for one in caught] == [__file__]
    with pytest.raises(UserWarning, match="Using a target size"):  # warnings are errors here
        F.l1_loss(OUTPUTS, torch.zeros(2))
    assert session._notes.pop().startswith(
        "`l1_loss` raised UserWarning on outputs of shape (3, 2)"
    )


def test_a_compiled_function_holds_the_loss_itself(session):
    def loss(x, y):
        return F.cross_entropy(x, y)

    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    y = TARGETS.clamp(min=0)
    assert torch.equal(compiled(OUTPUTS, y), loss(OUTPUTS, y))


def test_a_scripted_function_holds_the_loss_itself(session):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch.jit's own

        @torch.jit.script
        def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return F.smooth_l1_loss(x, y)

    assert torch.equal(loss(OUTPUTS, -OUTPUTS), F.smooth_l1_loss(OUTPUTS, -OUTPUTS))


def test_a_tensor_subclass_is_passed_through(session):
    class Marked(torch.Tensor):
        pass

    outputs = OUTPUTS.as_subclass(Marked)
    assert torch.equal(F.mse_loss(outputs, -outputs), F.mse_loss(OUTPUTS, -OUTPUTS))


def test_a_loss_can_be_differentiated_by_functional_transforms(session):
    found = torch.func.vmap(torch.func.grad(F.mse_loss))(OUTPUTS, torch.zeros_like(OUTPUTS))
    torch.testing.assert_close(found, OUTPUTS)
