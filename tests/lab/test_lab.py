"""Every experiment of the lab: its numbers are those of the course, and its figure is drawn."""

from functools import cache

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from castalia import lab
from castalia.cli import app
from castalia.errors import InvalidParameter


@cache
def outcome(name):
    return lab.run(name, quick=True)


def numbers(name):
    return outcome(name).numbers


@pytest.mark.parametrize("name", lab.EXPERIMENTS)
def test_an_experiment_draws_a_figure_and_says_a_sentence(name):
    found = outcome(name)
    assert isinstance(found.figure, Figure)
    assert all(ax.has_data() for ax in found.figure.axes)
    assert found.said.endswith(".")
    assert all(isinstance(value, float) for value in found.numbers.values())


def test_an_unknown_experiment_gets_the_nearest_name():
    with pytest.raises(InvalidParameter, match="got 'xorr'. Did you mean `xor`"):
        lab.run("xorr")


def test_the_command_lists_runs_and_draws(tmp_path):
    listed = CliRunner().invoke(app, ["lab"])
    assert all(name in listed.stdout for name in lab.EXPERIMENTS)
    figure = tmp_path / "deep" / "xor.svg"
    done = CliRunner().invoke(app, ["lab", "xor", "--quick", "--out", str(figure)])
    assert done.exit_code == 0, done.output
    assert figure.read_text().startswith("<?xml")
    assert "linear accuracy" in done.stdout
    bad = CliRunner().invoke(app, ["lab", "xor", "--quick", "--out", str(tmp_path / "xor.doc")])
    assert bad.exit_code == 2
    assert "must end in .png, .svg or .pdf" in bad.stderr


def test_exclusive_or_needs_a_hidden_layer():
    found = numbers("xor")
    assert found["linear weight"] == pytest.approx(0, abs=1e-12)
    assert found["linear bias"] == pytest.approx(0.5, abs=1e-12)
    assert found["linear accuracy"] == 0.75
    assert found["network accuracy"] == 1.0
    assert found["notes error"] == 0.0


def test_descent_contracts_by_one_minus_rate_times_curvature():
    found = numbers("gradient-descent")
    assert found["contraction at 0.4"] == pytest.approx(0.2)
    assert found["contraction at 0.95"] == pytest.approx(0.9)
    assert found["growth at 1.05"] == pytest.approx(1.1)
    assert found["limit"] == 1.0


def test_momentum_needs_fewer_steps_in_an_ill_conditioned_valley():
    found = numbers("ill-conditioned-momentum")
    assert found["momentum steps"] < 0.4 * found["plain steps"]


def test_stopping_early_lowers_the_test_error():
    found = numbers("early-stopping")
    assert found["error stopped"] < 0.9 * found["error to the end"]
    assert found["epochs run"] == found["best epoch"] + 41
