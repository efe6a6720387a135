"""The doctor beside odd trainings: nothing of it gets out, little escapes it."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle
import threading
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from castalia.diagnose.monitor import backward_listeners as backward
from castalia.diagnose.monitor import look_taker, watch

TORCHS_OWN = torch.autograd.backward


@pytest.fixture(autouse=True)
def torch_is_left_as_it_was():
    if backward._listeners:
        gc.collect()  # doctors that earlier tests forgot
    yield
    assert torch.autograd.backward is TORCHS_OWN
    assert not backward._listeners


@pytest.fixture
def training():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    return net, torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(10, 4), torch.arange(10) % 3


def steps(training, n=5, loss_fn=F.cross_entropy):
    net, optimizer, x, y = training
    for _ in range(n):
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        optimizer.step()
    return loss


def troubles(doctor):
    return [note for note in doctor.record.notes if "could not be watched" in note]


# ------------------------------------------------------------------- coming and going


def test_closing_twice_leaves_no_hook_anywhere(training):
    net, optimizer, *_ = training
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(net, optimizer, loss_fn)
    steps(training, loss_fn=loss_fn)
    doctor.close()
    doctor.close()
    assert not net._forward_pre_hooks
    assert not net._forward_hooks
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks
    assert not loss_fn._forward_hooks
    assert not loss_fn._forward_pre_hooks
    assert torch.autograd.backward is TORCHS_OWN


def test_a_doctor_forgotten_without_closing_leaves_no_hook(training):
    net, optimizer, *_ = training
    doctor = watch(net, optimizer)
    steps(training)
    gone = weakref.ref(doctor)
    del doctor  # no cycle keeps it
    assert gone() is None
    assert not net._forward_pre_hooks
    assert not optimizer._optimizer_step_pre_hooks
    assert torch.autograd.backward is TORCHS_OWN
    steps(training)


def test_two_doctors_see_the_same_and_leave_alone(training):
    net, optimizer, *_ = training
    first, second = watch(net, optimizer), watch(net, optimizer)
    steps(training)
    first.close()
    steps(training, 2)
    second.close()
    assert (first.record.steps, second.record.steps) == (5, 7)
    assert first.record.losses == second.record.losses[:5]


def test_leaving_the_block_by_an_exception_closes(training):
    net, optimizer, *_ = training
    doctor = watch(net, optimizer)
    steps(training, 2)

    def interrupted():
        with doctor:
            raise KeyboardInterrupt

    pytest.raises(KeyboardInterrupt, interrupted)
    assert doctor.closed
    assert doctor.record.steps == 2


def test_a_closed_doctor_still_gives_its_diagnosis(training):
    net, optimizer, *_ = training
    with watch(net, optimizer) as doctor:
        steps(training)
    steps(training)
    doctor.log(loss=1.0)
    doctor.epoch()
    assert doctor.diagnosis() is not None
    assert doctor.record.steps == 5


# ------------------------------------------------------------------- copies


def test_a_copy_of_a_watched_module_has_nothing_of_the_doctor(training):
    net, optimizer, x, _ = training
    doctor = watch(net, optimizer)
    steps(training, 2)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x), net(x))
        hooks = [*twin._forward_pre_hooks.values(), *twin._forward_hooks.values()]
        assert not any(type(hook).__module__.startswith("castalia") for hook in hooks)
    copy.deepcopy(optimizer), pickle.dumps(optimizer)
    doctor.close()


def test_a_saved_module_is_read_where_this_library_is_not(training, tmp_path):
    net, optimizer, x, _ = training
    doctor = watch(net, optimizer)
    torch.save(net, tmp_path / "net.pt")
    doctor.close()
    assert b"castalia" not in (tmp_path / "net.pt").read_bytes()
    twin = torch.load(io.BytesIO((tmp_path / "net.pt").read_bytes()), weights_only=False)
    assert torch.equal(twin(x), net(x))


def test_an_average_of_a_watched_module_is_not_watched(training):
    net, optimizer, x, _ = training
    doctor = watch(net, optimizer)
    average = torch.optim.swa_utils.AveragedModel(net)
    steps(training, 3)
    average.update_parameters(net)
    average(x)
    assert doctor.record.steps == 3
    assert not troubles(doctor)
    doctor.close()


# ------------------------------------------------------------------- trouble


def test_an_exception_of_the_users_forward_passes_and_watching_goes_on(training):
    net, optimizer, x, y = training
    doctor = watch(net, optimizer)
    with pytest.raises(RuntimeError, match="shapes"):
        net(torch.randn(10, 5))
    steps(training)
    with pytest.raises(RuntimeError, match="shapes"):
        net(torch.randn(10, 5))
    steps(training)
    doctor.close()
    assert doctor.record.steps == 10
    assert len(doctor.record.looks) >= 6
    assert doctor.record.looks[0].head.loss == "cross_entropy"
    assert not net._forward_hooks
    assert not troubles(doctor)


def test_mistakes_of_the_doctor_become_notes_until_it_gives_up(training, monkeypatch):
    net, optimizer, *_ = training
    doctor = watch(net, optimizer)

    def broken(*_):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(doctor._sampling, "look", broken)
    steps(training, 30)
    assert doctor.closed
    assert troubles(doctor)[0] == (
        "Something could not be watched (after step): ZeroDivisionError: planted"
    )
    assert doctor.record.notes[-1] == "Watching was given up after repeated difficulties."
    assert not net._forward_pre_hooks


@pytest.mark.parametrize(
    "odd", ["words", object(), {"a": 1}, [], math.nan], ids=lambda odd: type(odd).__name__
)
def test_odd_things_told_are_no_exception(training, odd):
    net, optimizer, *_ = training
    doctor = watch(net, optimizer)
    steps(training, 2)
    doctor.log(loss=odd, outputs=odd, targets=odd, inputs=odd)
    doctor.epoch(validation_loss=odd, validation_score=odd)
    with torch.no_grad():
        doctor.log(loss=odd, outputs=odd, targets=odd, inputs=odd)
    steps(training, 2)
    doctor.close()
    assert doctor.record.steps == 4


def test_a_module_without_parameters_is_noted():
    doctor = watch(nn.ReLU())
    assert any("no parameters" in note for note in doctor.record.notes)
    doctor.diagnosis()
    doctor.close()


def test_an_unknown_task_is_noted_and_ignored(training):
    with watch(training[0], training[1], task="sing") as doctor:
        assert doctor.record.task is None
        assert any("task='sing'" in note for note in doctor.record.notes)


def test_an_optimizer_of_another_module_is_seen(training):
    net, _, x, y = training
    other = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    doctor = watch(net, optimizer)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    doctor.close()
    assert not any(weight.optimized or weight.moved for weight in doctor.record.weights)
    assert doctor.record.steps == 4


def test_a_loss_that_is_never_reduced_is_noted(training):
    net, optimizer, x, y = training
    doctor = watch(net, optimizer)
    with pytest.raises(RuntimeError, match="scalar"):
        F.cross_entropy(net(x), y, reduction="none").backward()
    assert "shape (10,)" in doctor.record.notes[-1]
    doctor.close()


def test_a_loss_without_a_graph_is_noted(training):
    doctor = watch(training[0], training[1])
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.tensor(1.0).backward()
    assert "without a graph" in doctor.record.notes[-1]
    doctor.close()


def test_functional_training_is_noted_and_losses_can_be_told(training):
    net, _, x, y = training
    parameters = {n: p.detach() for n, p in net.named_parameters()}

    def loss(parameters):
        return F.cross_entropy(torch.func.functional_call(net, parameters, (x,)), y)

    doctor = watch(net)
    for _ in range(4):
        slopes, value = torch.func.grad_and_value(loss)(parameters)
        parameters = {n: p - 0.1 * slopes[n] for n, p in parameters.items()}
        doctor.log(loss=value)
    doctor.close()
    assert any("No backward pass was seen" in note for note in doctor.record.notes)
    assert not troubles(doctor)
    assert doctor.record.losses == sorted(doctor.record.losses, reverse=True)
    assert doctor.record.steps == 3  # the last one has not ended


# ------------------------------------------------------------------- whose loss it is


def test_another_networks_loss_does_not_count(training):
    net, optimizer, *_ = training
    other = nn.Linear(3, 1)
    doctor = watch(net, optimizer)
    steps(training, 2)
    other(torch.randn(4, 3)).square().mean().backward()
    steps(training, 2)
    doctor.close()
    assert doctor.record.steps == 4
    assert len(doctor.record.looks) == 4


def test_a_generators_loss_is_told_from_the_critics_computed_in_between():
    torch.manual_seed(0)
    generator, critic = nn.Linear(2, 3), nn.Linear(3, 1)
    ours = torch.optim.SGD(generator.parameters(), lr=0.1)
    doctor = watch(generator, ours)
    mine = []
    for _ in range(20):
        ours.zero_grad()
        fake = generator(torch.randn(8, 2))
        loss = F.binary_cross_entropy_with_logits(critic(fake), torch.ones(8, 1))
        loss.backward()
        F.mse_loss(critic(fake.detach()), torch.zeros(8, 1)).backward()
        ours.step()
        mine.append(loss.item())
    doctor.close()
    assert doctor.record.losses == mine
    assert {look.head.loss for look in doctor.record.looks} == {"bce_logits"}
    assert {float(t.mean()) for t in doctor.record.train.targets} == {1.0}


def test_threads_that_train_two_modules_keep_to_themselves():
    def train(seed, doctors):
        net = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        doctors[seed] = watch(net, optimizer)
        x, y = torch.randn(6, 4), torch.randn(6, 2) + 100 * seed
        for _ in range(30):
            optimizer.zero_grad()
            F.mse_loss(net(x), y).backward()
            optimizer.step()

    doctors = {}
    threads = [threading.Thread(target=train, args=(seed, doctors)) for seed in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for seed, doctor in doctors.items():
        doctor.close()
        assert doctor.record.steps == 30
        assert not troubles(doctor)
        assert doctor.record.losses[0] > 1000 * seed


@pytest.mark.parametrize("in_place", [False, True])
def test_watching_a_compiled_module_compiles_nothing_again(in_place):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x):
            return torch.relu(self.layer(x))

    compilations = []

    def backend(graph, _):
        compilations.append(graph)
        return graph.forward

    torch._dynamo.reset()
    net = Net()
    if in_place:
        net.compile(backend=backend, fullgraph=True)
    else:
        net = torch.compile(net, backend=backend, fullgraph=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with watch(net, optimizer) as doctor:
        steps((net, optimizer, torch.randn(6, 4), torch.arange(6) % 3), 8)
    assert len(compilations) == 1
    assert doctor.record.steps == 8
    assert [w.name for w in doctor.record.weights] == ["layer.weight", "layer.bias"]


# ------------------------------------------------------------------- modules that change


def test_parameters_that_appear_with_the_first_call_are_watched():
    net = nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 3))
    doctor = watch(net)
    assert [w.name for w in doctor.record.weights] == ["2.weight", "2.bias"]
    optimizer = None
    for _ in range(4):
        net.zero_grad()
        loss = F.cross_entropy(net(torch.randn(6, 5)), torch.arange(6) % 3)
        loss.backward()
        optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.1)
        optimizer.step()
    doctor.close()
    names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [w.name for w in doctor.record.weights] == names
    assert all(w.moved for w in doctor.record.weights)
    assert set(doctor.record.looks[-1].gradients) == set(names)


def test_a_replaced_layer_is_watched_in_place_of_the_old(training):
    net, optimizer, x, y = training
    doctor = watch(net, optimizer)
    steps(training, 2)
    net[2] = nn.Linear(8, 4)
    optimizer.add_param_group({"params": net[2].parameters()})
    steps(training, 4)
    doctor.close()
    last = {w.name: w for w in doctor.record.weights}["2.weight"]
    assert last.shape == (4, 8)
    assert last.optimized
    assert last.moved
    assert doctor.record.looks[-1].gradients["2.weight"] > 0
    assert doctor.record.looks[-1].updates["2.weight"] > 0


def test_weights_set_free_after_a_training_were_frozen_in_it(training):
    net, optimizer, *_ = training
    net[0].requires_grad_(False)
    doctor = watch(net, optimizer)
    steps(training)
    net[0].requires_grad_(True)  # for the next training
    doctor.diagnosis()
    assert [w.trainable for w in doctor.record.weights] == [False, False, True, True]


def test_weights_loaded_after_the_last_step_are_put_back(training):
    net, optimizer, *_ = training
    kept = copy.deepcopy(net.state_dict())
    doctor = watch(net, optimizer)
    steps(training)
    doctor.diagnosis()
    assert not doctor.record.restored
    net.load_state_dict(kept)
    doctor.diagnosis()
    assert doctor.record.restored
    steps(training)  # it goes on from there
    doctor.diagnosis()
    assert not doctor.record.restored


def test_a_layer_that_the_optimizer_does_not_know_is_found(training):
    net, _, x, y = training
    optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
    with watch(net, optimizer) as doctor:
        steps((net, optimizer, x, y))
    optimized = {w.name: w.optimized for w in doctor.record.weights}
    assert optimized == {"0.weight": True, "0.bias": True, "2.weight": False, "2.bias": False}


# ------------------------------------------------------------------- losses and what is logged


def test_every_loss_is_kept_and_that_of_the_whole_backward_where_there_are_parts(training):
    net, optimizer, x, y = training
    with watch(net, optimizer) as doctor:
        seen = []
        for _ in range(20):
            optimizer.zero_grad()
            out = net(x)
            parts = [F.cross_entropy(out, y), out.square().mean()]
            torch.autograd.backward(parts)
            optimizer.step()
            seen.append(sum(part.item() for part in parts))
    assert doctor.record.losses == pytest.approx(seen)


def test_a_loss_told_after_its_step_is_taken_even_if_it_is_zero(training):
    net, optimizer, x, y = training
    doctor = watch(net, optimizer)
    steps(training, 2)
    doctor.record.losses[-1] = math.nan
    doctor.log(loss=0.0)
    assert doctor.record.losses[-1] == 0.0
    doctor.close()


@pytest.mark.parametrize("when", ["before backward", "before step", "after step"])
def test_targets_told_at_any_time_complete_the_rows(training, when):
    net, optimizer, x, y = training
    doctor = watch(net, optimizer)
    optimizer.zero_grad()
    out = net(x)
    loss = torch.logsumexp(out, 1).mean()  # no loss that keeps its targets
    if when == "before backward":
        doctor.log(targets=y)
    loss.backward()
    if when == "before step":
        doctor.log(targets=y)
    optimizer.step()
    if when == "after step":
        doctor.log(targets=y)
    doctor.close()
    assert doctor.record.train.targets[0].tolist() == y.tolist()
    assert doctor.record.train.inputs[0] == pytest.approx(x.numpy())
    assert len(doctor.record.train) == 1


def test_what_a_loss_module_is_given_is_seen_also_in_validation(training):
    net, optimizer, x, y = training
    loss_fn = nn.CrossEntropyLoss()
    doctor = watch(net, optimizer, loss_fn)
    steps(training, 3, loss_fn)
    net.eval()
    with torch.no_grad():
        expected = loss_fn(net(x), y).item()
    net.train()
    doctor.epoch()
    (evaluation,) = doctor.record.evaluations
    assert evaluation.loss == pytest.approx(expected)
    assert evaluation.score == pytest.approx((net(x).argmax(1) == y).float().mean().item())
    assert doctor.record.validated_in_evaluation_mode == 1
    doctor.close()


def test_what_a_loss_module_that_raised_was_given_is_written_down(training):
    net, optimizer, x, y = training
    loss_fn = nn.CrossEntropyLoss()
    with watch(net, optimizer, loss_fn) as doctor, pytest.raises(IndexError):
        loss_fn(net(x), y + 5)
    assert doctor.record.failed == ((10, 3), (10,), 7)


# ------------------------------------------------------------------- optimizers


def test_two_optimizers_of_one_step_are_both_measured(training):
    net, _, x, y = training
    both = [torch.optim.SGD(net[i].parameters(), lr=0.1) for i in (0, 2)]
    with watch(net, both) as doctor:
        for _ in range(5):
            net.zero_grad()
            F.cross_entropy(net(x), y).backward()
            for optimizer in both:
                optimizer.step()
    assert doctor.record.steps == 5
    for look in doctor.record.looks:
        assert set(look.updates) == {"0.weight", "0.bias", "2.weight", "2.bias"}
        assert set(look.applied) == set(look.updates)


def test_steps_of_lbfgs_are_measured_around_its_closure(training, monkeypatch):
    net, _, x, y = training
    graphs, read = [], look_taker.read
    monkeypatch.setattr(look_taker, "read", lambda *args: graphs.append(1) or read(*args))
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        return loss

    with watch(net, optimizer) as doctor:
        for _ in range(4):
            before = net[0].weight.detach().clone()
            optimizer.step(closure)
            ratio = (net[0].weight.detach() - before).norm() / before.norm()
            assert doctor.record.looks[-1].updates["0.weight"] == pytest.approx(
                ratio.item(), rel=1e-4
            )
    assert doctor.record.steps == len(graphs) == 4  # one for the first of the points tried
    assert [look.stale for look in doctor.record.looks] == [None, False, False, False]
