"""Hidden Markov models against brute force over all paths, and against the plain recursions."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch.testing import assert_close

from castalia import HiddenMarkovModel, load, save
from castalia.errors import InvalidData, InvalidParameter, TrainingWarning
from castalia.models.sequence.direct_sequences import read_observations
from castalia.models.sequence.hidden_markov_em import ChainModel, Laid, expectation
from castalia.models.sequence.hidden_markov_emissions import Gaussian, Mixture, Observations
from castalia.models.sequence.hidden_markov_recursion import backward, forward, posterior, viterbi
from castalia.models.sequence.hidden_markov_scan import Lanes, prefix, scan, viterbi_scan

START = np.array([0.5, 0.3, 0.2])
MOVE = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SEEN = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.3, 0.5]])


def discrete(**settings):
    model = HiddenMarkovModel(emission="discrete", random_state=0, **settings)
    return model.given(start=START, transition=MOVE, probabilities=SEEN)


def brute(x):
    """Return the probability of every path with the symbols, by its states."""
    found = {}
    for path in product(range(3), repeat=len(x)):
        p = START[path[0]] * np.prod([MOVE[a, b] for a, b in zip(path, path[1:], strict=False)])
        seen = [
            1.0 if np.isnan(s) else SEEN[state, int(s)] for state, s in zip(path, x, strict=True)
        ]
        found[path] = p * np.prod(seen)
    return found


@pytest.mark.parametrize("x", [[0], [0, 1, 2, 2, 1, 0], [2, 2, np.nan, 0, 1, np.nan]])
def test_forward_viterbi_and_posterior_equal_the_sum_over_all_paths(x):
    paths, model = brute(x), discrete()
    total = sum(paths.values())
    assert model.score_samples(x)[0] == pytest.approx(np.log(total), abs=1e-12)
    assert model.predict(x).tolist() == list(max(paths, key=paths.get))
    smoothed = np.zeros((len(x), 3))
    for path, p in paths.items():
        smoothed[np.arange(len(x)), path] += p / total
    np.testing.assert_allclose(model.predict_proba(x), smoothed, atol=1e-12)
    last = model.filter(x)[-1]
    np.testing.assert_allclose(last, smoothed[-1], atol=1e-12)


def chain(b=2, t=300, k=4, seed=0, zeros=False):
    random = torch.Generator().manual_seed(seed)
    start, move = (torch.rand(s, generator=random).double() for s in ((k,), (k, k)))
    if zeros:
        move = move.triu()
    log_seen = 4 * torch.randn(b, t, k, generator=random).double()
    return start / start.sum(), move / move.sum(dim=1, keepdim=True), log_seen


@pytest.mark.parametrize("chunks", [1, 7, 40])
def test_the_scan_gives_what_the_recursion_gives(chunks):
    start, move, log_seen = chain()
    b, t, _ = log_seen.shape
    size = -(-t // chunks)
    lanes, inside = Lanes(b, t, -(-t // size), size), torch.ones(b, t).double()
    inside[1, 250:] = 0
    log_seen[1, 250:] = 0
    plain = posterior(start.log(), move.log(), log_seen, inside)
    found = scan(start, move, lanes.spread(log_seen, 0.0), lanes)
    assert_close(found.log_likelihood, plain.log_likelihood, rtol=1e-12, atol=0)
    assert_close(lanes.gather(found.states()), plain.states, rtol=0, atol=1e-10)
    moves = found.moves(move, lanes.spread(inside, 0.0), lanes)
    assert_close(moves, plain.moves, rtol=1e-8, atol=1e-10)
    logs, ends = (start.log(), move.log(), log_seen), torch.tensor([t, 250])
    path, log_path = viterbi_scan(*logs, lanes, ends)
    for row, end in enumerate(ends.tolist()):
        wanted, log_wanted = viterbi(*logs[:2], log_seen[row : row + 1, :end])
        assert torch.equal(path[row, :end], wanted[0])
        assert_close(log_path[row], log_wanted[0])


def test_messages_over_many_chunks_are_passed_in_chunks_again():
    random = torch.Generator().manual_seed(0)
    first, matrices = torch.rand(2, 3, generator=random), torch.rand(2, 50, 3, 3, generator=random)
    message, found = first.double(), []
    for c in range(50):
        found.append(message / message.sum(dim=1, keepdim=True))
        message = (found[-1][:, None] @ matrices[:, c].double())[:, 0]
    assert_close(prefix(first.double(), matrices.double()), torch.stack(found, dim=1))


def test_forward_and_backward_meet_in_the_likelihood_at_every_step():
    start, move, log_seen = chain(t=20)
    ahead, behind = forward(start.log(), move.log(), log_seen), backward(move.log(), log_seen)
    meet = (ahead + behind).logsumexp(dim=2)
    assert_close(meet, meet[:, :1].expand_as(meet))


def test_a_chain_with_impossible_moves_is_computed_in_log_space_without_underflow():
    move = np.eye(2)  # each sequence stays where it began
    model = HiddenMarkovModel().given(
        start=[0.5, 0.5], transition=move, means=[[0.0], [1.0]], covariances=[[1.0], [1.0]]
    )
    x = np.concatenate([np.full(600, -2.0), np.full(1300, 2.0)])
    log_p = np.array([norm(m).logpdf(x).sum() for m in (0.0, 1.0)]) + np.log(0.5)
    assert model.score_samples(x)[0] == pytest.approx(np.logaddexp(*log_p), rel=1e-12)
    assert model.predict(x[:800]).tolist() == [0] * 800
    assert model.transition_.tolist() == move.tolist()


def test_observations_of_every_size_leave_the_scan_finite():
    model = HiddenMarkovModel().given(
        start=[0.5, 0.5], transition=[[0.9, 0.1], [0.1, 0.9]], means=[[0.0], [1.0]],
        covariances=[[1e-6], [1e-6]],
    )  # fmt: skip
    x = np.tile([0.0, 1.0, 1.0, 0.0], 200)  # the other state is e^-500000 times as likely
    assert np.isfinite(model.score_samples(x)).all()
    np.testing.assert_array_equal(model.predict(x), x)
    np.testing.assert_allclose(model.predict_proba(x)[:, 1], x)


def full(k=2, d=3, seed=0):
    random = np.random.default_rng(seed)
    roots = random.normal(size=(k, d, d))
    return random.normal(size=(k, d)), roots @ roots.transpose(0, 2, 1) + np.eye(d)


@pytest.mark.parametrize("holes", [[], [1], [0, 2], [0, 1, 2]])
def test_densities_with_missing_channels_are_those_of_scipys_marginals(holes):
    means, covs = full()
    x = np.random.default_rng(1).normal(size=(4, 3))
    seen = [i for i in range(3) if i not in holes]
    wanted = [
        multivariate_normal(m[seen], c[np.ix_(seen, seen)]).logpdf(x[:, seen])
        if seen
        else 0 * x[:, 0]
        for m, c in zip(means, covs, strict=True)
    ]
    x[:, holes] = np.nan
    emission = Gaussian(torch.from_numpy(means), torch.from_numpy(covs))
    found = emission.log_density(Observations(torch.from_numpy(x)))
    np.testing.assert_allclose(found.numpy(), np.stack(wanted, axis=1), atol=1e-10)
    diagonal = Gaussian(torch.from_numpy(means), torch.from_numpy(np.einsum("kdd->kd", covs)))
    found = diagonal.log_density(Observations(torch.from_numpy(x)))
    each = norm(means[:, seen], np.sqrt(np.einsum("kdd->kd", covs)[:, seen]))
    wanted = each.logpdf(np.nan_to_num(x)[:, None, seen]).sum(axis=2)
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-10)


def test_a_mixture_of_one_component_is_that_component_and_of_two_their_weighted_sum():
    means, covs = (torch.from_numpy(a) for a in full(k=4))
    rows = Observations(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double())
    parts = Gaussian(means, covs)
    weights = torch.tensor([[0.3, 0.7], [0.6, 0.4]]).double()
    each = parts.log_density(rows).exp().view(5, 2, 2)
    assert_close(Mixture(weights, parts).log_density(rows), (each * weights).sum(dim=2).log())


@pytest.mark.filterwarnings("ignore::castalia.errors.TrainingWarning")
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"covariance": "full"},
        {"emission": "mixture"},
        {"emission": "mixture", "covariance": "full"},
    ],
)
@pytest.mark.parametrize("share", [0.0, 0.2])
def test_every_step_of_baum_welch_raises_the_likelihood(settings, share):
    random = np.random.default_rng(0)
    X = np.repeat(random.normal(size=(20, 2)) * 3, 12, axis=0) + random.normal(size=(240, 2))
    X[random.random(X.shape) < share] = np.nan
    model = HiddenMarkovModel(
        states=3, steps=12, tol=0, reg_covar=0, random_state=0, **settings
    ).fit(X)
    gains = np.diff(model.log_likelihoods_)
    assert len(gains) > 5
    assert gains.min() > -1e-9
    assert gains.sum() > 0.05


def test_baum_welch_finds_the_chain_again_and_padding_changes_nothing():
    true = HiddenMarkovModel(random_state=1).given(
        start=[0.5, 0.5], transition=[[0.95, 0.05], [0.1, 0.9]], means=[[0.0], [3.0]],
        covariances=[[1.0], [0.5]],
    )  # fmt: skip
    X, _ = true.sample(100, 30)
    cut = [part[: 40 + 2 * i] for i, part in enumerate(X)]
    found = HiddenMarkovModel(states=2, random_state=0).fit(cut)
    order = found.means_[:, 0].argsort()
    np.testing.assert_allclose(found.means_[order, 0], [0, 3], atol=0.15)
    np.testing.assert_allclose(found.transition_[np.ix_(order, order)], true.transition_, atol=0.04)
    joined = HiddenMarkovModel(states=2, random_state=0)
    joined.fit(np.concatenate(cut), lengths=[len(part) for part in cut])
    np.testing.assert_array_equal(joined.means_, found.means_)
    alone = np.array([found.score_samples(part)[0] for part in cut])
    np.testing.assert_allclose(found.score_samples(cut), alone, rtol=1e-12)
    np.testing.assert_array_equal(found.predict(cut)[7], found.predict(cut[7]))


def test_bic_prefers_the_true_number_of_states_and_restarts_do_not_lower_the_likelihood():
    X = np.concatenate([np.random.default_rng(i).normal(3 * (i % 3), 0.5, 25) for i in range(12)])
    model = HiddenMarkovModel(states=(1, 2, 3, 4), restarts=2, random_state=0).fit(X)
    assert len(model.start_) == 3 == min(model.bics_, key=model.bics_.get)
    assert model.bics_[3] == pytest.approx(model.bic(X), rel=1e-9)
    one = HiddenMarkovModel(states=3, random_state=0).fit(X)
    more = HiddenMarkovModel(states=3, restarts=4, random_state=0).fit(X)
    assert more.log_likelihoods_[-1] >= one.log_likelihoods_[-1]


def test_samples_have_the_frequencies_of_the_chain():
    X, states = discrete().sample(2000, 3)
    assert X.shape == states.shape == (3, 2000)
    moves = np.array(
        [[(states[:, 1:][states[:, :-1] == i] == j).mean() for j in range(3)] for i in range(3)]
    )
    np.testing.assert_allclose(moves, MOVE, atol=0.05)
    symbols = np.array([[(X[states == i] == j).mean() for j in range(3)] for i in range(3)])
    np.testing.assert_allclose(symbols, SEEN, atol=0.05)


def test_symbols_may_be_words_and_a_state_that_nothing_visits_keeps_its_row(tmp_path):
    random = np.random.default_rng(0)
    calm = random.choice(["sun", "rain"], p=[0.9, 0.1], size=200)
    wild = random.choice(["sun", "rain"], p=[0.2, 0.8], size=200)
    words = [np.concatenate([calm, wild, calm]), np.array(["sun", None, "rain"], dtype=object)]
    model = HiddenMarkovModel(states=2, emission="discrete", restarts=3, random_state=0).fit(words)
    assert model.symbols_.tolist() == ["rain", "sun"]
    path = model.predict(words)[0]
    assert (path[20:180] == path[20]).mean() > 0.9
    assert path[300] != path[100]
    kept = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(kept.predict(words)[0], path)
    with pytest.raises(InvalidData, match="symbols must be among those of fit; got .*snow"):
        model.predict(np.array(["sun", "snow"]))
    unvisited = ChainModel(
        torch.tensor([1.0, 0.0]).double(), torch.tensor([[1.0, 0.0], [0.5, 0.5]]).double(),
        Gaussian(torch.zeros(2, 1).double(), torch.ones(2, 1).double()),
    )  # fmt: skip
    (bucket,) = read_observations(np.zeros(5), "x").buckets()
    assert expectation(unvisited, Laid(bucket)).moves[1].sum() == 0
    far = HiddenMarkovModel(warm_start=True, tol=1e-3).given(
        start=[1, 0], transition=[[1, 0], [0.5, 0.5]], means=[[0], [9]], covariances=[[1], [1]]
    )
    far.fit(np.random.default_rng(0).normal(size=50))
    np.testing.assert_allclose(far.transition_, [[1, 0], [0.5, 0.5]])


@pytest.mark.parametrize(
    "X, lengths, said",
    [
        (np.zeros((0, 1)), None, "every sequence must have a step at least; sequence 0 is empty"),
        ([], None, "every sequence must have a step at least"),
        (np.zeros(5), [2, 2], "`lengths` must add up to the 5 steps of X; got 4"),
        (np.zeros(5), [5, 0], "`lengths` must be whole numbers of at least 1"),
        (np.zeros((2, 3, 1)), [3, 4], "lengths must be whole numbers from 1 to 3.*got 4"),
        ([np.zeros((4, 1)), np.zeros((4, 2))], None, "the first has 1 and sequence 1 has 2"),
        (np.array([0.0, np.inf, 1.0]), None, "no infinity .* sequence 0 does, first in step 1"),
        (np.zeros((2, 2, 2, 2)), None, "got shape"),
        (np.array(["a", "b"]), None, "arrays of numbers"),
        (np.full(9, 3.0), None, "`states` must be at most 1, the number of distinct"),
        (np.full(9, np.nan), None, "`states` must be at most 0"),
        (np.full(9, 1e200), None, "numbers below 1e"),
    ],
)
def test_what_cannot_be_a_sequence_is_refused_in_a_sentence(X, lengths, said):
    with pytest.raises(InvalidData, match=f"HiddenMarkovModel: .*{said}"):
        HiddenMarkovModel(states=2).fit(X, lengths=lengths)


def test_other_refusals_and_the_warning():
    with pytest.raises(InvalidParameter, match="`transition` must hold probabilities of 2 states"):
        HiddenMarkovModel().given(start=[0.5, 0.5], transition=[[0.5, 0.4], [0, 1]])
    with pytest.raises(InvalidParameter, match="`steps` must be a whole number"):
        discrete().sample(0)
    with pytest.raises(InvalidData, match="`sample_weight` must be 2 numbers"):
        HiddenMarkovModel().fit(np.random.default_rng(0).normal(size=(2, 9, 1)), sample_weight=[1])
    with pytest.warns(TrainingWarning, match="after 2 steps"):
        HiddenMarkovModel(steps=2, tol=0).fit(np.random.default_rng(0).normal(size=50))


def test_a_weight_counts_like_a_repetition_and_a_constant_channel_does_no_harm():
    random = np.random.default_rng(0)
    X = [np.stack([random.normal(3 * (i % 2), 1, 30), np.zeros(30)], axis=1) for i in range(4)]
    once = HiddenMarkovModel(states=2, random_state=0, warm_start=True, tol=1e-9, steps=5)
    start = {"start": [0.5, 0.5], "transition": [[0.9, 0.1], [0.1, 0.9]]}
    normal = {"means": [[0, 0], [3, 0]], "covariances": np.ones((2, 2))}
    with pytest.warns(TrainingWarning):
        weighed = once.given(**start, **normal).fit(X, sample_weight=[2, 1, 1, 1]).means_
    with pytest.warns(TrainingWarning):
        repeated = once.given(**start, **normal).fit([X[0], *X]).means_
    np.testing.assert_allclose(weighed, repeated, atol=1e-4)
    assert np.isfinite(once.score(X))
