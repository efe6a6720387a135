"""Memory that runs out and devices that fail: one sentence, and a checkpoint to go on from."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import castalia
from castalia import Callback, MLPClassifier, Training
from castalia.errors import DeviceFailed, OutOfMemory
from castalia.train import RunStore
from castalia.train.steppers import captured_step

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
X = np.random.default_rng(0).normal(size=(96, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)


class At(Callback):
    """Does something at the end of the fourth step, in the second epoch."""

    def __init__(self, act):
        self.act = act

    def on_batch_end(self, state):
        if state.total == 4:
            self.act()


def model(run=None, act=None, device="cpu", **settings):
    callbacks = [] if act is None else [At(act)]
    training = Training(run=run, callbacks=callbacks, watch=False, device=device, **settings)
    return MLPClassifier(
        hidden=(8,), epochs=4, batch_size=32, random_state=0, dropout=0.1, training=training
    )


def weights(fitted):
    return [value.cpu().tolist() for value in fitted.module_.state_dict().values()]


def goes_on(run, device="cpu"):
    """Whether the run says that it failed, and ends as an undisturbed training does."""
    with RunStore(run.parent) as store:
        ended = [found["status"] for found in store.runs()] == ["failed"]
    resumed = model(run, device=device).fit(X, Y)
    return ended and weights(resumed) == weights(model(device=device).fit(X, Y))


def too_much():
    torch.empty(2**60)  # more than any address space


def too_much_for_numpy():
    np.empty(2**50)


def no_room():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def asserted():
    raise RuntimeError("CUDA error: device-side assert triggered\nCompile with ...")


def lost():
    raise torch.AcceleratorError("CUDA error: unspecified launch failure")


@pytest.mark.parametrize("act", [too_much, too_much_for_numpy, no_room])
def test_memory_that_runs_out_is_one_sentence_and_the_same_fit_goes_on(tmp_path, act):
    words = r"^Training: the memory of cpu ran out in epoch 2, at step \d\. Lower `batch_size`"
    with pytest.raises(OutOfMemory, match=words) as caught:
        model(tmp_path / "run", act).fit(X, Y)
    assert str(tmp_path / "run") in str(caught.value)
    assert isinstance(caught.value, MemoryError)
    assert goes_on(tmp_path / "run")


@pytest.mark.parametrize("act", [asserted, lost])
def test_a_device_that_fails_is_one_sentence_and_the_same_fit_goes_on(tmp_path, act):
    with pytest.raises(DeviceFailed, match=r"^Training: cpu failed in epoch 2.*\(CUDA error: .*\)"):
        model(tmp_path / "run", act).fit(X, Y)
    assert goes_on(tmp_path / "run")


def test_without_a_run_the_sentence_says_how_to_keep_checkpoints():
    with pytest.raises(OutOfMemory, match=r"With Training\(run=…\)"):
        model(None, too_much).fit(X, Y)


def test_other_errors_stay_what_they_are():
    def other():
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="^something else$"):
        model(None, other).fit(X, Y)


def in_child(work):
    """Fork a process for some work; return how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except OutOfMemory:
            code = 3
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_an_address_space_that_is_full_is_one_sentence(tmp_path):
    def fill():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**26,) * 2)
        torch.empty(2**32)  # more than what an allocator may hold in reserve

    assert in_child(lambda: model(tmp_path / "run", fill).fit(X, Y)) == 3
    assert goes_on(tmp_path / "run")


@pytest.fixture
def small_group():
    """A memory group of Linux (its first version) that may take 64 MB."""
    group = Path(f"/sys/fs/cgroup/memory/castalia-{os.getpid()}")
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(2**26))
    except OSError:
        pytest.skip("needs a memory group that may be changed")
    yield group
    group.rmdir()


def test_a_training_that_the_system_kills_for_its_memory_goes_on(tmp_path, small_group):
    kept = []

    def fill():
        (small_group / "cgroup.procs").write_text(str(os.getpid()))
        for _ in range(8):
            kept.append(torch.ones(2**23))  # 32 MB each

    ended = in_child(lambda: model(tmp_path / "run", fill).fit(X, Y))
    assert ended == -signal.SIGKILL
    with RunStore(tmp_path) as store:
        assert [found["status"] for found in store.runs()] == ["interrupted"]
    assert weights(model(tmp_path / "run").fit(X, Y)) == weights(model().fit(X, Y))


# -- on a GPU -------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_memory_that_runs_out_while_a_step_is_recorded_leaves_plain_steps(monkeypatch):
    monkeypatch.setattr(captured_step, "BUSY", float("inf"))  # others may keep the GPU busy

    class Full(Callback):
        """Allows no more memory from the step that is recorded on."""

        def on_batch_start(self, state):
            if state.total == 3:
                torch.cuda.set_per_process_memory_fraction(1e-9)

    plain = model(device="cuda").fit(X, Y)
    assert plain.settings_["graph"]
    full = model(device="cuda")
    full.training.callbacks = [Full()]
    try:
        full.fit(X, Y)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert not full.settings_["graph"]
    for ours, theirs in zip(weights(full), weights(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
def test_a_full_gpu_is_one_sentence_and_the_same_fit_goes_on(tmp_path):
    with pytest.raises(OutOfMemory, match="the memory of cuda:0 ran out in epoch 2"):
        model(tmp_path / "run", lambda: torch.empty(2**45, device="cuda"), "cuda").fit(X, Y)
    assert goes_on(tmp_path / "run", "cuda")


LOST = """
import json, sys, torch
from tests.train.test_device_faults import X, Y, DeviceFailed, model, weights

def fault():
    torch.zeros(1, device="cuda")[torch.tensor([5], device="cuda")]
    torch.cuda.synchronize()

try:
    print(json.dumps(weights(model(sys.argv[1], fault if sys.argv[2] else None, "cuda").fit(X, Y))))
except DeviceFailed as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.gpu
def test_a_training_goes_on_in_a_new_process_after_its_gpu_failed(tmp_path):
    source = str(Path(castalia.__file__).parents[1])
    root = Path(__file__).parents[2]

    def fit(fault):
        words = [sys.executable, "-c", LOST, str(tmp_path / "run"), fault]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, str(root)])}
        done = subprocess.run(words, env=environment, cwd=root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    assert "cuda:0 failed in epoch 2" in fit("fault")
    assert fit("") == weights(model(device="cuda").fit(X, Y))
