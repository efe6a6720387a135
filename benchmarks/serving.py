"""Requests a second of one small network behind three servers, 64 connections, one row each.

``python -m benchmarks.serving [--seconds 8] [--rounds 3]``. The servers run one after the other in
processes of their own with one thread of torch; the client is ``wrk`` (of Debian); rounds take
turns. Beside the rate, the CPU time a request, of all processes of a server together.
Castalia batches what arrives together; FastAPI calls the model for each request; LitServe batches
up to 64 rows within 5 ms, through its faster queue (ZeroMQ). FastAPI and LitServe are of the
``bench`` extra; one that is absent is left out.
"""

import argparse
import importlib.util
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

CONNECTIONS, COLUMNS = 64, 10
ROW = {f"x{i}": round(0.1 * i, 1) for i in range(COLUMNS)}

CASTALIA = """
from castalia.serve import ServeSettings, serve
from castalia.serve.served_model import ServedModel
serve({"m": ServedModel("m", FOLDER)}, ServeSettings(), "127.0.0.1", PORT)
"""
FASTAPI = """
import castalia, numpy as np, uvicorn, warnings
warnings.simplefilter('ignore')  # about names of columns, once a request
from fastapi import FastAPI
from pydantic import create_model
model = castalia.load(FOLDER)
Row = create_model("Row", **{f"x{i}": (float, ...) for i in range(COLUMNS)})
app = FastAPI()
@app.post("/predict")
def predict(row: Row):
    chance = model.predict_proba(np.array([list(row.model_dump().values())]))[0]
    return {"prediction": model.classes_[chance.argmax()].item(), "probability": chance.tolist()}
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="error", access_log=False)
"""
LITSERVE = """
import castalia, litserve, numpy as np, warnings
warnings.simplefilter('ignore')
class Api(litserve.LitAPI):
    def setup(self, device):
        self.model = castalia.load(FOLDER)
    def decode_request(self, request):
        return np.array(list(request.values()), dtype=float)
    def batch(self, rows):
        return np.stack(rows)
    def predict(self, rows):
        return self.model.predict_proba(rows)
    def unbatch(self, found):
        return list(found)
    def encode_response(self, chance):
        return {"prediction": int(chance.argmax()), "probability": chance.tolist()}
if __name__ == "__main__":
    api = Api(max_batch_size=64, batch_timeout=0.005)
    server = litserve.LitServer(api, accelerator="cpu", workers_per_device=1, fast_queue=True)
    server.run(host="127.0.0.1", port=PORT, log_level="error", generate_client_file=False)
"""
SERVERS = {"castalia serve": CASTALIA, "FastAPI": FASTAPI, "LitServe": LITSERVE}
NEEDED = {"castalia serve": "starlette", "FastAPI": "fastapi", "LitServe": "litserve"}


LUA = """
wrk.method, wrk.body = "POST", [[BODY]]
wrk.headers["Content-Type"] = "application/json"
function done(summary, latency)
  local bad = summary.errors
  local wrong = bad.status + bad.read + bad.write + bad.timeout + bad.connect
  local p50, p99 = latency:percentile(50), latency:percentile(99)
  print(string.format("FOUND %d %d %d %d %d", summary.requests, summary.duration, p50, p99, wrong))
end
"""


def load(wrk, port, seconds, script):
    """Ask over all connections for so many seconds; return what came of it."""
    ask = [wrk, "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", "-s", str(script)]
    said = subprocess.check_output([*ask, f"http://127.0.0.1:{port}/predict"], text=True)
    words = said.partition("FOUND ")[2].split()
    requests, spent, p50, p99, wrong = (int(word) for word in words)
    rate = (requests - wrong) / spent * 1e6
    return {"rate": rate, "p50": p50 / 1e6, "p99": p99 / 1e6, "wrong": wrong}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def started(name, folder, port):
    """Start a server and wait until it accepts."""
    names = f"FOLDER, PORT, COLUMNS = {str(folder)!r}, {port}, {COLUMNS}\n"
    script = Path(folder).parent / f"{NEEDED[name]}_server.py"
    script.write_text(names + SERVERS[name])
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with open(
        script.with_suffix(".log"), "a"
    ) as log:  # LitServe writes a page for each request cut off
        process = subprocess.Popen(
            [sys.executable, str(script)], env=env, process_group=0, stderr=log
        )
    for _ in range(2_400):
        time.sleep(0.1)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
    process.kill()
    raise RuntimeError(f"{name} did not start")


def cpu_seconds(pid):
    """Return the CPU time of a server and its processes: it does not depend on who else works."""
    main = psutil.Process(pid)
    times = [each.cpu_times() for each in (main, *main.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def measured(name, folder, seconds, wrk):
    port = free_port()
    script = Path(folder).parent / "row.lua"
    script.write_text(LUA.replace("BODY", json.dumps(ROW)))
    process = started(name, folder, port)
    try:
        load(wrk, port, 2.0, script)  # warm-up, not counted
        before = cpu_seconds(process.pid)
        found = load(wrk, port, seconds, script)
        spent = cpu_seconds(process.pid) - before
        return found | {"cpu": spent / (found["rate"] * seconds)}
    finally:
        os.killpg(process.pid, 15)
        process.wait(20)


def small_model(folder):
    """Fit and save the network that all servers have."""
    import castalia

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, COLUMNS))
    import pandas as pd

    frame = pd.DataFrame(X, columns=list(ROW))
    model = castalia.MLPClassifier(hidden=(64, 64), epochs=2, random_state=0)
    castalia.save(model.fit(frame, (X[:, 0] > 0).astype(int)), folder)


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wrk", default="wrk", help="the program")
    asked = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers end with it
    names = [name for name in SERVERS if importlib.util.find_spec(NEEDED[name])]
    found = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        small_model(folder)
        for turn in range(asked.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                found[name].append(measured(name, folder, asked.seconds, asked.wrk))
                print(turn, name, found[name][-1], file=sys.stderr, flush=True)
    print("| server | requests/s | p50, ms | p99, ms | CPU, ms | refused |\n"
          "|---|---|---|---|---|---|")  # fmt: skip
    for name, rounds in found.items():
        rates = sorted(each["rate"] for each in rounds)
        cells = [statistics.median(each[key] for each in rounds) for key in ("p50", "p99", "cpu")]
        wrong = sum(each["wrong"] for each in rounds)
        spread = f"{statistics.median(rates):,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})"
        shown = " | ".join(f"{1e3 * cell:.2f}" for cell in cells)
        print(f"| {name} | {spread} | {shown} | {wrong} |")


if __name__ == "__main__":
    main()
