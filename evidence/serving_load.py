"""``castalia serve`` under steady load with reloads, wrong requests and killed servers.

``python -m evidence.serving_load [--seconds 600] [--kills 5] [--share 0.7]``. Eight connections ask
for one row each again and again: for ten seconds as fast as they can, then at that share of the
rate. One of ten requests is wrong. Every five seconds another version of the model is written and
loaded. The server is killed (SIGKILL) and started again as a supervisor would do.
An answer must be that of one of the two versions, a wrong request must get 422, and a request may
be lost only on a connection that was open when the server was killed.
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
from benchmarks.serving import free_port

import castalia

CONNECTIONS, COLUMNS = 8, 10
ROW = {f"x{i}": round(0.1 * i, 1) for i in range(COLUMNS)}


def versions(place):
    """Return two saved models, and the answers that they give."""
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(300, COLUMNS)), columns=list(ROW))
    folders, answers = [], []
    for seed in (0, 1):
        model = castalia.MLPClassifier(hidden=(64, 64), epochs=2, random_state=seed)
        model.fit(X, (X["x0"] > 0).astype(int))
        folders.append(Path(place) / f"version-{seed}")
        castalia.save(model, folders[-1])
        answers.append(model.predict_proba(pd.DataFrame([ROW]))[0, 1])
    return folders, np.array(answers)


class Load:
    """Clients, and what they count."""

    def __init__(self, port, answers):
        self.port, self.answers, self.counts = port, answers, Counter()
        self.kills, self.down, self.stop = 0, threading.Event(), threading.Event()
        self.pause = 0.0  # seconds between two requests of a connection

    def client(self, number):
        asked, connection, seen, due = number, None, 0, time.monotonic()
        while not self.stop.is_set():
            due = max(due + self.pause, time.monotonic() - self.pause)
            time.sleep(max(0.0, due - time.monotonic()))
            if self.down.is_set():  # nobody sends while the supervisor starts a server
                time.sleep(0.01)
                continue
            if connection is None or seen != self.kills:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                seen = self.kills
            asked += 1
            wrong = asked % 10 == 0
            try:
                self.count(wrong, *self.ask(connection, {"x0": "many"} if wrong else ROW))
            except (OSError, http.client.HTTPException):
                killed = self.down.is_set() or seen != self.kills
                self.counts["lost by a kill" if killed else "lost otherwise"] += 1
                connection = None

    @staticmethod
    def ask(connection, row):
        connection.request("POST", "/predict", json.dumps(row))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def count(self, wrong, status, answer):
        if wrong:
            self.counts["wrong requests refused" if status == 422 else f"wrong, {status}"] += 1
            return
        said = answer["predictions"][0]["probability_1"] if status == 200 else np.nan
        near = np.abs(self.answers - said).min() < 1e-5
        self.counts["answered" if near else f"not answered, {status}"] += 1


def started(folder, port):
    command = [sys.executable, "-m", "castalia", "serve", f"m={folder}", "--port", str(port)]
    process = subprocess.Popen(command)
    while process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/v2/health/ready")
            if connection.getresponse().status == 200:
                return process
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def exchange(folders, folder, turn, load):
    """Write the other version and have it loaded."""
    castalia.save(castalia.load(folders[turn % 2]), folder)
    connection = http.client.HTTPConnection("127.0.0.1", load.port, timeout=60)
    connection.request("POST", "/v2/repository/models/m/load")
    load.counts["reloads"] += connection.getresponse().status == 200


def pace(load, share):
    """Ask as fast as the connections can, and go on at a share of that."""
    load.counts.clear()
    time.sleep(10)
    rate = load.counts.total() / 10
    load.pause = CONNECTIONS / (share * rate)
    print(f"{rate:.0f} requests/s at most, then {share * rate:.0f}", flush=True)


def drive(load, folders, folder, seconds, kills, share):
    """Reload and kill while the clients ask; return memory of the last server, in MB."""
    process, memory, turn = started(folder, load.port), [], 0
    clients = [threading.Thread(target=load.client, args=(i,)) for i in range(CONNECTIONS)]
    for each in clients:
        each.start()
    time.sleep(2)
    pace(load, share)
    begin, asking, done = time.monotonic(), 0.0, 0
    while asking < seconds:
        time.sleep(5)
        asking = time.monotonic() - begin
        turn += 1
        exchange(folders, folder, turn, load)
        memory.append(psutil.Process(process.pid).memory_info().rss / 1e6)
        if done < kills and asking > seconds * (done + 1) / (2 * kills):  # then half without kills
            load.down.set()
            process.send_signal(signal.SIGKILL)
            process.wait()
            done, load.kills, memory = done + 1, load.kills + 1, []
            process = started(folder, load.port)
            load.down.clear()
        print(f"{asking:.0f} s", dict(load.counts), file=sys.stderr, flush=True)
    load.stop.set()
    for each in clients:
        each.join()
    process.terminate()
    process.wait(60)
    return memory


def main():
    parser = argparse.ArgumentParser(prog="python -m evidence.serving_load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--share", type=float, default=0.7)
    asked = parser.parse_args()
    os.environ.pop("CASTALIA_TOKEN", None)
    with tempfile.TemporaryDirectory() as place:
        folders, answers = versions(place)
        folder = Path(place) / "served"
        castalia.save(castalia.load(folders[0]), folder)
        load = Load(free_port(), answers)
        memory = drive(load, folders, folder, asked.seconds, asked.kills, asked.share)
    print("| what | count |\n|---|---|")
    for name, count in sorted(load.counts.items()):
        print(f"| {name} | {count:,} |")
    half = len(memory) // 2
    print(f"| kills | {load.kills} |")
    print(f"| memory, MB: after {half} reloads, after {len(memory)} | {memory[half]:.0f}, "
          f"{memory[-1]:.0f} |")  # fmt: skip


if __name__ == "__main__":
    main()
