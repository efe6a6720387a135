"""``--workers N``: the same command in N processes, and their exit code."""

import signal
import sys

import pytest
from typer.testing import CliRunner

from castalia.cli.app import app
from castalia.cli.local_processes import in_processes


@pytest.fixture(autouse=True)
def signals_are_put_back():
    """torchrun's handlers stay where it ran, in a process that ends; this one has more to test."""
    heard = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {name: signal.getsignal(name) for name in heard}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


@pytest.mark.parametrize("code", [0, 75])
def test_the_command_runs_once_a_rank_and_gives_its_exit_code(tmp_path, monkeypatch, code):
    child = tmp_path / "child"
    child.write_text(f'#!/bin/sh\necho "$WORLD_SIZE $*" > {tmp_path}/rank-$RANK\nexit {code}\n')
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    monkeypatch.setattr(sys, "argv", ["castalia", "fit", "t.csv", "--workers", "2"])
    with pytest.raises(SystemExit) as left:
        in_processes(2)
    assert left.value.code == code
    for rank in range(0 if code else 2):  # the first failure ends the others
        said = (tmp_path / f"rank-{rank}").read_text()
        assert said == "2 -m castalia fit t.csv --workers 2\n"


def test_a_mistake_of_all_processes_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTALIA_SAID", str(tmp_path))
    found = [CliRunner().invoke(app, ["fit", f"{tmp_path}/none.csv"]) for _ in range(2)]
    assert [done.exit_code for done in found] == [2, 2]
    assert "none.csv" in found[0].output
    assert found[1].output == ""


def test_one_of_the_processes_goes_on_by_itself(monkeypatch):
    in_processes(None)
    in_processes(1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(sys, "executable", "")
    in_processes(2)


def test_a_cluster_wants_several_tables(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    words = ["predict", str(tmp_path), str(tmp_path / "t.csv"), "--cluster", "processes"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 2
    assert "`--cluster` divides files among workers" in found.output
