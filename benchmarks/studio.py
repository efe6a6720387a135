"""How long the studio takes for a table of 10,000 runs and a curve of 10 million points.

    python -m benchmarks.studio [--runs 10000] [--points 10000000] [--json FILE]

Each question is put to the application in this process, so wall and CPU time are the server's own;
``evidence/studio_journey.py`` measures the same in a browser. The first time is without anything in
memory, then the median of five.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from castalia.studio import StudioSettings, make_studio
from castalia.train.runs import RunStore

HOST = "http://127.0.0.1:8765"
_POINTS = """
WITH RECURSIVE steps (at) AS (SELECT 0 UNION ALL SELECT at + 1 FROM steps WHERE at + 1 < ?)
INSERT INTO metrics SELECT ?, ?, at, at / 1000, 2.0 / (1 + at * 1e-6) + random() * 1e-20 FROM steps
"""
_RUNS = (
    "INSERT INTO runs (name, status, created, updated, fingerprint, config) "
    "VALUES (?, 'finished', ?, ?, ?, ?)"
)


def many_runs(store, count):
    """Make runs with a folder and one score each."""
    rows = [
        (f"sweep-{i:05}", 1.6e9 + i, 1.6e9 + i, str(i), json.dumps({"estimator": "MLP", "lr": i}))
        for i in range(count)
    ]
    with store.database.writing() as connection:
        connection.executemany(_RUNS, rows)
        key = store.database.key_id(connection, "val_loss")
        connection.execute("INSERT INTO metrics SELECT id, ?, 1, 0, 1.0 / id FROM runs", (key,))
    for row in rows:
        (store.root / row[0]).mkdir()


def long_curve(store, points):
    """Make the run `long`, with one curve."""
    run = store.open_run("long", "long", {"estimator": "MLPClassifier"})
    with store.database.writing() as connection:
        connection.execute(_POINTS, (points, run._id, store.database.key_id(connection, "loss")))
    run.finish()


def questions(runs, points):
    """Return what pages ask for, by a name for people."""
    curve, half = "/api/curve?run=long&key=loss&width=1200", points // 2
    return {
        f"{runs:,} runs, the newest 50": "/api/runs?limit=50",
        f"{runs:,} runs, searched": "/api/runs?limit=50&search=9%20mlp",
        f"{runs:,} runs, by score": "/api/runs?limit=50&sort=score",
        f"{points:,} points, preview": curve + "&quick=1",
        f"{points:,} points, whole": curve,
        f"{points:,} points, a tenth": f"{curve}&first={half}&last={half + points // 10}",
        f"{points:,} points, a hundredth": f"{curve}&first={half}&last={half + points // 100}",
    }


def measured(client, path):
    """Return wall and CPU milliseconds of the first answer and the median of five."""
    found = []
    for _ in range(6):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        found.append((1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)))
    later = [statistics.median(each[i] for each in found[1:]) for i in (0, 1)]
    return {"first": found[0], "later": later, "bytes": len(answer.content)}


def main():
    from starlette.testclient import TestClient

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=10_000_000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RunStore(folder) as store:
        many_runs(store, asked.runs)
        long_curve(store, asked.points)
        app = make_studio(store, StudioSettings(token="t"))
        client = TestClient(app, base_url=HOST, cookies={"castalia-studio-8765": "t"})
        paths = questions(asked.runs, asked.points)
        found = {name: measured(client, path) for name, path in paths.items()}
    print(
        "| question | first, ms | then, ms | CPU first, ms | CPU then, ms |\n|---|---|---|---|---|"
    )
    for name, each in found.items():
        cells = [each["first"][0], each["later"][0], each["first"][1], each["later"][1]]
        print(f"| {name} | {' | '.join(f'{cell:,.0f}' for cell in cells)} |")
    if asked.json:
        asked.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
