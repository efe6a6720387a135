"""Small files that ask for much: refused before anything of that size is made."""

import contextlib
import hashlib
import json
import os
import resource
import time

import numpy as np
import pytest
import torch

import castalia
from castalia.base import store
from castalia.base.saved_values import decode, encode
from castalia.errors import CastaliaError, CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.train.checkpoint import latest_checkpoint, read_checkpoint, write_checkpoint

X = np.random.default_rng(0).normal(size=(20, 3))


@contextlib.contextmanager
def little_memory(extra=300 << 20):
    """Give this process that many bytes more than it has, and no more."""
    with open("/proc/self/status") as lines:
        size = next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmSize"))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + extra, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def saved(tmp_path):
    model = castalia.MLPRegressor(hidden=(4, 3), epochs=1, random_state=0).fit(X, X[:, 0])
    return castalia.save(model, tmp_path / "model")


def edit(path, change):
    """Change a saved model and seal it anew, as a stranger could."""
    head = json.loads((path / "model.json").read_text())
    change(head)
    head["checksum"] = store._checksum(head)
    (path / "model.json").write_text(json.dumps(head))


def hidden(*sizes):
    def change(head):
        head["parameters"]["hidden"] = {"$": "tuple", "items": list(sizes)}

    return change


@pytest.mark.parametrize("width", [16_000, 10**7])
def test_a_wide_network_is_compared_with_the_file_before_it_is_built(saved, width):
    edit(saved, hidden(width, width))
    with little_memory(), pytest.raises(CheckpointMismatch, match=r"must have shape \(\d{5,}"):
        castalia.load(saved)


def test_a_deep_network_is_given_up_at_once(saved):
    edit(saved, hidden(*[2] * 100_000))
    start = time.perf_counter()
    with pytest.raises(CheckpointMismatch, match="no more layers than the file has tensors for"):
        castalia.load(saved)
    assert time.perf_counter() - start < 5


def test_the_count_of_layers_holds_for_the_load_alone(saved):
    castalia.load(saved)
    torch.nn.Sequential(*[torch.nn.ReLU() for _ in range(5000)])


def test_text_far_wider_than_its_words_is_refused_both_ways():
    wide = {"$": "array", "dtype": "<U200000000", "shape": [2], "data": ["a", "b"]}
    with little_memory(), pytest.raises(DamagedFile):
        decode(wide, {})
    with pytest.raises(InvalidParameter, match="astype"):
        encode(np.array(["a"] * 5000, dtype="<U9000"))
    lists = np.array(["a" * 20, "b"], dtype="<U4000")
    assert decode(*encode(lists)).dtype == lists.dtype


def test_a_tensor_is_referred_to_once():
    tree, tensors = encode(np.zeros(10**6))
    with little_memory(), pytest.raises(DamagedFile, match="referred to before"):
        decode([tree] * 1000, tensors)


def test_values_inside_values_have_a_limit(saved):
    nested = 0
    for _ in range(100):
        nested = [nested]
    edit(saved, lambda head: head["fitted"].update(deep_=nested))
    with pytest.raises(DamagedFile, match="truncated or was altered"):
        castalia.load(saved)
    model = castalia.MLPRegressor(hidden=(4, 3))
    model.deep_ = nested
    with pytest.raises(InvalidParameter, match="deeper than 64"):
        castalia.save(model, saved.parent / "other")


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_only_regular_files_are_read(saved, name, kind):
    (saved / name).unlink()
    os.mkfifo(saved / name) if kind == "pipe" else (saved / name).symlink_to("/dev/zero")
    with little_memory(), pytest.raises(DamagedFile, match="not a regular file"):
        castalia.load(saved)


def test_checkpoints_are_regular_files_of_shallow_values(tmp_path):
    os.mkfifo(tmp_path / "step-00000009.safetensors")
    with pytest.raises(DamagedFile, match="not a regular file"):
        read_checkpoint(tmp_path / "step-00000009.safetensors")
    write_checkpoint(tmp_path, 3, {"w": torch.ones(2)}, {"epoch": 1}, keep=9)
    with pytest.warns(castalia.errors.TrainingWarning, match="step-00000009"):
        assert latest_checkpoint(tmp_path)[1] == {"epoch": 1}


def test_a_pipeline_with_a_pipe_in_it_is_refused(tmp_path):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    path = castalia.save(make_pipeline(StandardScaler()), tmp_path / "pipeline")
    file = next(path.glob("*.skops"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(CastaliaError):
        castalia.load(path)


def test_numbers_that_are_not_of_a_network_cost_nothing_either(saved):
    head = json.loads((saved / "model.json").read_text())
    assert head["fitted"]["spec_"]["state"]["inputs"] == 3
    edit(saved, lambda head: head["fitted"]["spec_"]["state"].update(inputs=10**10))
    with little_memory(), pytest.raises(CheckpointMismatch):
        castalia.load(saved)
    raw = (saved / "weights.safetensors").read_bytes()
    assert hashlib.sha256(raw).hexdigest() == head["files"]["weights.safetensors"]
