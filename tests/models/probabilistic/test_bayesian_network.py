"""Bayesian networks against sums over every state and against numerical integrals."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.models.probabilistic.small_networks import (
    alarm_network,
    joint_of,
    mixed_network,
    random_network,
)

from castalia import BayesianNetwork
from castalia.errors import DataWarning, InvalidData, InvalidParameter, ShapeMismatch
from castalia.models.probabilistic import GaussianNode, TableNode
from castalia.probability import conditionally_independent

YES = ("yes", "no")


def frame_of(net, n, seed=0):
    return net.sample(n, random_state=seed).table().to_pandas().astype(object)


# -- the definition ----------------------------------------------------------------------------


def test_the_joint_is_the_product_and_has_the_independences_of_the_graph():
    net = alarm_network()
    names, whole = joint_of(net)
    assert whole.sum() == pytest.approx(1, abs=1e-12)
    rows = pd.DataFrame(list(itertools.product(YES, repeat=5)), columns=names)
    np.testing.assert_allclose(
        np.exp(net.score_samples(rows[list(net.feature_names_in_)])), whole.ravel(), rtol=1e-12
    )
    at = {name: i for i, name in enumerate(names)}
    for name in names:  # given its parents, independent of every other non-descendant
        for other in names:
            given = net.parents_[name]
            if other == name or other in given:
                continue
            if net.d_separated(name, other, given):
                axes = [at[p] for p in given]
                assert conditionally_independent(whole, at[name], at[other], axes)
    assert net.d_separated("john", "mary", "alarm")
    assert not net.d_separated("burglary", "earthquake", "john")


def test_the_relay_race_needs_19_899_numbers_where_a_table_needs_999_999():
    time = tuple(range(100))
    flat, square = np.full(100, 0.01), np.full((100, 100), 0.01)
    net = BayesianNetwork.build(
        [
            TableNode("anna", time, flat),
            TableNode("bert", time, square, ("anna",)),
            TableNode("carl", time, square, ("bert",)),
        ]
    )
    assert [node.n_parameters for node in net.nodes_.values()] == [99, 9_900, 9_900]
    assert net.n_parameters_ == 19_899


def test_parameters_of_lines_are_counted_for_each_combination():
    assert mixed_network().n_parameters_ == 1 + 4 + 2 * 2 + 3 * 3 + 4


def test_given_its_blanket_a_variable_depends_on_nothing_else():
    net = random_network(5, n=7)
    for name in net.nodes_:
        blanket = net.markov_blanket(name)
        rest = set(net.nodes_) - blanket - {name}
        assert not rest or net.d_separated(name, rest, blanket)
    assert alarm_network().markov_blanket("burglary") == {"alarm", "earthquake"}


# -- exact answers -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_marginals_joint_queries_and_map_equal_enumeration(seed):
    net = random_network(seed)
    names, whole = joint_of(net)
    known = {names[-1]: net.nodes_[names[-1]].states[1], names[2]: net.nodes_[names[2]].states[0]}
    cut = np.take(np.take(whole, [1], axis=-1), [0], axis=2)
    p = cut / cut.sum()
    found = net.marginals(known)
    for axis, name in enumerate(names):
        others = tuple(i for i in range(len(names)) if i != axis)
        if name not in known:
            got = list(found[name].values())
            np.testing.assert_allclose(got, p.sum(axis=others), atol=1e-12)
    pair = net.query(names[0], names[3], evidence=known)
    axes = tuple(i for i in range(len(names)) if i not in (0, 3))
    np.testing.assert_allclose(pair, p.sum(axis=axes), atol=1e-12)
    assert net.log_probability(known) == pytest.approx(np.log(cut.sum()), abs=1e-12)
    best = np.unravel_index(p.argmax(), p.shape)
    mpe = net.most_probable(known)
    free = [i for i, name in enumerate(names) if name not in known]
    assert [mpe[names[i]] for i in free] == [net.nodes_[names[i]].states[best[i]] for i in free]
    two = np.unravel_index(pair.argmax(), pair.shape)
    asked = [names[0], names[3]]
    found = net.most_probable(known, names=asked)
    assert [found[n] for n in asked] == [
        net.nodes_[n].states[i] for n, i in zip(asked, two, strict=True)
    ]


def test_an_effect_is_explained_away_by_another_cause():
    net = alarm_network()
    alone = net.marginals({"alarm": "yes"})["burglary"]["yes"]
    beside = net.marginals({"alarm": "yes", "earthquake": "yes"})["burglary"]["yes"]
    assert alone == pytest.approx(0.3735, abs=1e-4)  # Russell and Norvig's network
    assert beside == pytest.approx(0.0033, abs=1e-4)
    assert net.marginals({"john": "yes", "mary": "yes"})["burglary"]["yes"] == pytest.approx(
        0.2842, abs=1e-4
    )


def test_a_mixed_network_equals_a_sum_over_its_coins_and_normal_formulas():
    net = mixed_network()
    known = {"w": 1.3, "u": 0.2}
    nodes, logs, means = net.nodes_, {}, {}
    for a, b in itertools.product(range(2), range(3)):
        p = nodes["a"].table[a] * nodes["b"].table[a, b]
        u_mean, u_var = nodes["u"].bias[a], nodes["u"].variance[a]
        v_mean = nodes["v"].bias[b] + nodes["v"].weights[b, 0] * 0.2
        v_var = nodes["v"].variance[b]
        w_mean, w_var = 0.5 + 0.2 - 0.5 * v_mean, 0.7 + 0.25 * v_var
        log = np.log(p) + normal(0.2, u_mean, u_var) + normal(1.3, w_mean, w_var)
        logs[a, b] = log
        means[a, b] = v_mean - 0.5 * v_var / w_var * (1.3 - w_mean)
    total = np.exp(list(logs.values())).sum()
    share = {key: np.exp(log) / total for key, log in logs.items()}
    found = net.marginals(known)
    assert found["a"]["yes"] == pytest.approx(sum(share[1, b] for b in range(3)), abs=1e-12)
    assert found["v"]["mean"] == pytest.approx(sum(share[k] * means[k] for k in share), abs=1e-12)
    assert net.log_probability(known) == pytest.approx(np.log(total), abs=1e-12)
    assert found["u"] == {"mean": 0.2, "variance": 0.0}


def normal(x, mean, variance):
    return -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)


def test_posterior_features_of_a_latent_cause_equal_enumeration_and_explain_the_correlation():
    net = BayesianNetwork.build(
        [
            TableNode("h", (0, 1), [0.6, 0.4]),
            TableNode("v1", (0, 1), [[0.9, 0.1], [0.2, 0.8]], ("h",)),
            TableNode("v2", (0, 1), [[0.7, 0.3], [0.1, 0.9]], ("h",)),
        ]
    )
    names, whole = joint_of(net)
    visible = whole.sum(axis=names.index("h"))
    assert not conditionally_independent(visible, 0, 1)  # together, they depend on each other
    assert conditionally_independent(whole, 1, 2, [names.index("h")])  # given h, not
    rows = pd.DataFrame(list(itertools.product((0, 1), repeat=2)), columns=["v1", "v2"])
    exact = whole[1].ravel() / whole.sum(axis=0).ravel()
    np.testing.assert_allclose(net.predict_proba(rows, column="h")[:, 1], exact, atol=1e-12)


# -- samples -----------------------------------------------------------------------------------


def test_frequencies_of_samples_are_within_the_error_of_the_joint():
    net = random_network(2, n=4)
    names, whole = joint_of(net)
    n = 40_000
    rows = net.sample(n, random_state=0)
    codes = [np.searchsorted(net.nodes_[v].states, rows.column(v)) for v in names]
    counts = np.zeros(whole.shape)
    np.add.at(counts, tuple(codes), 1)
    z = (counts / n - whole) / np.sqrt(whole * (1 - whole) / n)
    assert np.abs(z).max() < 4.5
    assert (z**2).mean() == pytest.approx(1, abs=0.5)


def test_numbers_that_are_sampled_have_the_moments_of_the_network():
    net = mixed_network()
    rows, exact = net.sample(40_000, random_state=1), net.marginals()
    for name in "uvw":
        spread = np.sqrt(exact[name]["variance"])
        assert rows.column(name).mean() == pytest.approx(exact[name]["mean"], abs=4 * spread / 200)
        assert rows.column(name).std() == pytest.approx(spread, rel=0.03)


def test_rejection_and_weighting_agree_with_the_exact_posterior_where_fixing_does_not():
    net = BayesianNetwork.build(
        [
            TableNode("rain", YES, [0.2, 0.8]),
            TableNode("wet", YES, [[0.9, 0.1], [0.1, 0.9]], ("rain",)),
        ]
    )
    exact = net.marginals({"wet": "yes"})["rain"]["yes"]
    kept = net.sample(20_000, {"wet": "yes"}, random_state=0)
    assert set(kept.column("wet")) == {"yes"}
    assert (kept.column("rain") == "yes").mean() == pytest.approx(exact, abs=0.015)
    rows = net.likelihood_weighting(20_000, {"wet": "yes"}, random_state=0)
    rain = rows.columns["rain"] == 0
    assert rows.weight @ rain == pytest.approx(exact, abs=0.015)
    assert rain.mean() == pytest.approx(0.2, abs=0.015)  # the draws alone are those of the prior
    w = np.where(rain, 0.9, 0.1)
    assert rows.effective_size == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-9)
    assert rows.effective_size < 0.5 * 20_000


def test_continuous_evidence_is_weighted_and_cannot_be_kept():
    net = mixed_network()
    rows = net.likelihood_weighting(50_000, {"w": 1.0}, random_state=0)
    exact = net.marginals({"w": 1.0})
    assert rows.weight @ rows.columns["v"] == pytest.approx(exact["v"]["mean"], abs=0.02)
    assert rows.weight @ rows.columns["a"] == pytest.approx(exact["a"]["yes"], abs=0.02)
    with pytest.raises(InvalidData, match="rejection needs discrete evidence; `w` is continuous"):
        net.sample(3, {"w": 1.0})


# -- learning ----------------------------------------------------------------------------------


def planted():
    """Return five variables: a -> b -> d <- c, and e alone."""
    return BayesianNetwork.build(
        [
            TableNode("a", YES, [0.5, 0.5]),
            TableNode("b", YES, [[0.85, 0.15], [0.2, 0.8]], ("a",)),
            TableNode("c", YES, [0.6, 0.4]),
            TableNode("d", YES, [[[0.95, 0.05], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]]], ("b", "c")),
            TableNode("e", YES, [0.3, 0.7]),
        ]
    )


@pytest.mark.parametrize("score", ["bic", "bdeu"])
def test_the_search_recovers_a_planted_skeleton(score):
    rows = frame_of(planted(), 4000)
    net = BayesianNetwork(score_name=score).fit(rows)
    found = {frozenset(edge) for edge in net.edges_}
    assert found == {frozenset("ab"), frozenset("bd"), frozenset("cd")}
    assert {("b", "d"), ("c", "d")} <= set(net.edges_)  # the collider has a direction
    assert net.log_likelihood_ == pytest.approx(net.score(rows), abs=1e-9)


def test_tables_are_shares_of_counts_with_pseudo_counts():
    rows = pd.DataFrame({"a": ["x"] * 6 + ["y"] * 4, "b": list("pppqqqpqqq")})
    net = BayesianNetwork(edges=[("a", "b")], prior=0).fit(rows)
    np.testing.assert_allclose(net.nodes_["b"].table, [[0.5, 0.5], [0.25, 0.75]])
    smooth = BayesianNetwork(edges=[("a", "b")], prior=4).fit(rows)
    np.testing.assert_allclose(smooth.nodes_["a"].table, [8 / 14, 6 / 14])  # 4 / 2 a cell
    np.testing.assert_allclose(smooth.nodes_["b"].table, [[4 / 8, 4 / 8], [2 / 6, 4 / 6]])


def test_lines_are_least_squares():
    random = np.random.default_rng(0)
    x = random.normal(size=300)
    rows = pd.DataFrame({"x": x, "y": 2 * x - 1 + 0.3 * random.normal(size=300)})
    node = BayesianNetwork(edges=[("x", "y")], prior=0).fit(rows).nodes_["y"]
    slope, bias = np.polyfit(x, rows["y"], 1)
    np.testing.assert_allclose([float(node.bias), *node.weights], [bias, slope], rtol=1e-9)
    assert float(node.variance) == pytest.approx(((rows["y"] - bias - slope * x) ** 2).mean())


def test_a_class_above_independent_numbers_is_naive_bayes():
    random = np.random.default_rng(1)
    y = random.integers(0, 3, 200)
    X = random.normal(size=(200, 2)) * (1 + y[:, None]) + y[:, None]
    net = BayesianNetwork(edges=[("y", "x0"), ("y", "x1")], prior=0).fit(X, y)
    reference = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(net.predict_proba(X), reference.predict_proba(X), atol=1e-9)


def test_expectation_maximisation_never_falls_and_beats_filling_in():
    rows = frame_of(planted(), 1500)
    random = np.random.default_rng(0)
    holed = rows.mask(random.random(rows.shape) < 0.25)
    net = BayesianNetwork(edges=planted().edges_, prior=1.0).fit(holed)
    assert len(net.em_) > 3
    assert (np.diff(net.em_) > -1e-9).all()
    apart = np.abs(net.nodes_["d"].table - planted().nodes_["d"].table).max()
    filled = holed.fillna(holed.mode().iloc[0])
    naive = BayesianNetwork(edges=planted().edges_).fit(filled).nodes_["d"].table
    assert apart < 0.08 < np.abs(naive - planted().nodes_["d"].table).max()


def test_missing_numbers_are_learnt_around_too():
    random = np.random.default_rng(2)
    x = random.normal(size=2000)
    rows = pd.DataFrame({"x": x, "y": 1.5 * x + random.normal(size=2000)})
    rows.loc[rows["y"] > 1, "x"] = np.nan  # x goes missing where y is large
    net = BayesianNetwork(edges=[("x", "y")], prior=0, steps=500, tol=1e-9).fit(rows)
    assert float(net.nodes_["y"].weights[0]) == pytest.approx(1.5, abs=0.1)
    assert (np.diff(net.em_) > -1e-7).all()
    kept = rows.dropna()
    assert abs(np.polyfit(kept["x"], kept["y"], 1)[0] - 1.5) > 0.2  # complete rows mislead


def test_gaps_are_filled_better_than_by_the_commonest_value():
    net = planted()
    rows = frame_of(net, 1000, seed=3)
    hole = np.random.default_rng(0).random(1000) < 0.5
    holed = rows.copy()
    holed.loc[hole, "b"] = None
    filled = BayesianNetwork(edges=net.edges_).fit(holed).impute(holed).column("b")
    right = (filled[hole] == rows["b"][hole]).mean()
    common = (rows["b"][hole] == rows["b"][~hole].mode()[0]).mean()
    assert right > common + 0.15
    assert (filled[~hole] == rows["b"][~hole]).all()
    assert holed["b"].isna().sum() == hole.sum()  # what was given stays as it is
    mixed = mixed_network()
    gap = pd.DataFrame({n: [None] for n in mixed.feature_names_in_}).assign(a="yes", w=1.0)
    wanted = mixed.marginals({"a": "yes", "w": 1.0})
    assert mixed.impute(gap).column("v")[0] == pytest.approx(wanted["v"]["mean"], abs=1e-12)


def test_any_column_is_predicted_from_the_others_and_gaps_are_summed_over():
    net = random_network(4, n=5)
    names, whole = joint_of(net)
    row = pd.DataFrame({names[1]: ["p"], names[3]: [None]})
    exact = whole[:, 0].sum(axis=tuple(range(1, 4)))
    np.testing.assert_allclose(net.predict_proba(row, names[0])[0], exact / exact.sum(), atol=1e-12)
    mixed = mixed_network()
    rows = pd.DataFrame({"a": ["yes", None], "w": [1.0, 2.0]})
    means = [
        mixed.marginals({"a": "yes", "w": 1.0})["v"]["mean"],
        mixed.marginals({"w": 2.0})["v"]["mean"],
    ]
    np.testing.assert_allclose(mixed.predict(rows, "v"), means, atol=1e-12)


def test_log_densities_of_rows_sum_to_one_and_average_to_the_score():
    net = random_network(1, n=4)
    states = itertools.product(*(node.states for node in net.nodes_.values()))
    rows = pd.DataFrame(list(states), columns=list(net.nodes_))[list(net.feature_names_in_)]
    logs = net.score_samples(rows)
    np.testing.assert_allclose(logs, np.log(joint_of(net)[1].ravel()), atol=1e-12)
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)
    assert net.score(rows) == pytest.approx(logs.mean(), abs=1e-12)


# -- bad input ---------------------------------------------------------------------------------


def test_what_is_no_network_is_refused_in_a_sentence():
    half = TableNode("a", YES, [0.5, 0.5])
    bad = {
        "cycle; got": [
            TableNode("a", YES, np.full((2, 2), 0.5), ("b",)),
            TableNode("b", YES, np.full((2, 2), 0.5), ("a",)),
        ],
        r"the row for parents in states \(1,\) sums to 0.9, -0.1 off": [
            half,
            TableNode("b", YES, [[0.5, 0.5], [0.4, 0.5]], ("a",)),
        ],
        "smallest entry is -0.5": [TableNode("a", YES, [1.5, -0.5])],
        r"must have shape \(2, 2\).*got \(2,\)": [half, TableNode("b", YES, [0.5, 0.5], ("a",))],
        "parents of `b` must be nodes, .*got `c`": [
            half,
            TableNode("b", YES, np.full((2, 2), 0.5), ("c",)),
        ],
        "different names; got `a`": [half, half],
        "`u` is continuous": [
            GaussianNode("u", 0, [], 1),
            TableNode("b", YES, np.full((2, 2), 0.5), ("u",)),
        ],
        "variance of `u` must be above 0; got 0": [GaussianNode("u", 0, [], 0)],
        "Name it in `given`": [half, GaussianNode("u", 0, [1.0], 1, ("a",))],
    }
    for said, nodes in bad.items():
        with pytest.raises(InvalidData, match=said):
            BayesianNetwork.build(nodes)
    with pytest.raises(ShapeMismatch, match="`weights` of `u` must have shape"):
        BayesianNetwork.build([GaussianNode("u", 0, [1.0], 1)])


def test_evidence_that_makes_no_sense_is_refused():
    net = random_network(0, zeros=True)
    last = "v5"
    with pytest.raises(InvalidData, match="must be one of its states, `p`.*got 'often'"):
        net.marginals({last: "often"})
    with pytest.raises(InvalidData, match="probability above 0; that on `v5` is impossible"):
        net.marginals({last: "p"})
    with pytest.raises(InvalidData, match="must be a variable `V0`.*Did you mean `v0`"):
        net.marginals({"V0": "p"})
    with pytest.raises(InvalidData, match=r"named one by one, such as query.*got \['v0', 'v1'\]"):
        net.query(["v0", "v1"])
    with pytest.raises(InvalidData, match="`w`, which is continuous, must be a finite number"):
        mixed_network().marginals({"w": "high"})
    with pytest.raises(InvalidParameter, match="`u` is continuous and has no probabilities"):
        mixed_network().predict_proba(pd.DataFrame({"a": ["yes"]}), "u")


def test_data_that_do_not_suit_are_refused():
    rows = pd.DataFrame({"x": [0.5, 1.5, 2.5], "a": ["p", "q", "p"]})
    with pytest.raises(
        InvalidData, match="`x` must hold states; got continuous numbers such as 0.5"
    ):
        BayesianNetwork(kinds="discrete").fit(rows)
    with pytest.raises(InvalidData, match="`a` must hold numbers; got 'p'"):
        BayesianNetwork(kinds="gaussian").fit(rows)
    with pytest.raises(InvalidData, match="'bdeu' needs discrete columns; `x`"):
        BayesianNetwork(score_name="bdeu").fit(rows)
    with pytest.raises(InvalidData, match="continuous `x` to `a`. Reverse it"):
        BayesianNetwork(edges=[("x", "a")]).fit(rows)
    with pytest.raises(InvalidData, match="must join columns"):
        BayesianNetwork(edges=[("x", "b")]).fit(rows)
    with pytest.raises(InvalidData, match="cycle"):
        BayesianNetwork(edges=[("a", "x"), ("x", "a")], kinds="auto").fit(
            pd.DataFrame({"x": ["k", "l", "k"], "a": ["p", "q", "p"]})
        )
    with pytest.raises(InvalidData, match="`x` must hold a value somewhere; it is empty"):
        BayesianNetwork().fit(pd.DataFrame({"x": [np.nan, np.nan], "a": ["p", "q"]}))


def test_states_that_fit_has_not_seen_count_as_missing():
    rows = frame_of(planted(), 300)
    net = BayesianNetwork().fit(rows.drop(columns="d"), rows["d"])
    new = rows.drop(columns="d").head(2).copy()
    new.loc[0, "b"] = "maybe"
    with pytest.warns(DataWarning, match="`b` holds states that fit has not seen"):
        found = net.predict_proba(new)
    new.loc[0, "b"] = None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(found, net.predict_proba(new))
