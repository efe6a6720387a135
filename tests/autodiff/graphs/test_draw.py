"""Images of graphs: what is folded, where it stands, and what is written."""

import re
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from castalia.autodiff import trace
from castalia.autodiff.graphs.draw import _contributions, figure_of
from castalia.autodiff.graphs.folded_nodes import fold, repetition
from castalia.autodiff.graphs.layout import lay_out
from castalia.errors import InvalidParameter


def logistic():
    def loss(x, w):
        return -torch.log(torch.sigmoid(x @ w))

    graph = trace(loss, torch.tensor([1.0, 2.0]), torch.tensor([0.5, -1.0]))
    graph.bprop()
    return graph


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1]).square().mean()


@cache
def lstm():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        graph = trace(Recurrent(), torch.randn(2, 5, 3))
    graph.bprop()
    return graph


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_small_graph_shows_every_box_with_values_and_adjoints():
    graph = logistic()
    written = texts(figure_of(graph))
    for box in graph.boxes:
        assert (box.name if box.is_leaf else box.operation) in written
    value, adjoint = graph.values["neg"].item(), graph.adjoints["log"].item()
    assert f"{value:.3g}" in written  # the loss, below the last box
    assert f"{adjoint:.3g}".replace("-", "−") in written
    assert "(1, 2)" in written  # the input on its edge


def test_without_a_backward_pass_there_are_values_only():
    graph = trace(lambda x: x.sin().sum(), torch.tensor([0.5]))
    graph.fprop()
    figure = figure_of(graph)
    assert len(figure.axes) == 1  # no scale of adjoints
    assert "0.479" in texts(figure)


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_picture_is_written_in_every_format(tmp_path, kind):
    file = logistic().draw(tmp_path / "deep" / f"graph.{kind}")
    assert file.stat().st_size > 1000


def test_another_format_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="must end in .png, .svg or .pdf; got '.*graph.doc'"):
        logistic().draw(tmp_path / "graph.doc")


def test_the_steps_of_a_recurrent_network_are_folded_one_by_one():
    nodes = fold(lstm(), folded=True)
    titles = [node.title for node in nodes]
    assert [t for t in titles if "of 5" in t] == [f"LSTM {i} of 5" for i in range(1, 6)]
    steps = [node for node in nodes if "of 5" in node.title]
    assert all(a in b.parents for a, b in zip(steps, steps[1:], strict=False))
    sizes = [node.size for node in steps]
    assert sizes == sorted(sizes)  # the gradient vanishes towards the first step
    assert {"lstm.weight_hh_l0", "head.weight"}.isdisjoint(titles)  # inside their layers


def test_every_operation_is_drawn_once_and_parents_come_first():
    graph = lstm()
    for folded in (True, False):
        nodes = fold(graph, folded=folded)
        boxes = [box for node in nodes for box in node.boxes if not box.is_leaf]
        assert sorted(map(id, boxes)) == sorted(id(b) for b in graph.boxes if not b.is_leaf)
        place = {id(node): i for i, node in enumerate(nodes)}
        assert all(place[id(p)] < place[id(n)] for n in nodes for p in n.parents)


def test_layers_are_folded_and_coloured_by_their_adjoint():
    layers = [part for _ in range(5) for part in (nn.Linear(6, 6), nn.Sigmoid())]
    net = nn.Sequential(*layers)
    graph = trace(lambda x: net(x).sum(), torch.ones(2, 6))
    graph.bprop()
    figure = figure_of(graph, folded=True)
    boxes = [p for p in figure.axes[0].patches if hasattr(p, "get_boxstyle")]
    colours = {re.sub(r"\s", "", str(p.get_facecolor())) for p in boxes}
    assert len(colours) > 4
    assert "size of the adjoint (RMS)" in figure.axes[1].get_ylabel()


def test_the_longest_repetition_is_found():
    assert repetition(list("xabcabcabcy")) == (1, 3, 3)
    assert repetition(list("abcdef")) == (0, 0, 0)


@st.composite
def dags(draw):
    n = draw(st.integers(2, 14))
    return {
        i: sorted(draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else [] for i in range(n)
    }


@settings(max_examples=60, deadline=None)
@given(dags())
def test_no_two_nodes_overlap_and_every_edge_goes_down(parents):
    widths = {node: 0.5 + 0.3 * (node % 4) for node in parents}
    layout = lay_out(parents, widths)
    for child, above in parents.items():
        assert all(layout.place[p][1] < layout.place[child][1] for p in above)
        for p in above:
            ys = [y for _, y in (layout.place[p], *layout.bends[p, child], layout.place[child])]
            assert ys == list(range(ys[0], ys[-1] + 1))
    rows = {}
    for node, (x, y) in layout.place.items():
        rows.setdefault(y, []).append((x - widths[node] / 2, x + widths[node] / 2))
    for row in rows.values():
        row.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in zip(row, row[1:], strict=False))
        assert row[0][0] >= -1e-9
        assert row[-1][1] <= layout.width + 1e-9


def test_a_graph_of_one_box_is_drawn(tmp_path):
    path = trace(lambda x: x, torch.ones(2)).draw(tmp_path / "one.svg")
    assert path.stat().st_size > 0


def batch_normalised():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0))
    graph = trace(lambda x: net(x).square().mean(), x)
    graph.bprop()
    return graph


@pytest.mark.parametrize("folded", [True, False])
def test_batch_normalisation_is_drawn_after_a_backward_pass(folded):
    graph = batch_normalised()
    assert len(figure_of(graph, folded).axes) == 2
    norm = next(box for box in graph.boxes if "batch_norm" in box.operation)
    parts = norm.bprop(norm.adjoint, *(parent.value for parent in norm.parents))
    by = {p.name: part for p, part in zip(norm.parents, parts, strict=True)}
    assert by["net.1.running_mean"] is None
    assert by["net.1.weight"].shape == (4,)


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    graph = trace(lambda x: layer(x).square().mean(), x)
    graph.bprop()
    return graph


def test_what_stands_between_layers_is_named_by_what_it_computes():
    titles = [node.title for node in fold(encoder(), folded=True)]
    assert titles == [
        "x", "MultiheadAttention", "add", "LayerNorm", "Linear", "relu", "Linear", "add",
        "LayerNorm", "pow", "mean",
    ]  # fmt: skip


def test_layers_of_one_class_are_told_apart_by_their_full_names():
    deep = nn.ModuleDict({f"a_very_long_name_of_a_layer_{i}": nn.Linear(4, 4) for i in range(6)})
    net = nn.ModuleDict({"another_name_that_is_long": deep})

    def chained(x):
        for layer in net["another_name_that_is_long"].values():
            x = layer(x)
        return x.sum()

    written = texts(figure_of(trace(chained, torch.ones(2, 4)), folded=True))
    names = [text for text in written if "a_very_long" in text]
    assert len(names) == len(set(names)) == 6


def test_adjoints_on_the_edges_are_what_each_box_sends_back():
    graph = encoder()
    nodes = fold(graph, folded=True)
    for node in nodes:
        sent = _contributions(node)
        for box, part in sent.items():
            if len(box.children) == 1 and isinstance(box.adjoint, torch.Tensor):
                torch.testing.assert_close(part, box.adjoint)


def test_a_notebook_shows_the_graph():
    html = logistic()._repr_html_()
    assert html.startswith("<div")
    assert "<svg" in html
    assert "<?xml" not in html
    assert html.rstrip().endswith("</div>")


def test_a_long_image_stays_within_a_size(tmp_path):
    net = nn.Sequential(*(nn.Linear(2, 2) for _ in range(150)))
    graph = trace(lambda x: net(x).sum(), torch.ones(1, 2))
    file = graph.draw(tmp_path / "long.png")
    assert int.from_bytes(file.read_bytes()[20:24], "big") <= 14_000  # height in the header
