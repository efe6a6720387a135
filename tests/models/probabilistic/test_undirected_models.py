"""Undirected models against sums over every state."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from castalia.errors import InvalidData, InvalidParameter
from castalia.models.probabilistic import EnergyModel, FactorGraph, MarkovRandomField
from castalia.models.probabilistic.belief_propagation import propagate
from castalia.probability import conditionally_independent


def table_of(model):
    """Return all probabilities, and ln Z, state by state."""
    sizes = list(model.sizes.values())
    states = np.array(list(itertools.product(*(range(k) for k in sizes))))
    logs = model.log_potential(states)
    log_z = np.log(np.exp(logs - logs.max()).sum()) + logs.max()
    return np.exp(logs - log_z).reshape(sizes), log_z


def random_model(seed, tree=False, cls=FactorGraph, strength=1.0):
    random = np.random.default_rng(seed)
    sizes = dict(zip("abcdef", random.integers(2, 4, 6), strict=True))
    names = list(sizes)
    if tree:
        scopes = [(names[i], names[int(random.integers(i))]) for i in range(1, 6)]
        scopes += [("c",), ("f",)]
    else:
        scopes = [*itertools.combinations("abcd", 2), ("d", "e", "f"), ("a", "f"), ("b",)]
    potentials = [(s, strength * random.normal(size=[sizes[n] for n in s])) for s in scopes]
    return cls(potentials)


def assert_marginals(found, table, names, atol):
    for axis, name in enumerate(names):
        others = tuple(i for i in range(table.ndim) if i != axis)
        got = list(found[name].values()) if isinstance(found[name], dict) else found[name]
        np.testing.assert_allclose(got, table.sum(axis=others), atol=atol)


@pytest.mark.parametrize("seed", range(4))
def test_partition_function_marginals_and_best_states_equal_enumeration(seed):
    model = random_model(seed, cls=MarkovRandomField)
    table, log_z = table_of(model)
    names = list(model.sizes)
    assert model.log_partition() == pytest.approx(log_z, abs=1e-12)
    assert_marginals(model.marginals(), table, names, 1e-12)
    best = np.unravel_index(table.argmax(), table.shape)
    assert [model.most_probable()[n] for n in names] == list(best)
    cut = np.take(table, [1], axis=0)
    assert_marginals(
        model.marginals({"a": 1}),
        np.where(np.arange(table.shape[0]).reshape(-1, *(1,) * 5) == 1, table, 0) / cut.sum(),
        names,
        1e-12,
    )
    assert model.log_partition({"a": 1}) == pytest.approx(log_z + np.log(cut.sum()), abs=1e-12)
    states = np.array(list(np.ndindex(table.shape)))
    np.testing.assert_allclose(np.exp(model.log_prob(states)), table.ravel(), atol=1e-12)


def test_roommate_and_colleague_are_independent_given_you():
    alike = [[10.0, 1.0], [1.0, 1.0]]
    field = MarkovRandomField.from_potentials(
        {("roommate", "you"): alike, ("you", "colleague"): alike},
        states={"you": ("ill", "well")},
    )
    table, _ = table_of(field)
    assert list(field.sizes) == ["roommate", "you", "colleague"]
    assert field.neighbours["colleague"] == {"you"}
    assert field.separated("roommate", "colleague", "you")
    assert conditionally_independent(table, 0, 2, [1])
    assert not field.separated("roommate", "colleague")
    assert not conditionally_independent(table, 0, 2)
    ill = field.marginals({"colleague": 0})["you"]["ill"]
    assert ill > field.marginals()["you"]["ill"]


def test_large_potentials_do_not_overflow():
    field = MarkovRandomField({("a", "b"): [[2000.0, 0.0], [0.0, 1999.0]]})
    assert field.log_partition() == pytest.approx(2000 + np.log1p(np.exp(-1)), abs=1e-9)
    assert field.marginals()["a"][0] == pytest.approx(1 / (1 + np.exp(-1)), abs=1e-12)


def test_annealing_finds_the_partition_function_within_its_error():
    model = MarkovRandomField.ising(3, 4, coupling=0.4, field=0.1)
    exact = model.log_partition()
    assert exact == pytest.approx(table_of(model)[1], abs=1e-12)
    found = model.annealed_log_partition(runs=200, betas=60, random_state=0)
    assert found.low < exact < found.high
    assert found.high - found.low < 0.5
    assert abs(found.log_z - exact) < 0.15


def test_one_triple_is_not_three_pairs_though_the_graph_is_the_same():
    random = np.random.default_rng(0)
    triple = FactorGraph({("a", "b", "c"): random.normal(size=(2, 2, 2))})
    pairs = FactorGraph({p: random.normal(size=(2, 2)) for p in itertools.combinations("abc", 2)})
    assert triple.neighbours == pairs.neighbours == {n: set("abc") - {n} for n in "abc"}
    assert (triple.n_parameters, pairs.n_parameters) == (8, 12)
    both = FactorGraph([(f.scope, f.table) for f in (*triple.factors, *triple.factors)])
    assert both.n_parameters == 16  # a scope may come twice


@pytest.mark.parametrize("seed", range(4))
def test_messages_are_exact_on_trees(seed):
    model = random_model(seed, tree=True)
    table, log_z = table_of(model)
    found = model.belief_propagation()
    assert found.tree
    assert found.converged
    assert len(found.changes) <= 14  # the diameter, both ways
    assert found.report().endswith("a tree, so this is exact.")
    assert_marginals(found.marginals, table, list(model.sizes), 1e-9)
    assert found.log_partition == pytest.approx(log_z, abs=1e-9)
    best = np.unravel_index(table.argmax(), table.shape)
    most = model.belief_propagation(maximum=True).marginals
    assert [int(most[n].argmax()) for n in model.sizes] == list(best)


def test_messages_around_loops_are_near_where_ties_are_weak_and_say_when_they_do_not_settle():
    weak = random_model(1, strength=0.2)
    table, log_z = table_of(weak)
    found = weak.belief_propagation()
    assert not found.tree
    assert found.converged
    assert_marginals(found.marginals, table, list(weak.sizes), 0.01)
    assert found.log_partition == pytest.approx(log_z, abs=0.01)
    frustrated = MarkovRandomField(
        {p: 3.0 * np.array([[-1.0, 1.0], [1.0, -1.0]]) for p in itertools.combinations("abcd", 2)}
        | {(n,): [0.0, 0.3] for n in "abcd"}
    )
    wild = propagate(frustrated.factors, damping=0.0, steps=100)
    assert not wild.converged
    assert min(wild.changes) > 0.1  # it goes round
    assert "still change by" in wild.report()
    assert frustrated.belief_propagation(damping=0.8, steps=600, tol=1e-6).converged


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_of_mean_field_rises_and_the_divergence_falls(seed):
    model = random_model(seed, strength=0.7)
    table, log_z = table_of(model)
    found = model.mean_field(random_state=seed)
    gains = np.diff(found.bounds)
    assert 3 < len(gains) < 200  # it ends at the first round that gains nothing
    assert (gains > -1e-10).all()
    assert (gains[:-1] >= 1e-10).all()
    assert found.bounds[-1] < log_z
    q = np.einsum(*(x for i, p in enumerate(found.marginals.values()) for x in (p, [i])))
    divergence = (q * np.log(q / table)).sum()
    assert divergence == pytest.approx(log_z - found.bounds[-1], abs=1e-9)


def test_gibbs_marginals_equal_enumeration_within_their_error():
    model = random_model(2)
    table, _ = table_of(model)
    chains = model.gibbs(steps=150, burn_in=20, chains=200, random_state=0)
    for axis, size in enumerate(table.shape):
        exact = table.sum(axis=tuple(i for i in range(6) if i != axis))
        counts = np.bincount(chains.flat[:, axis].numpy(), minlength=size) / len(chains.flat)
        np.testing.assert_allclose(counts, exact, atol=0.02)
    assert (chains.r_hat < 1.05).all()


# -- energies ----------------------------------------------------------------------------------


def test_energies_that_add_are_factors_that_multiply_and_no_state_is_impossible():
    random = np.random.default_rng(0)
    one, two = random.normal(size=(2, 3)) * 5, random.normal(size=(3, 2)) * 5
    model = EnergyModel(lambda x: one[x[:, 0], x[:, 1]] + two[x[:, 1], x[:, 2]], [2, 3, 2])
    p = model.probabilities().numpy()
    product = np.exp(-one)[:, :, None] * np.exp(-two)[None]
    np.testing.assert_allclose(p, product / product.sum(), atol=1e-12)
    assert (p > 0).all()
    assert model.log_partition() == pytest.approx(np.log(product.sum()), abs=1e-12)
    graph = FactorGraph({("a", "b"): -one, ("b", "c"): -two})
    assert graph.log_partition() == pytest.approx(model.log_partition(), abs=1e-12)
    rows = np.array([[0, 2, 1], [1, 0, 0]])
    np.testing.assert_allclose(model.log_prob(rows), np.log(p[tuple(rows.T)]), atol=1e-12)


def test_an_energy_model_is_sampled_and_annealed():
    u = np.array([[0.0, 1.0, -0.5], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]])
    model = EnergyModel(lambda x: -((x.numpy() @ u) * x.numpy()).sum(axis=1), [2, 2, 2])
    chains = model.gibbs(steps=60, burn_in=10, chains=300, random_state=0)
    exact = [float(model.probabilities().sum(dim=d)[1]) for d in ((1, 2), (0, 2), (0, 1))]
    np.testing.assert_allclose(chains.mean, exact, atol=0.02)
    found = model.annealed_log_partition(betas=20, random_state=0)
    assert found.low < model.log_partition() < found.high


# -- bad input ---------------------------------------------------------------------------------


def test_what_is_no_model_is_refused():
    with pytest.raises(InvalidData, match="potentials must be at least 0; that of `a` has -1"):
        FactorGraph.from_potentials({("a",): [1.0, -1.0]})
    with pytest.raises(InvalidData, match="one axis for each .* `a` and `b` has shape"):
        FactorGraph({("a", "b"): [1.0, 2.0]})
    with pytest.raises(InvalidData, match="Scale the weights down if they overflowed"):
        FactorGraph({("a",): [np.inf, 0.0]})
    with pytest.raises(InvalidData, match="`states` of `a` must be 2, .*got 1"):
        FactorGraph({("a",): [0.0, 0.0]}, states={"a": ["x"]})
    graph = FactorGraph.from_potentials({("a", "b"): np.eye(2)})
    with pytest.raises(InvalidData, match="must be one of its states, `0` or `1`; got 7"):
        graph.marginals({"a": 7})
    with pytest.raises(InvalidData, match="there must be a variable `z`"):
        graph.marginals({"z": 0})
    with pytest.raises(InvalidData, match="probability above 0; that on `a` and `b` is impossible"):
        graph.marginals({"a": 0, "b": 1})
    with pytest.raises(InvalidData, match="mean_field: every potential must be above 0"):
        graph.mean_field()
    with pytest.raises(InvalidParameter, match="`damping` must be at least 0 and below 1; got 1"):
        graph.belief_propagation(damping=1)
    with pytest.raises(InvalidData, match="at most 1,048,576 states .* got 1.07e\\+09"):
        EnergyModel(lambda x: x.sum(dim=1), [2] * 30).log_partition()
    with pytest.raises(InvalidData, match="one finite number a row"):
        EnergyModel(lambda x: x, [2, 2]).log_partition()
    with pytest.raises(InvalidData, match=r"Give more evidence|or sample"):
        MarkovRandomField.ising(30, 30, coupling=0.4).log_partition()


@pytest.mark.parametrize(("method", "near"), [("pseudo", 1e-3), ("contrastive", 0.06)])
def test_potentials_learnt_from_a_distribution_give_it_back(method, near):
    random = np.random.default_rng(0)
    names, sizes = ("a", "b", "c", "d"), (2, 3, 2, 2)
    scopes = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    size = dict(zip(names, sizes, strict=True))
    truth = MarkovRandomField(
        {scope: random.normal(size=[size[n] for n in scope]) for scope in scopes}
    )
    states = np.array(list(np.ndindex(*sizes)))
    weight = 1000 * table_of(truth)[0].ravel()
    rows = {n: states[:, i] for i, n in enumerate(names)}
    if method == "contrastive":  # rows of a batch are drawn alike, so repeat them
        times = np.round(weight).astype(int)
        rows, weight = {n: values.repeat(times) for n, values in rows.items()}, None
    settings = {"alpha": 1e-7, "epochs": 20, "lr": 0.4, "random_state": 0}
    learnt = MarkovRandomField.from_rows(rows, scopes, weight=weight, method=method, **settings)
    for name in names:
        wanted, found = truth.marginals()[name], learnt.marginals()[name]
        assert list(found.values()) == pytest.approx(list(wanted.values()), abs=near)
    evidence = {"a": 1, "d": 0}
    wanted = truth.marginals(evidence)["b"]
    assert learnt.marginals(evidence)["b"] == pytest.approx(wanted, abs=3 * near)
    assert learnt.separated("a", "d", given="c")


def test_rows_that_no_potentials_can_be_learnt_from_are_refused():
    rows = {"a": [0, 1, 0, 1], "b": ["x", "y", "x", "x"]}
    with pytest.raises(InvalidData, match="scopes must name columns, .*; got 'c'"):
        MarkovRandomField.from_rows(rows, [("a", "c")])
    with pytest.raises(InvalidParameter, match="`method` must be"):
        MarkovRandomField.from_rows(rows, [("a", "b")], method="exact")
    with pytest.raises(InvalidData, match="MarkovRandomField: column `a` must hold states"):
        MarkovRandomField.from_rows({**rows, "a": [0.5, 1.5, 2.5, 3.5]}, [("a", "b")])
    with pytest.raises(InvalidData, match="rows must have no gaps; `b` has"):
        MarkovRandomField.from_rows({**rows, "b": ["x", None, "y", "x"]}, [("a", "b")])


class Agreement(nn.Module):
    """Energy of a chain of states: one weight for each pair of neighbours that agree."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        return -(x[:, :-1] == x[:, 1:]).to(self.weight.dtype) @ self.weight


@pytest.mark.parametrize("method", ["contrastive", "pseudo"])
def test_an_energy_learns_the_moments_of_rows(method):
    truth = EnergyModel(Agreement(), [2, 3, 2, 2])
    truth.function.weight.data = torch.tensor([1.5, -1.0, 0.5])
    law = truth.probabilities()
    drawn = torch.multinomial(law.flatten(), 3000, True, generator=torch.Generator().manual_seed(0))
    rows = np.stack(np.unravel_index(drawn.numpy(), law.shape), axis=1)
    model = EnergyModel(Agreement(), [2, 3, 2, 2])
    before = float(model.log_prob(rows).mean())
    model.fit(rows, method=method, epochs=15, lr=0.2, random_state=0)
    after, best = float(model.log_prob(rows).mean()), float(truth.log_prob(rows).mean())
    assert after > before + 0.2
    assert after > best - 0.01
    assert (model.function.weight - torch.tensor([1.5, -1.0, 0.5])).abs().max() < 0.3


def test_what_an_energy_cannot_learn_from():
    model = EnergyModel(Agreement(), [2, 2, 2, 2])
    with pytest.raises(InvalidParameter, match="a torch.nn.Module with parameters"):
        EnergyModel(lambda x: x.sum(dim=1), [2, 2]).fit([[0, 1]])
    with pytest.raises(InvalidParameter, match="Did you mean `pseudo`"):
        model.fit([[0, 1, 0, 1]], method="pseudos")
    with pytest.raises(InvalidData, match="rows of 4 state numbers; got shape \\(1, 2\\)"):
        model.fit([[0, 1]])
    with pytest.raises(InvalidData, match="variable 2 has the states 0 to 1; got 5 in row 0"):
        model.fit([[0, 1, 5, 1]])
