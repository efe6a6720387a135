"""Choosing a device, and threads for small steps."""

import threading

import pytest
import torch

from castalia.errors import InvalidParameter
from castalia.utils.devices import (
    SMALL_STEP,
    cpu_scope,
    piecewise,
    resolve_device,
    wait_policy,
)

CPU = torch.device("cpu")


@pytest.fixture
def no_accelerator(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def two_cards(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)


def test_without_an_accelerator_auto_is_the_cpu(no_accelerator):
    assert resolve_device("auto") == CPU


def test_auto_takes_the_current_card_and_names_it(two_cards):
    assert resolve_device("auto") == torch.device("cuda:1")
    assert resolve_device("cuda") == torch.device("cuda:1")
    assert resolve_device("cuda:0") == torch.device("cuda:0")


def test_auto_takes_an_apple_chip_where_there_is_no_card(no_accelerator, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto").type == "mps"


@pytest.mark.parametrize("device", ["cpu", CPU])
def test_a_name_or_a_device_is_taken_as_it_is(device):
    assert resolve_device(device) == CPU


@pytest.mark.parametrize("device", ["gpu", "cuda:x", 1.5, None])
def test_what_is_no_device_is_named(device):
    with pytest.raises(InvalidParameter, match=r"`device` must be 'auto', 'cpu'.*; got ") as caught:
        resolve_device(device)
    assert repr(device) in str(caught.value)


def test_a_card_that_is_not_there_gets_a_remedy(no_accelerator):
    with pytest.raises(InvalidParameter, match=r"`device` is 'cuda:0'.*Use device='cpu'"):
        resolve_device("cuda:0")


@pytest.mark.parametrize(
    "name, value, said",
    [
        ("OMP_WAIT_POLICY", "passive", "passive"),
        ("GOMP_SPINCOUNT", "0", "passive"),
        ("OMP_WAIT_POLICY", "active", "default"),
    ],
)
def test_the_waiting_of_idle_threads_is_read_from_the_environment(monkeypatch, name, value, said):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    assert wait_policy() == "default"
    monkeypatch.setenv(name, value)
    assert wait_policy() == said


def settings():
    return torch.get_num_threads(), torch.backends.mkldnn.enabled, torch._C._get_mkldnn_enabled()


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("fails", [False, True])
def test_a_small_step_runs_on_one_thread_and_everything_is_put_back(two_threads, fails):
    before = settings()
    try:
        with cpu_scope(CPU, SMALL_STEP - 1) as choice:
            assert choice["threads"] == torch.get_num_threads() == 1
            assert choice["onednn"] is torch._C._get_mkldnn_enabled() is False
            if fails:
                raise ValueError
    except ValueError:
        pass
    assert settings() == before


@pytest.mark.parametrize("device, work", [(CPU, SMALL_STEP), (torch.device("cuda:0"), 1.0)])
def test_a_large_step_and_another_device_are_left_alone(two_threads, device, work):
    before = settings()
    with cpu_scope(device, work) as choice:
        assert settings() == before
        assert choice["threads"] == 2


def test_pieces_are_spread_over_threads_that_have_one_each_and_plain_blas(two_threads):
    before, meet = settings(), threading.Barrier(2, timeout=20)

    def work(piece):
        meet.wait()  # passes only when two pieces are under way at once
        return piece, torch.get_num_threads(), torch._C._get_mkldnn_enabled()

    with piecewise(CPU) as spread:
        found = list(spread(work, range(4)))
    assert found == [(piece, 1, False) for piece in range(4)]
    assert settings() == before


def test_pieces_on_one_thread_or_on_another_device_come_one_after_the_other():
    with piecewise(torch.device("cuda:0")) as spread:
        assert spread is map
