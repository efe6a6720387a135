"""Whatever is done with a module while it is watched has the result it has without the doctor."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import warnings
import weakref
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

from castalia.diagnose.monitor import watch
from castalia.diagnose.monitor.backward_listeners import listen
from castalia.diagnose.monitor.call_listeners import listen_to_calls

X = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x):
        return self.layers(x)


def saved(net):
    """The bytes that ``torch.save`` writes of the object, without those of its tensors."""
    written = io.BytesIO()
    torch.save(net, written)
    written.seek(0)
    return written.getvalue()


def loaded_safely(net):
    with torch.serialization.safe_globals([Net, nn.Sequential, nn.Linear, nn.Tanh]):
        return torch.load(io.BytesIO(saved(net)), weights_only=True)(X)


def pruned(net):
    prune.l1_unstructured(net.layers[0], "weight", amount=0.5)
    out = net(X)
    prune.remove(net.layers[0], "weight")
    return out


def quantised(net):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return torch.ao.quantization.quantize_dynamic(net, {nn.Linear})(X)
        except RuntimeError as error:
            if "unknown archi" in str(error):
                pytest.skip("torch cannot quantise on this processor")
            raise


def distributed(net, tmp="store"):
    wrapped = nn.parallel.DistributedDataParallel(net)
    wrapped(X).sum().backward()
    return wrapped(X), [p.grad.clone() for p in net.parameters()]


def compiled(net, fullgraph=True):
    torch._dynamo.reset()
    return torch.compile(net, backend="eager", fullgraph=fullgraph)(X)


def compiled_in_place(net):
    torch._dynamo.reset()
    net.compile(backend="eager", fullgraph=True)
    return net(X)


def functional(net):
    weights = {name: torch.ones_like(p) for name, p in net.named_parameters()}
    return torch.func.functional_call(net, weights, (X,))


def gradients(net):
    weights = {name: p.detach() for name, p in net.named_parameters()}
    return torch.func.grad(lambda w: torch.func.functional_call(net, w, (X,)).sum())(weights)


def replicated(net):
    """A copy as DataParallel makes it, called by a thread of its own."""
    replica = net._replicate_for_data_parallel()
    replica.layers = nn.Sequential(nn.Linear(4, 2))
    found = []
    from threading import Thread

    thread = Thread(target=lambda: found.append(replica(X).shape))
    thread.start(), thread.join()
    return found


USES = [
    saved,
    loaded_safely,
    lambda net: len(pickle.dumps(net)),
    lambda net: copy.deepcopy(net)(X),
    lambda net: copy.copy(net)(X),
    lambda net: sorted(vars(copy.deepcopy(net))),
    lambda net: {name: list(net.state_dict()[name].shape) for name in net.state_dict()},
    lambda net: torch.export.export(net, (X,)).graph_module.code,
    lambda net: torch.export.export(net, (X,), strict=True).graph_module.code,
    lambda net: torch.jit.script(net).code,
    lambda net: torch.jit.trace(net, X).code,
    lambda net: torch.fx.symbolic_trace(net).code,
    lambda net: torch.fx.symbolic_trace(nn.Sequential(net)).code,
    compiled,
    compiled_in_place,
    functional,
    gradients,
    replicated,
    pruned,
    quantised,
    lambda net: torch.vmap(net)(X),
    lambda net: torch.optim.swa_utils.AveragedModel(net)(X),
    lambda net: [len(getattr(net, name)) for name in vars(net) if "hooks" in name],
]


def result(use, watched, trained):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    doctor = watch(net, optimizer, nn.CrossEntropyLoss()) if watched else None
    for _ in range(trained):
        optimizer.zero_grad()
        F.cross_entropy(net(X), torch.arange(6) % 3).backward()
        optimizer.step()
    optimizer.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own, about what it will drop one day
        found = use(net)
    if doctor is not None:
        doctor.close()
        assert not [note for note in doctor.record.notes if "could not be watched" in note]
    return found


def same(one, other):
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and same(list(one.values()), list(other.values()))
    return one == other


@pytest.mark.parametrize("trained", [0, 9], ids=["at_a_look", "between_looks"])
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_watched_module_is_used_as_if_nobody_watched(use, trained):
    assert same(result(use, False, trained), result(use, True, trained))


def test_a_watched_module_is_distributed_as_if_nobody_watched(tmp_path):
    where = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", init_method=where, rank=0, world_size=1)
    try:
        assert same(result(distributed, False, 3), result(distributed, True, 3))
    finally:
        torch.distributed.destroy_process_group()


def test_a_module_that_writes_all_that_lies_in_it_writes_nothing_of_ours():
    class Bare(nn.Linear):
        def __getstate__(self):
            return dict(self.__dict__)

    globals()["Bare"] = Bare
    Bare.__qualname__ = "Bare"
    net = Bare(4, 3)
    with watch(net):
        twin = pickle.loads(written := pickle.dumps(net))
    assert b"castalia" not in written
    assert torch.equal(twin(X), net(X))


def test_two_doctors_leave_a_module_in_any_order_as_it_was():
    net = Net()
    before = dict(vars(net))
    one, other = watch(net), watch(net)
    one.close()
    net(X).sum().backward()
    assert other.record.steps == 1
    assert one.record.steps == 0
    other.close()
    assert vars(net) == before


def test_a_listener_that_raises_is_logged_once_and_stops_no_step(caplog):
    def raises(*_):
        raise RuntimeError("of its own")

    net = Net()
    calls, passes = listen_to_calls(net, raises, raises), listen(raises, raises)
    with caplog.at_level(logging.WARNING, "castalia.diagnose"):
        for _ in range(3):
            net(X).sum().backward()
    assert len(caplog.records) == 3  # before a call, after it, before the backward pass
    calls.remove(), passes.remove()
    assert "_compiled_call_impl" not in vars(net)


def test_sparse_inputs_do_not_end_the_watch():
    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def answer(x):
        return torch.sparse.mm(x, net.weight.t()) + net.bias

    net.forward = answer
    with watch(net, optimizer) as doctor:
        for _ in range(12):
            optimizer.zero_grad()
            net(X.to_sparse()).square().mean().backward()
            optimizer.step()
            with torch.no_grad():
                net(X.to_sparse())
    assert doctor.record.steps == 12
    assert not doctor.record.given_up
    assert not [note for note in doctor.record.notes if "could not be watched" in note]


def test_a_watch_that_gave_up_reports_no_errors():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e4)
    doctor = watch(net, optimizer)
    for _ in range(30):
        optimizer.zero_grad()
        F.cross_entropy(net(X), torch.arange(6) % 3).backward()
        optimizer.step()
    assert doctor.diagnosis()
    for _ in range(20):
        doctor.trouble("here", RuntimeError("again"))
    assert doctor.closed
    assert not doctor.diagnosis()
    assert doctor.diagnosis().findings


class Kept(torch.autograd.Function):
    """Passes numbers on, and keeps some until the graph is gone."""

    alive: ClassVar[list[Any]] = []

    @staticmethod
    def forward(ctx, x):
        kept = x.clone()
        ctx.save_for_backward(kept)
        Kept.alive.append(weakref.ref(kept))
        return x.clone()

    @staticmethod
    def backward(ctx, slope):
        return slope


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x):
        return Kept.apply(self.layer(x))


@pytest.mark.parametrize(("mode", "most"), [(False, 2), (True, 6)], ids=["eval", "train"])
def test_a_validation_with_gradients_keeps_few_graphs_alive(mode, most):
    net = Keeping()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    doctor = watch(net, optimizer, nn.CrossEntropyLoss())
    for _ in range(8):
        net.train()
        optimizer.zero_grad()
        F.cross_entropy(net(torch.randn(6, 4)), torch.arange(6) % 3).backward()
        optimizer.step()
        net.train(mode)
        Kept.alive.clear()
        for _ in range(20):
            net(torch.randn(6, 4))
        assert sum(kept() is not None for kept in Kept.alive) <= most
    doctor.close()
