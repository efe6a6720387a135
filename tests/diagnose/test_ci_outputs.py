"""A diagnosis for CI servers, code hosts, chats and experiment trackers."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from xml.etree import ElementTree

import pytest

from castalia.diagnose import Diagnosis, Evidence, finding
from castalia.diagnose.finding_record import SourceLine
from castalia.diagnose.output.webhook import Webhook
from castalia.diagnose.source_lines import located
from castalia.errors import InvalidParameter

LINE = SourceLine("src/train.py", 41, "loss.backward()")
RESET = located(
    finding("CST112", "error", 0.97, 'Never <reset> & "so".', "Reset.", Evidence("share", 1, 0.5)),
    {"backward": LINE},
)
EARLY = finding("CST111", "info", 0.6, "Both losses still fall.", "Go on.", where="bell\x07")
BOTH = Diagnosis((RESET, EARLY), subject="train.py")


@pytest.mark.parametrize("fail_on, failures", [("error", 1), ("warning", 1), ("info", 2)])
def test_junit_has_a_case_for_every_finding(fail_on, failures):
    suite = ElementTree.fromstring(BOTH.to_junit(fail_on).encode())
    assert (suite.get("tests"), suite.get("failures")) == ("2", str(failures))
    first = suite[0]
    assert first.get("file") == "src/train.py"
    assert first.get("line") == "41"
    assert first[0].get("message") == 'Never <reset> & "so".'
    assert len(suite.findall("*/failure")) == failures
    assert suite[1].get("name") == "CST111 stopped-too-early in bell"


def test_sarif_stands_at_the_line_or_at_the_script():
    log = json.loads(BOTH.to_sarif())
    results = log["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"] for one in results]
    assert log["version"] == "2.1.0"
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places] == [
        ("src/train.py", 41),
        ("train.py", 1),
    ]
    assert [one["level"] for one in results] == ["error", "note"]
    assert {rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]} == {
        "CST111",
        "CST112",
    }


def test_a_webhook_gets_each_finding_once():
    bodies = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        hook = Webhook(f"http://127.0.0.1:{server.server_port}/hook", "train.py")
        for found in (RESET, RESET, EARLY):
            hook.post(found)
        hook.close()
        server.shutdown()
    assert [body["code"] for body in bodies] == ["CST112", "CST111"]
    assert bodies[0]["text"].startswith("train.py: CST112 gradients-accumulate")
    assert bodies[0]["source"] == "src/train.py:41"


def test_a_webhook_that_cannot_be_reached_says_so_and_an_address_is_checked():
    hook = Webhook("http://127.0.0.1:9/nobody")
    hook.post(RESET)
    hook.close()
    assert len(hook.faults) == 1
    with pytest.raises(InvalidParameter, match="`--webhook` must be an http"):
        Webhook("file:///etc/passwd")


class Tracker:
    """Writes down how it was called."""

    def __init__(self, *names):
        self.calls = {}
        for name in names:
            setattr(self, name, self._noting(name))

    def _noting(self, name):
        return lambda *args, **kwargs: self.calls.setdefault(name, []).append((args, kwargs))


def test_tensorboard_gets_scalars_and_the_text():
    writer = Tracker("add_scalar", "add_text")
    BOTH.log_to(writer, step=7)
    scalars = [args for args, _ in writer.calls["add_scalar"]]
    assert ("doctor/errors", 1.0, 7) in scalars
    assert ("doctor/CST112", 0.97, 7) in scalars
    assert "CST112" in writer.calls["add_text"][0][0][1]


def test_mlflow_gets_metrics_and_tags():
    mlflow = Tracker("set_tags", "log_metrics", "log_text")
    BOTH.log_to(mlflow, step=7)
    assert mlflow.calls["set_tags"][0][0][0] == {
        "doctor.worst": "error",
        "doctor.codes": "CST112 CST111",
    }
    assert mlflow.calls["log_metrics"][0][1] == {"step": 7}


def test_wandb_gets_figures_and_a_summary():
    run = Tracker("log")
    run.summary = {}
    BOTH.log_to(run)
    assert run.calls["log"][0][0][0]["doctor/warnings"] == 0.0
    assert run.summary["doctor.worst"] == "error"


def test_another_tracker_is_refused():
    with pytest.raises(InvalidParameter, match="SummaryWriter of TensorBoard.*got object"):
        BOTH.log_to(object())
