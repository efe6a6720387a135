"""Options that commands share are defined once."""

from typing import get_type_hints

from castalia.cli.cure_command import cure
from castalia.cli.demo_command import demo
from castalia.cli.evaluate_command import evaluate
from castalia.cli.fit_command import fit
from castalia.cli.predict_command import predict
from castalia.cli.tune_command import tune

OWN = {"data", "seeds", "return"}  # fit takes several files and has another default of seeds


def shared(one, two):
    hints = [get_type_hints(command, include_extras=True) for command in (one, two)]
    names = (hints[0].keys() & hints[1].keys()) - OWN
    return {name: [each[name] for each in hints] for name in names}


def test_fit_and_tune_take_the_same_options_by_the_same_definitions():
    found = shared(fit, tune)
    assert {"target", "model", "settings", "metric", "test", "group", "time"} <= found.keys()
    assert [name for name, (one, two) in found.items() if one is not two] == []


def test_predict_and_evaluate_and_cure_and_demo_share_theirs():
    assert all(one is two for one, two in shared(predict, evaluate).values())
    assert all(one is two for name, (one, two) in shared(cure, demo).items() if name == "quiet")
