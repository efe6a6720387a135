"""A search on a Ray cluster of two nodes whose workers, nodes and driver are killed on the way.

``python -m evidence.ray_faults [KILLS] [TRIALS]`` needs the extra ``cluster``. The two nodes are
started on this machine by Ray's own ``ray.cluster_utils.Cluster``. Is the result that of a search
that nobody disturbed, and is a finished trial ever run again?
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from evidence.rows import print_table

KINDS = ("worker", "worker", "worker", "node", "driver")
PAUSE = 5.0  # seconds between two kills on average: a new worker imports torch first


def judged(model: Any, X: Any, y: Any) -> float:
    """Score a model, and note that it was fitted."""
    with open(os.environ["FITS"], "a") as file:
        file.write(f"{model.lr!r}\n")
    return float(model.score(X, y))


def search(trials: int, study: str | None) -> list[list[float]]:
    """Return settings and scores of every trial."""
    from castalia import MLPClassifier, Training
    from castalia.tune import RandomSearch, Uniform

    source = np.random.default_rng(0)
    X = source.normal(size=(4000, 20))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    training = Training(verbose=False, watch=False, validation=0)
    model = MLPClassifier(hidden=(32,), epochs=60, random_state=0, training=training)
    space = {"lr": Uniform(1e-4, 1e-1, log=True)}
    kept = {"prune": False, "refit": False, "random_state": 0, "study": study}
    found = RandomSearch(model, space, trials=trials, cv=0.25, scoring=judged, **kept).fit(X, y)
    rates = [settings["lr"] for settings in found.cv_results_["params"]]
    return [list(pair) for pair in zip(rates, found.cv_results_["mean_test_score"], strict=True)]


def drive(address: str, trials: str, home: str) -> None:
    """Search on the cluster; the process that is killed as a driver."""
    from castalia import cluster

    with cluster(address, workers=2):
        found = search(int(trials), f"{home}/study.sqlite")
    (Path(home) / "found.json").write_text(json.dumps(found))


class Nodes:
    """Two nodes of one core each beside a head without any."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        small = {"object_store_memory": 200_000_000, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
        self.address = self.cluster.address
        self.nodes = [self._node() for _ in range(2)]

    def _node(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=200_000_000)

    def replace(self, source: random.Random) -> None:
        """Kill a node and everything on it; another joins."""
        node = self.nodes.pop(source.randrange(2))
        self.cluster.remove_node(node, allow_graceful=False)
        self.nodes.append(self._node())


def workers() -> list[int]:
    """Return the processes that run a task."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_carry_out"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def fits(home: Path) -> Counter[float]:
    """Return how often each rate was fitted and scored."""
    path = home / "fits"
    return Counter(map(float, path.read_text().split())) if path.is_file() else Counter()


def run(kills: int = 100, trials: int = 64) -> None:
    """Kill at random instants until the search ends, and compare."""
    source, done = random.Random(0), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        os.environ["FITS"] = str(home / "alone")
        alone = search(trials, None)
        os.environ["FITS"] = str(home / "fits")
        nodes, begun, again = Nodes(), time.monotonic(), 0
        driver = _driver(nodes.address, trials, home)
        while (code := driver.poll()) != 0:
            if code is not None:
                driver, again = _driver(nodes.address, trials, home), again + 1
            if done.total() - done["none"] < kills:
                time.sleep(source.expovariate(1 / PAUSE))
                done[_kill(source, nodes, driver)] += 1
                print(f"{time.monotonic() - begun:.0f} s: {dict(done)}", file=sys.stderr)
            else:
                time.sleep(0.2)
        seconds = time.monotonic() - begun
        found, counted = json.loads((home / "found.json").read_text()), fits(home)
        nodes.cluster.shutdown()
    done.pop("none", None)
    rows = [
        [
            ", ".join(f"{n} {kind}s" for kind, n in done.items()),
            str(len(found)),
            "yes" if found == alone else "NO",
            str(sum(counted.values()) - trials),
            str(again - done["driver"]),
            f"{seconds:.0f}",
        ]
    ]
    columns = ("killed", "trials", "equal to the search alone", "fits repeated", "gave up", "s")
    print_table("A search on Ray, killed", columns, rows)


def _driver(address: str, trials: int, home: Path) -> subprocess.Popen[bytes]:
    words = ["drive", address, str(trials), str(home)]
    return subprocess.Popen([sys.executable, "-m", "evidence.ray_faults", *words])


def _kill(source: random.Random, nodes: Nodes, driver: subprocess.Popen[bytes]) -> str:
    """Kill something; return what it was."""
    kind = source.choice(KINDS)
    if kind == "node":
        nodes.replace(source)
        return kind
    busy = [driver.pid] if kind == "driver" else workers()
    if not busy or driver.poll() is not None:
        return "none"
    os.kill(source.choice(busy), signal.SIGKILL)
    driver.wait() if kind == "driver" else None
    return kind


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        drive(*sys.argv[2:])
    else:
        run(*map(int, sys.argv[1:]))
