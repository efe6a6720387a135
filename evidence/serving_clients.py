"""Real clients against ``castalia serve``: curl, tritonclient, the openai package.

``python -m evidence serving_clients``; clients that are not installed are left out with a note.
"""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import castalia

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / castalia.__version__
MODELS = ("MLPClassifier", "GPTLanguageModel", "BERT")


def started(port):
    command = [sys.executable, "-m", "castalia", "serve", "--port", str(port)]
    command += [f"{name}={GOLDEN / name / 'model'}" for name in MODELS]
    process = subprocess.Popen(command, env={**os.environ, "CASTALIA_TOKEN": "secret"})
    for _ in range(2_400):
        time.sleep(0.1)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
    process.kill()
    raise RuntimeError("the server did not start")


def by_curl(port, X, wanted):
    body = json.dumps({"rows": X.tolist()})
    command = ["curl", "-s", f"http://127.0.0.1:{port}/predict/MLPClassifier", "-d", body]
    done = subprocess.run([*command, "-H", "Authorization: Bearer secret"], capture_output=True)
    rows = json.loads(done.stdout)["predictions"]
    found = [[row["probability_0"], row["probability_1"]] for row in rows]
    return np.abs(np.array(found) - wanted).max()


def by_triton(port, X, wanted):
    import tritonclient.http as triton

    headers = {"Authorization": "Bearer secret"}
    client = triton.InferenceServerClient(f"127.0.0.1:{port}")
    if not client.is_server_ready():
        raise RuntimeError("not ready")
    about = client.get_model_metadata("MLPClassifier", headers=headers)
    rows = triton.InferInput(about["inputs"][0]["name"], list(X.shape), "FP64")
    rows.set_data_from_numpy(X)
    answer = client.infer("MLPClassifier", [rows], headers=headers)
    return np.abs(answer.as_numpy("probability") - wanted).max()


def by_openai(port):
    import openai

    client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="secret")
    texts = json.loads((GOLDEN / "GPTLanguageModel" / "expected.json").read_text())["rows"]
    asked = {"model": "GPTLanguageModel", "prompt": texts[0], "max_tokens": 12, "temperature": 0}
    whole = client.completions.create(**asked).choices[0].text
    parts = [e.choices[0].text for e in client.completions.create(**asked, stream=True)]
    vector = client.embeddings.create(model="BERT", input=texts[:2]).data[1].embedding
    wanted = castalia.load(GOLDEN / "BERT" / "model").transform(texts[:2])[1]
    return "".join(parts) == whole, len(parts), float(np.abs(np.array(vector) - wanted).max())


def run(quick=False):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    model = castalia.load(GOLDEN / "MLPClassifier" / "model")
    rows = json.loads((GOLDEN / "MLPClassifier" / "expected.json").read_text())["rows"]
    X = np.array(rows)
    wanted, process = model.predict_proba(X), started(port)
    try:
        print("| client | what | outcome |\n|---|---|---|")
        if shutil.which("curl"):
            print(f"| curl | /predict, 8 rows | differs by {by_curl(port, X, wanted):.1e} |")
        if importlib.util.find_spec("tritonclient"):
            far = by_triton(port, X, wanted)
            print(f"| tritonclient | V2 metadata and binary infer, 8 rows | differs by {far:.1e} |")
        if importlib.util.find_spec("openai"):
            same, parts, far = by_openai(port)
            words = f"stream of {parts} events {'equals' if same else 'DIFFERS FROM'} the whole"
            print(f"| openai | completions, embeddings | {words}; vectors differ by {far:.1e} |")
    finally:
        process.terminate()
        start = time.perf_counter()
        code = process.wait(40)
        print(f"| SIGTERM | ends | code {code} after {time.perf_counter() - start:.1f} s |")
