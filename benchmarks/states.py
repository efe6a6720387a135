"""Hidden states: Baum–Welch against hmmlearn, a Kalman smoother against filterpy and statsmodels,
an echo state network against reservoirpy; equal work from equal beginnings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from benchmarks.harness import Bar, Contender, Report, installed, main, race, ratio, table


@dataclass(frozen=True)
class Size:
    steps: int  # of the chain and of the smoother
    em: int
    esn_steps: int
    units: int
    rounds: int
    long: int  # steps of the chain on a GPU


SIZES = {
    "full": Size(100_000, 10, 20_000, 1000, 3, 10_000_000),
    "quick": Size(5_000, 3, 2_000, 100, 1, 100_000),
    "tiny": Size(400, 2, 300, 20, 1, 1_000),
}
STATES, CHANNELS = 8, 3


def run(scale: str = "full", only: str = "") -> Report:
    size = SIZES[scale]
    parts: dict[str, Callable[[Size], tuple[str, list[Bar]]]] = {
        "chain": _chain,
        "chains": _chains,
        "smoother": _smoother,
        "reservoir": _reservoir,
        "card": _card,
    }
    texts, bars = [], []
    for name, part in parts.items():
        if not only or only == name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                text, found = part(size)
            texts.append(f"### {name}\n\n{text}")
            bars += found
    setting = (
        f"{size.steps:,} steps, {STATES} states; {size.units} units over {size.esn_steps:,} steps"
    )
    return Report("states", setting, "\n\n".join(texts), bars)


def _start() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means of the data, and means and moves from which EM begins."""
    random = np.random.default_rng(0)
    means = 2 * random.normal(size=(STATES, CHANNELS))
    moves = 0.5 * np.eye(STATES) + 0.5 / STATES
    return means, means + 0.5 * random.normal(size=means.shape), moves


def _observations(steps: int) -> np.ndarray:
    random = np.random.default_rng(1)
    changes = random.random(steps) < 0.2
    states = random.integers(STATES, size=steps)[np.maximum.accumulate(np.arange(steps) * changes)]
    return _start()[0][states] + 0.7 * random.normal(size=(steps, CHANNELS))


def _chain(size: Size) -> tuple[str, list[Bar]]:
    return _baum_welch(size, 1, "Baum–Welch, one sequence")


def _chains(size: Size) -> tuple[str, list[Bar]]:
    return _baum_welch(size, max(1, size.steps // 100), "Baum–Welch, sequences of 100 steps")


def _card(size: Size) -> tuple[str, list[Bar]]:
    """A long chain on the GPU, hmmlearn on the CPU: two steps of EM each, seconds a step."""
    if not torch.cuda.is_available():
        return "(no GPU)", []
    size = replace(size, steps=size.long, em=2, rounds=1)
    X = _observations(size.steps)
    warm = _ours(size, X[: size.steps // 10], 1)
    warm()
    seconds, scores = {}, {}
    works = {"castalia, GPU": _ours(replace(size, em=10), X, 1)}
    for way in ("scaling", "log") if installed("hmmlearn") else ():
        works[f"hmmlearn ({way}), CPU"] = _hmmlearn(size, X, 1, way)
    for name, work in works.items():
        start = time.perf_counter()
        score = work()
        seconds[name] = (time.perf_counter() - start) / (10 if "GPU" in name else 2)
        scores[name] = _ours(size, X, 1)()() if "GPU" in name else score()  # after two steps
        print(f"{name}: {seconds[name]:.3f} s a step of EM, {scores[name]:.6f}", flush=True)
    lines = ["| contender | s a step of EM | times the GPU's |", "|---|---|---|"]
    ours = seconds["castalia, GPU"]
    lines += [f"| {name} | {s:.3f} | {s / ours:.1f} |" for name, s in seconds.items()]
    bars = [
        Bar(f"Baum–Welch, {size.steps:,} steps: times as fast as {name}", s / ours, ">=", least)
        for (name, s), least in zip(list(seconds.items())[1:], (0.0, 50.0), strict=False)
    ]
    return "\n".join(lines), bars


def _baum_welch(size: Size, sequences: int, what: str) -> tuple[str, list[Bar]]:
    X = _observations(size.steps)
    contenders = [Contender("castalia", _ours(size, X, sequences))]
    for way in ("log", "scaling") if installed("hmmlearn") else ():
        contenders.append(Contender(f"hmmlearn ({way})", _hmmlearn(size, X, sequences, way)))
    found = race(contenders, size.rounds)
    bars = [
        Bar(
            f"{what}: times as fast as {name}",
            ratio(found[name], found["castalia"]).median,
            ">=",
            least,
        )
        for name, least in (("hmmlearn (log)", 2.0), ("hmmlearn (scaling)", 1.0))
        if name in found
    ]
    return table(found, "castalia", "log-likelihood a step"), bars


def _ours(size: Size, X: np.ndarray, sequences: int) -> Callable[[], Callable[[], float]]:
    from castalia import HiddenMarkovModel

    _, means, moves = _start()
    ones = np.ones((STATES, CHANNELS))

    def ours() -> Callable[[], float]:
        model = HiddenMarkovModel(
            states=STATES, steps=size.em, tol=0, reg_covar=0, warm_start=True
        ).given(start=np.full(STATES, 1 / STATES), transition=moves, means=means, covariances=ones)
        model.fit(X.reshape(sequences, -1, CHANNELS))
        return lambda: model.log_likelihoods_[-1]

    return ours


def _hmmlearn(size: Size, X: np.ndarray, sequences: int, way: str) -> Callable:
    from hmmlearn.hmm import GaussianHMM

    _, means, moves = _start()

    def theirs() -> Callable[[], float]:
        model = GaussianHMM(
            STATES, n_iter=size.em, tol=-np.inf, init_params="", implementation=way,
            covars_prior=0, means_prior=0, min_covar=0,
        )  # fmt: skip
        model.startprob_, model.transmat_ = np.full(STATES, 1 / STATES), moves
        model.means_, model.covars_ = means, np.ones((STATES, CHANNELS))
        model.fit(X, [len(X) // sequences] * sequences)
        return lambda: model.monitor_.history[-1] / len(X)

    return theirs


def _system() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    f = random.normal(size=(STATES, STATES))
    return {
        "transition": 0.97 * f / np.abs(np.linalg.eigvals(f)).max(),
        "observation": random.normal(size=(CHANNELS, STATES)),
        "process_noise": 0.1 * np.eye(STATES),
        "measurement_noise": 0.5 * np.eye(CHANNELS),
        "mean": np.zeros(STATES),
        "covariance": np.eye(STATES),
    }


def _smoother(size: Size) -> tuple[str, list[Bar]]:
    from castalia import KalmanFilter

    system = _system()
    y, _ = KalmanFilter(**system, random_state=0).fit(np.zeros((2, CHANNELS))).sample(size.steps)
    model = KalmanFilter(**system).fit(y[:10])

    def checked(means: np.ndarray) -> Callable[[], float]:
        return lambda: float(np.square(y - means @ system["observation"].T).mean())

    contenders = [Contender("castalia", lambda: checked(model.smooth(y)[0]))]
    if installed("filterpy"):
        contenders.append(Contender("filterpy", lambda: checked(_filterpy(system, y))))
    if installed("statsmodels"):
        contenders.append(Contender("statsmodels", lambda: checked(_statsmodels(system, y))))
    found = race(contenders, size.rounds, warm_up=0 if size.steps > 50_000 else 1)
    bars = [
        Bar(
            f"Kalman smoother: times as fast as {name}",
            ratio(found[name], found["castalia"]).median,
            ">=",
            least,
        )
        for name, least in (("filterpy", 10.0), ("statsmodels", 2.0))
        if name in found
    ]
    return table(found, "castalia", "mean square of what is left"), bars


def _filterpy(system: dict[str, np.ndarray], y: np.ndarray) -> np.ndarray:
    from filterpy.kalman import KalmanFilter

    model = KalmanFilter(dim_x=STATES, dim_z=CHANNELS)
    model.F, model.H = system["transition"], system["observation"]
    model.Q, model.R = system["process_noise"], system["measurement_noise"]
    model.x, model.P = np.zeros(STATES), system["covariance"]
    means, covs, _, _ = model.batch_filter(y, update_first=True)
    return model.rts_smoother(means, covs)[0]


def _statsmodels(system: dict[str, np.ndarray], y: np.ndarray) -> np.ndarray:
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    model = KalmanSmoother(k_endog=CHANNELS, k_states=STATES)
    model.bind(np.ascontiguousarray(y))
    model["design"], model["transition"] = system["observation"], system["transition"]
    model["selection"], model["state_cov"] = np.eye(STATES), system["process_noise"]
    model["obs_cov"] = system["measurement_noise"]
    model.initialize_known(system["mean"], system["covariance"])
    return model.smooth().smoothed_state.T


def _reservoir(size: Size) -> tuple[str, list[Bar]]:
    from castalia import EchoStateNetwork
    from castalia.testing.toys import narma

    X, y = (part[0] for part in narma(n=1, steps=size.esn_steps + 1000, seed=3))
    train, test = slice(0, size.esn_steps), slice(size.esn_steps, None)

    def error(guess: np.ndarray) -> float:
        left, true = (guess - y[test])[100:], y[test][100:]
        return float(np.sqrt(np.square(left).mean() / true.var()))

    def ours() -> Callable[[], float]:
        model = EchoStateNetwork(
            units=size.units, input_scale=0.5, washout=100, alpha=1e-6, random_state=0
        ).fit(X[train], y[train])
        return lambda: error(model.predict(X[test]))

    def theirs() -> Callable[[], float]:
        from reservoirpy.nodes import Reservoir, Ridge

        share = min(1.0, 10 / size.units)
        nodes = Reservoir(
            size.units, sr=0.9, lr=1.0, input_scaling=0.5, rc_connectivity=share, seed=0
        )
        model = nodes >> Ridge(ridge=1e-6)
        model.fit(X[train], y[train], warmup=100)
        return lambda: error(model.run(X[test]))

    contenders = [Contender("castalia", ours)]
    if installed("reservoirpy"):
        contenders.append(Contender("reservoirpy", theirs))
    found = race(contenders, size.rounds)
    bars = []
    if "reservoirpy" in found:
        faster = ratio(found["reservoirpy"], found["castalia"]).median
        bars.append(Bar("echo state network: times as fast as reservoirpy", faster, ">=", 2.0))
    return table(found, "castalia", "NRMSE of NARMA-10"), bars


if __name__ == "__main__":
    main(run, only=str)
