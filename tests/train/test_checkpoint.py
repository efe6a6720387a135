import base64
import errno
import json
import math
import multiprocessing
import os
import resource
import time

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load as load_safetensors

from castalia.errors import (
    CheckpointMismatch,
    DamagedFile,
    InvalidParameter,
    TrainingWarning,
    WriteFailed,
)
from castalia.train.checkpoint import latest_checkpoint, read_checkpoint, write_checkpoint
from castalia.train.state_trees import flatten, unflatten
from castalia.train.tensorfile import pack, unpack

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.uint16,
    torch.int32,
    torch.uint32,
    torch.int64,
    torch.uint64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.float8_e5m2fnuz,
]


def same_bits(a, b):
    """Say whether two tensors are equal to the last bit, NaN included."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    raw = [t.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    return torch.equal(*raw) if a.numel() else True


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_every_dtype_and_shape_comes_back_to_the_bit(tmp_path, dtype, shape):
    tensor = torch.randint(0, 2, shape).to(dtype)
    write_checkpoint(tmp_path, 1, {"x": tensor, "y": tensor.clone()}, {})
    tensors, _ = latest_checkpoint(tmp_path)
    assert same_bits(tensors["x"], tensor)
    assert same_bits(tensors["y"], tensor)


def test_nan_and_signed_zero_keep_their_bits():
    tensor = torch.tensor([math.nan, -0.0, math.inf, -math.inf])
    assert same_bits(unpack(pack({"x": tensor}))[0]["x"], tensor)


def test_shared_strided_and_required_grad_tensors_are_stored_as_they_read():
    base = torch.arange(12.0).reshape(3, 4)
    given_tensors = {
        "base": base,
        "shared": base,
        "turned": base.t(),
        "part": base[1:, ::2],
        "expanded": torch.ones(1).expand(5),
        "parameter": torch.nn.Parameter(base[0]),
        "conjugate": torch.tensor([1 + 2j]).conj(),
    }
    read, _ = unpack(pack(given_tensors))
    for name, tensor in given_tensors.items():
        assert torch.equal(read[name], tensor), name


def test_the_file_is_plain_safetensors_and_the_same_each_time():
    tensors = {"b": torch.ones(3, dtype=torch.bool), "a": torch.randn(2, 2)}
    assert torch.equal(load_safetensors(pack(tensors))["a"], tensors["a"])
    assert pack(tensors) == pack(dict(reversed(tensors.items())))


def test_read_tensors_may_be_changed_in_place():
    read, _ = unpack(pack({"x": torch.zeros(3)}))
    assert read["x"].add_(1).tolist() == [1, 1, 1]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_tensors_come_back_on_the_cpu():
    read, _ = unpack(pack({"x": torch.ones(3, device="cuda")}))
    assert read["x"].device.type == "cpu"


def test_a_sparse_tensor_is_refused_by_name():
    with pytest.raises(InvalidParameter, match="tensor `x` must be dense"):
        pack({"x": torch.eye(2).to_sparse()})


def test_only_the_last_two_checkpoints_stay(tmp_path):
    for step in (10, 20, 30):
        write_checkpoint(tmp_path, step, {"x": torch.tensor(step)}, {"step": step})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "step-00000020.safetensors",
        "step-00000030.safetensors",
    ]
    assert latest_checkpoint(tmp_path)[1] == {"step": 30}


def test_steps_are_ordered_as_numbers(tmp_path):
    for step in (99999999, 100000000):
        write_checkpoint(tmp_path, step, {}, {"step": step})
    assert latest_checkpoint(tmp_path)[1] == {"step": 100000000}


def test_no_folder_or_an_empty_one_has_no_checkpoint(tmp_path):
    assert latest_checkpoint(tmp_path / "missing") is None
    assert latest_checkpoint(tmp_path) is None


def test_a_damaged_newest_file_is_named_and_the_older_one_used(tmp_path):
    write_checkpoint(tmp_path, 1, {"x": torch.ones(4)}, {"step": 1})
    newest = write_checkpoint(tmp_path, 2, {"x": torch.ones(4)}, {"step": 2})
    newest.write_bytes(newest.read_bytes()[:-3])
    with pytest.warns(TrainingWarning, match="step-00000002.safetensors"):
        assert latest_checkpoint(tmp_path)[1] == {"step": 1}


def test_after_a_rewind_the_stale_damaged_file_is_the_first_to_go(tmp_path):
    for age, step in enumerate((1, 9)):
        path = write_checkpoint(tmp_path, step, {}, {})
        path.write_bytes(b"junk")
        os.utime(path, ns=(age, age))
    for step in (2, 3):
        write_checkpoint(tmp_path, step, {}, {"step": step})
    assert latest_checkpoint(tmp_path)[1] == {"step": 3}


def test_when_all_are_damaged_there_is_none(tmp_path):
    write_checkpoint(tmp_path, 1, {}, {}).write_bytes(b"")
    with pytest.warns(TrainingWarning, match="damaged"):
        assert latest_checkpoint(tmp_path) is None


def test_leftovers_of_interrupted_writes_are_ignored_and_cleaned(tmp_path):
    write_checkpoint(tmp_path, 1, {}, {"step": 1})
    leftover = tmp_path / ".step-00000002.safetensors.abcd"
    leftover.write_bytes(b"half")
    assert latest_checkpoint(tmp_path, clean=False)[1] == {"step": 1}
    assert leftover.exists()
    latest_checkpoint(tmp_path)
    assert not leftover.exists()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    state = {"digest": "0" * 64, "text": '"digest":"' + "0" * 64 + '"'}
    tensors = {"digest": torch.arange(5), "w": torch.randn(3)}
    return write_checkpoint(folder, 1, tensors, state)


def test_a_state_that_imitates_the_digest_changes_nothing(checkpoint):
    assert read_checkpoint(checkpoint)[1]["digest"] == "0" * 64


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_flipped_bit_or_lost_tail_is_found(checkpoint, tmp_path, data):
    raw = bytearray(checkpoint.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    broken = tmp_path / "step-00000001.safetensors"
    broken.write_bytes(raw)
    with pytest.raises(DamagedFile, match="truncated, altered or not a Castalia checkpoint"):
        read_checkpoint(broken)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_value_error(raw):
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        unpack(raw)


def test_a_format_of_the_future_asks_for_an_upgrade(tmp_path, monkeypatch):
    monkeypatch.setattr("castalia.train.checkpoint.FORMAT", 2)
    path = write_checkpoint(tmp_path, 1, {}, {})
    monkeypatch.undo()
    with pytest.raises(CheckpointMismatch, match=r"castalia-checkpoint-2.*Upgrade"):
        read_checkpoint(path)


# Written by version 0.1.0; it must load for ever.
GOLDEN = (
    "gAEAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJkaWdlc3QiOiI1NWFlZWEzOGJkNjM0NGNhMWI1N2ZkNTgwOWFkNWZk"
    "NmNkMGUwNzQ0YjMxYTI1OTg1ZGJjMmZhMjJlOTI2ZjE3IiwiZm9ybWF0IjoiY2FzdGFsaWEtY2hlY2twb2ludC0x"
    "Iiwic3RhdGUiOiJ7XCJlcG9jaFwiOjIsXCJ0XCI6WzEsbnVsbCxcIlxcdTAwZTlcIl19IiwiY2FzdHMiOiJ7XCJj"
    "XCI6IFwiY29tcGxleDEyOFwifSJ9LCJjIjp7ImR0eXBlIjoiVTgiLCJzaGFwZSI6WzEsMTZdLCJkYXRhX29mZnNl"
    "dHMiOlswLDE2XX0sIm4iOnsiZHR5cGUiOiJJNjQiLCJzaGFwZSI6W10sImRhdGFfb2Zmc2V0cyI6WzE2LDI0XX0s"
    "InciOnsiZHR5cGUiOiJGMzIiLCJzaGFwZSI6WzJdLCJkYXRhX29mZnNldHMiOlsyNCwzMl19fSAgICAgICAAAAAA"
    "AADwPwAAAAAAAABAAwAAAAAAAAAAAAA/AAAAwA=="
)


def test_a_checkpoint_of_the_first_release_still_loads(tmp_path):
    path = tmp_path / "step-00000007.safetensors"
    path.write_bytes(base64.b64decode(GOLDEN))
    tensors, state = read_checkpoint(path)
    assert state == {"epoch": 2, "t": [1, None, "é"]}
    assert tensors["w"].tolist() == [0.5, -2.0]
    assert same_bits(tensors["n"], torch.tensor(3))
    assert same_bits(tensors["c"], torch.tensor([1 + 2j], dtype=torch.complex128))


def write_for_ever(folder):
    for step in range(10**6):
        write_checkpoint(folder, step, {"x": torch.full((20_000,), float(step))}, {"step": step})


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_killing_the_writer_at_any_instant_leaves_a_whole_checkpoint(tmp_path):
    for round_ in range(6):
        folder = tmp_path / str(round_)
        writer = multiprocessing.get_context("fork").Process(target=write_for_ever, args=(folder,))
        writer.start()
        while not list(folder.glob("step-*")):
            time.sleep(0.001)
        time.sleep(0.003 * round_)
        writer.kill()
        writer.join()
        tensors, state = latest_checkpoint(folder)  # a warning about damage would be an error here
        assert tensors["x"][-1] == state["step"]
        assert not list(folder.glob(".step-*"))


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_gives_one_sentence_and_keeps_the_older_checkpoint(tmp_path, monkeypatch):
    write_checkpoint(tmp_path, 1, {}, {"step": 1})
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(WriteFailed, match=r"No space left.*untouched\. Free some space") as caught:
        write_checkpoint(tmp_path, 2, {}, {"step": 2})
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENOSPC
    monkeypatch.undo()
    assert latest_checkpoint(tmp_path)[1] == {"step": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_a_real_size_limit_leaves_the_older_checkpoint(tmp_path):
    write_checkpoint(tmp_path, 1, {}, {"step": 1})
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, old[1]))
    try:
        with pytest.raises(WriteFailed, match="step-00000002.safetensors"):
            write_checkpoint(tmp_path, 2, {"x": torch.zeros(100_000)}, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert latest_checkpoint(tmp_path)[1] == {"step": 1}


def test_a_state_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="`state` must hold plain JSON"):
        write_checkpoint(tmp_path, 1, {}, {"x": math.nan})
    with pytest.raises(InvalidParameter, match="`keep` must be at least 1; got 0"):
        write_checkpoint(tmp_path, 1, {}, {}, keep=0)


# -- nested states --


def roundtrip(tree):
    tensors, nodes = flatten(tree)
    text = json.dumps(nodes, allow_nan=False)
    return unflatten(unpack(pack(tensors))[0], json.loads(text))


def test_an_optimizer_goes_on_exactly_from_its_state(tmp_path):
    def made():
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 2)
        return net, torch.optim.AdamW(net.parameters(), lr=0.1, betas=(0.8, 0.9))

    def step(net, optimizer):
        optimizer.zero_grad()
        net(torch.ones(4, 3)).square().sum().backward()
        optimizer.step()

    net, optimizer = made()
    step(net, optimizer)
    write_checkpoint(
        tmp_path, 1, *flatten({"net": net.state_dict(), "opt": optimizer.state_dict()})
    )
    again, other = made()
    state = unflatten(*latest_checkpoint(tmp_path))
    again.load_state_dict(state["net"])
    other.load_state_dict(state["opt"])
    step(net, optimizer)
    step(again, other)
    assert state["opt"]["param_groups"][0]["betas"] == (0.8, 0.9)
    assert torch.equal(net.weight, again.weight)


def test_tensors_are_named_by_their_path_and_never_collide():
    tree = {"a.b": torch.zeros(1), "a": {"b": torch.ones(1), 0: torch.ones(2), "0": torch.ones(3)}}
    tensors, _ = flatten(tree)
    assert sorted(tensors) == ["a.0", "a.0~2", "a.b", "a.b~2"]
    back = roundtrip(tree)
    assert back["a.b"].item() == 0
    assert back["a"]["b"].item() == 1
    assert len(back["a"][0]) == 2
    assert len(back["a"]["0"]) == 3


def test_a_lone_tensor_and_a_dollar_key_roundtrip():
    assert roundtrip(torch.tensor(3)).item() == 3
    assert roundtrip({"$": "tensor", "name": "x"}) == {"$": "tensor", "name": "x"}


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text()
    | st.just("$"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.just("$"), inner, max_size=3)
    ),
    max_leaves=12,
)


def typed(tree):
    """Show a tree with the type of every part, so that 1, 1.0 and True differ."""
    if isinstance(tree, dict):
        return {(type(k), k): typed(v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree), [typed(item) for item in tree]
    return type(tree), repr(tree)


@settings(max_examples=60, deadline=None)
@given(plain)
def test_plain_trees_come_back_exactly(tree):
    assert typed(roundtrip(tree)) == typed(tree)


def test_integers_of_any_length_and_nan_come_back():
    back = roundtrip([10**6000, -(10**6000), math.nan, math.inf, -math.inf, -0.0])
    assert back[:2] == [10**6000, -(10**6000)]
    assert math.isnan(back[2])
    assert back[3:5] == [math.inf, -math.inf]
    assert math.copysign(1, back[5]) == -1


def test_other_values_are_refused_by_path():
    with pytest.raises(
        InvalidParameter, match=r"`a\.1` must be made of plain values.*builtins\.object"
    ):
        flatten({"a": [1, object()]})


def test_a_structure_that_holds_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(InvalidParameter, match="must not contain itself"):
        flatten(loop)


@pytest.mark.parametrize(
    "node",
    [
        {"$": "tensor", "name": "missing"},
        {"$": "tensor"},
        {"$": ["tensor"]},
        {"$": "tuple", "items": 3},
        {"$": "dict", "items": [[[1], 2]]},
        {"$": "float", "hex": "zz"},
        {"$": "float", "hex": "00"},
    ],
    ids=str,
)
def test_a_tree_that_makes_no_sense_is_a_damaged_file(node):
    with pytest.raises(DamagedFile):
        unflatten({}, node)


def test_an_unknown_kind_of_value_is_a_mismatch():
    with pytest.raises(CheckpointMismatch, match="'eval'"):
        unflatten({}, {"$": "eval", "code": "1"})
