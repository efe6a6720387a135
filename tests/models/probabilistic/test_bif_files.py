"""BIF files are read, written and refused by line."""

import gzip

import numpy as np
import pytest
from tests.models.probabilistic.small_networks import mixed_network, random_network

from castalia import BayesianNetwork
from castalia.errors import InvalidData

FILE = """// a comment
network "two variables" { property author "nobody"; }
variable rain { type discrete [ 2 ] { yes, no }; }
variable wet { type discrete [ 3 ] { "very wet", damp, dry }; property seen "yes" ; }
probability ( rain ) { table 0.2, 0.8; }
probability ( wet | rain ) {
  (yes) 0.5, 0.4, 0.1;
  (no) 0.05, 0.15, 0.8;
}
"""


def read(tmp_path, text):
    path = tmp_path / "net.bif"
    path.write_text(text)
    return BayesianNetwork.read(path)


def test_a_file_is_read_with_its_quoted_states(tmp_path):
    net = read(tmp_path, FILE)
    assert net.nodes_["wet"].states == ("very wet", "damp", "dry")
    assert net.parents_ == {"rain": (), "wet": ("rain",)}
    np.testing.assert_allclose(net.nodes_["wet"].table, [[0.5, 0.4, 0.1], [0.05, 0.15, 0.8]])


def test_a_table_of_all_numbers_lists_the_child_slowest_and_default_fills_the_rest(tmp_path):
    whole = FILE.replace(
        "(yes) 0.5, 0.4, 0.1;\n  (no) 0.05, 0.15, 0.8;", "table 0.5, 0.05, 0.4, 0.15, 0.1, 0.8;"
    )
    rest = FILE.replace("(no) 0.05, 0.15, 0.8;", "default 0.05, 0.15, 0.8;")
    for text in (whole, rest):
        np.testing.assert_array_equal(
            read(tmp_path, text).nodes_["wet"].table, read(tmp_path, FILE).nodes_["wet"].table
        )


def test_what_is_written_is_read_back_to_the_bit(tmp_path):
    net = random_network(3)
    again = BayesianNetwork.read(net.write(tmp_path / "net.bif"))
    assert again.parents_ == net.parents_
    for name, node in net.nodes_.items():
        assert again.nodes_[name].states == node.states
        np.testing.assert_allclose(again.nodes_[name].table, node.table, rtol=0, atol=1e-16)
    packed = tmp_path / "net.bif.gz"
    packed.write_bytes(gzip.compress((tmp_path / "net.bif").read_bytes()))
    assert BayesianNetwork.read(packed).parents_ == net.parents_


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("type discrete", "kind discrete", "line 3 of `net.bif` must have `type discrete"),
        ("[ 2 ]", "[ 3 ]", "line 3 .* the number of states, 2; got '3'"),
        ("probability ( rain )", "probability ( snow )", "line 5 .* declared above.*got 'snow'"),
        ("(no) 0.05", "(never) 0.05", "line 8 .* a state of `rain`, `yes` or `no`; got 'never'"),
        ("0.05, 0.15, 0.8;", "0.05, 0.95;", "line 8 .* 3 numbers for `wet`"),
        ("0.05, 0.15", "0.05, lots", "line 8 .* between 0 and 1; got 'lots'"),
        ("  (no) 0.05, 0.15, 0.8;\n", "", "line 8 .* a row of `wet` for `no` before it"),
        (
            "variable wet",
            "wariable wet",
            "line 4 .* `network`, `variable` or `probability`; got 'war",
        ),
        ("0.15, 0.8;\n}", "0.15, 0.8;\n", "line 8 .*; got the end"),
        (
            "probability ( rain ) { table 0.2, 0.8; }\n",
            "",
            "a probability for every variable; `rain`",
        ),
    ],
)
def test_a_syntax_error_is_named_with_its_line(tmp_path, old, new, said):
    assert old in FILE
    with pytest.raises(InvalidData, match=said):
        read(tmp_path, FILE.replace(old, new))


def test_lines_do_not_fit_into_the_format(tmp_path):
    with pytest.raises(InvalidData, match="holds tables only; `u` is continuous"):
        mixed_network().write(tmp_path / "net.bif")
