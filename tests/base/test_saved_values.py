import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from castalia.base import saved_values as codec
from castalia.base.saved_values import decode, encode, register
from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.protocols import Spec
from castalia.train.tensorfile import pack, unpack


@pytest.fixture
def registry(monkeypatch):
    """Undo the registrations of a test."""
    monkeypatch.setattr(codec, "_RECORDS", dict(codec._RECORDS))
    monkeypatch.setattr(codec, "_BY_CLASS", dict(codec._BY_CLASS))


def roundtrip(value):
    tree, tensors = encode(value)
    return decode(json.loads(json.dumps(tree, allow_nan=False)), unpack(pack(tensors))[0])


def assert_same_array(a, b):
    assert type(a) is np.ndarray
    assert (a.dtype, a.shape, a.dtype.str) == (b.dtype, b.shape, b.dtype.str)
    if b.dtype == object:
        assert [(type(x), x) for x in a.flat] == [(type(x), x) for x in b.flat]
    else:
        assert a.tobytes() == b.tobytes()
    assert a.flags.writeable
    assert a.flags.aligned


NUMBERS = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="?")
    | hnp.unsigned_integer_dtypes(endianness="?")
    | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | hnp.complex_number_dtypes(endianness="?", sizes=(64, 128))
)
OTHERS = hnp.datetime64_dtypes() | hnp.timedelta64_dtypes() | hnp.unicode_string_dtypes(max_len=5)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(NUMBERS | OTHERS, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)))
def test_arrays_come_back_to_the_bit(array):
    assert_same_array(roundtrip(array), array)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(NUMBERS | OTHERS, ()))
def test_scalars_keep_type_and_bits(array):
    scalar = array[()]
    back = roundtrip(scalar)
    assert type(back) is type(scalar)
    assert back.dtype == scalar.dtype.newbyteorder("=")
    assert back.tobytes() == scalar.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6)[::-1],
        np.arange(6).reshape(2, 3).T,
        np.broadcast_to(np.float32(1), (2, 2)),
        np.array(["a", None, 3, 2.5, True, ("x", 1)], dtype=object),
        np.array([[1, "a"], [None, math.inf]], dtype=object),
        np.array(["a\ud800", "é", ""]),
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
    ],
    ids=repr,
)
def test_odd_arrays_come_back(array):
    assert_same_array(roundtrip(array), array)


def test_memory_order_is_kept():
    assert roundtrip(np.asfortranarray(np.ones((2, 3)))).flags.f_contiguous
    assert roundtrip(np.ones((2, 3))).flags.c_contiguous


def test_object_arrays_of_lists_keep_their_shape():
    array = np.empty(2, dtype=object)
    array[:] = [[1, 2], [3, 4]]
    assert roundtrip(array).shape == (2,)


def test_nested_values_come_back_with_their_types():
    value = {
        "a": (1, [2.5, None, True]),
        1: {"x": np.float32(0.1)},
        2.5: "float key",
        "big": 2**200,
        "path": Path("runs") / "titanic",
        "device": torch.device("cpu"),
        "dtype": torch.bfloat16,
        "complex": 1 - 2j,
        "bytes": b"\x00\xff",
    }
    back = roundtrip(value)
    assert back == value
    assert type(back["a"]) is tuple
    assert type(back[1]["x"]) is np.float32
    assert type(next(iter(roundtrip({True: 1})))) is bool


@given(st.floats())
def test_floats_keep_every_bit(value):
    back = roundtrip(value)
    assert np.float64(back).tobytes() == np.float64(value).tobytes()


def test_tensors_come_back():
    back = roundtrip(
        {"w": torch.ones(2, dtype=torch.bfloat16), "p": torch.nn.Parameter(torch.zeros(1))}
    )
    assert back["w"].dtype == torch.bfloat16
    assert not back["p"].requires_grad


def test_random_states_go_on_where_they_were():
    legacy, modern = np.random.RandomState(3), np.random.default_rng(3)
    legacy.randn(3), modern.standard_normal(3)
    again = roundtrip([legacy, modern])
    assert again[0].randn() == legacy.randn()
    assert again[1].standard_normal() == modern.standard_normal()


def test_a_spec_is_registered():
    spec = Spec(inputs=3, outputs=2, categories=(4, 5), class_weight=(0.5, 2.0), extra={"vocab": 9})
    assert roundtrip(spec) == spec


@dataclasses.dataclass
class Point:
    x: float
    tail: tuple = ()
    seen: int = dataclasses.field(default=0, init=False)


class Counter:
    def __init__(self, counts):
        self.counts = counts

    def state(self):
        return {"counts": self.counts}

    @classmethod
    def from_state(cls, state):
        return cls(state["counts"])


def test_dataclasses_and_stateful_classes_can_be_registered(registry):
    register(Point)
    assert register(Counter, "tests.Counter") is Counter
    point = roundtrip([Point(0.5, (Point(1.0),))])[0]
    assert point == Point(0.5, (Point(1.0),))
    assert roundtrip(Counter({1: np.arange(3)})).counts[1].tolist() == [0, 1, 2]


def test_own_functions_can_be_given(registry):
    register(Counter, state=lambda c: sorted(c.counts), restore=lambda s: Counter(tuple(s)))
    assert roundtrip(Counter({2, 1})).counts == (1, 2)


def test_a_name_belongs_to_one_class(registry):
    register(Point)
    register(Point)
    with pytest.raises(InvalidParameter, match="`name` must be new; got 'Point'"):
        register(Counter, "Point")
    with pytest.raises(InvalidParameter, match="`object` must be a dataclass"):
        register(object)


class Other:
    pass


@pytest.mark.parametrize(
    "value",
    [Other(), Other, len, {1, 2}, np.ma.array([1]), np.zeros(1, dtype="i4,i4"), np.longdouble(1)],
)
def test_values_of_other_kinds_are_refused_by_path(value):
    with pytest.raises(InvalidParameter, match=r"`fitted\.table_\.1`"):
        encode({"fitted": {"table_": [0, value]}})


@pytest.mark.parametrize("name", ["os:system", "builtins.eval", "Poin", "Point\ud800", ""])
def test_a_record_that_is_not_registered_is_refused(registry, name):
    register(Point)
    with pytest.raises(CheckpointMismatch, match="nothing was imported"):
        decode({"$": "record", "name": name, "state": {"x": 1}}, {})


def test_a_record_with_a_wrong_state_is_refused(registry):
    register(Point)
    with pytest.raises(CheckpointMismatch, match="`Point` cannot be made"):
        decode({"$": "record", "name": "Point", "state": {"y": 1}}, {})


@pytest.mark.parametrize(
    "node",
    [
        {"$": "record", "name": ["Spec"], "state": {}},
        {"$": "array", "dtype": "|O", "shape": [2], "data": [1]},
        {"$": "array", "dtype": "<f8", "data": 3},
        {"$": "array", "dtype": "V9", "shape": [1], "data": [1]},
        {"$": "array", "dtype": "i4,O", "shape": [1], "data": [1]},
        {"$": "array", "dtype": "<U3", "shape": [1], "data": [1]},
        {"$": "array", "dtype": "<M8[D]", "shape": [1], "data": ["x"]},
        {"$": "array", "dtype": "<f4", "data": {"$": "tensor", "name": "t"}},
        {"$": "array", "dtype": "<f8", "order": "K", "data": {"$": "tensor", "name": "t"}},
        {"$": "scalar", "dtype": "<f8", "value": [1]},
        {"$": "scalar", "dtype": "O", "value": 1},
        {"$": "scalar", "array": 3},
        {"$": "device", "value": "toaster"},
        {"$": "dtype", "value": "torch.load"},
        {"$": "bytes", "value": 3},
    ],
    ids=str,
)
def test_nodes_that_make_no_sense_are_damaged_files(node):
    with pytest.raises(DamagedFile):
        decode(node, {"t": torch.zeros(2, dtype=torch.float64)})


def test_trees_of_the_first_release_still_load():
    """These nodes were written by version 0.1.0 and must load for ever."""
    tree = {
        "tuple": {"$": "tuple", "items": [1, {"$": "int", "hex": "-0x10000000000000000"}]},
        "inf": {"$": "float", "hex": "7ff0000000000000"},
        "dict": {"$": "dict", "items": [[0, "zero"], ["$", None]]},
        "numbers": {"$": "array", "dtype": "<f8", "data": {"$": "tensor", "name": "numbers"}},
        "text": {"$": "array", "dtype": "<U3", "shape": [2], "data": ["no", "yes"]},
        "objects": {"$": "array", "dtype": "|O", "shape": [2], "data": ["a", None]},
        "dates": {"$": "array", "dtype": "<M8[D]", "shape": [1], "data": [18262]},
        "scalar": {"$": "scalar", "dtype": "<f4", "value": 0.5},
        "path": {"$": "path", "value": "runs/a"},
        "spec": {
            "$": "record",
            "name": "Spec",
            "state": {
                "inputs": 3,
                "outputs": 1,
                "categories": {"$": "tuple", "items": [2]},
                "class_weight": None,
                "rows": 7,
                "extra": {},
            },
        },
    }
    value = decode(tree, {"numbers": torch.tensor([0.5], dtype=torch.float64)})
    assert value["tuple"] == (1, -(2**64))
    assert value["inf"] == math.inf
    assert value["dict"] == {0: "zero", "$": None}
    assert value["numbers"].tolist() == [0.5]
    assert value["text"].tolist() == ["no", "yes"]
    assert value["objects"].tolist() == ["a", None]
    assert value["dates"][0] == np.datetime64("2020-01-01")
    assert type(value["scalar"]) is np.float32
    assert value["path"] == Path("runs/a")
    assert value["spec"] == Spec(inputs=3, outputs=1, categories=(2,), rows=7)
    assert encode(value)[0] == tree


def test_an_unknown_kind_is_a_mismatch():
    with pytest.raises(CheckpointMismatch, match="unknown kind of value, 'eval'"):
        decode({"$": "eval"}, {})
