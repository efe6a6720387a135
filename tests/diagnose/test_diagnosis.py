"""A diagnosis says the same in a terminal, in a notebook, in a file and in JSON."""

import io
import json
import math
import pickle
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from rich.console import Console

from castalia.diagnose import Diagnosis, Evidence, Remedy, finding
from castalia.diagnose.output.svg_plots import MOST, plot
from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter, WriteFailed

RATIO = Evidence("update-to-weight ratio of `fc1.weight`", 0.31, 0.1)
DEAD = finding("CST106", "warning", 0.8, "Units are dead.", "Leaky units.", where="fc1")
CAUSE = replace(
    finding(
        "CST101",
        "error",
        0.95,
        "The loss grows.",
        Remedy("lr=3.0 → 0.05", {"lr": 0.05, "hidden": (64, 64)}),
        RATIO,
        Evidence("loss", math.nan),
    ),
    symptoms=(DEAD,),
)
INFO = finding("CST111", "info", 0.5, "Both losses still fall.", "epochs=20 → 60")
CURVES = {"loss": [2.3, math.inf, math.nan], "gradient_norm": [("fc1", 1e-6), ("fc2", 1.0)]}
SICK = Diagnosis((CAUSE, INFO), ("Overfitting: no validation data.",), "train.py", CURVES)


def rendered(diagnosis, width=80):
    written = io.StringIO()
    Console(width=width, force_terminal=True, file=written).print(diagnosis)
    return written.getvalue()


# ---- a collection of findings ----


def test_findings_are_counted_and_run_through_without_their_symptoms():
    assert len(SICK) == 2
    assert [found.code for found in SICK] == ["CST101", "CST111"]


def test_a_code_is_found_wherever_it_stands():
    assert SICK.codes == ("CST101", "CST106", "CST111")
    assert "CST106" in SICK
    assert "CST207" not in SICK


@pytest.mark.parametrize(
    "findings, worst, wrong",
    [
        ((), None, False),
        ((INFO,), "info", False),
        ((INFO, DEAD), "warning", True),
        ((DEAD, CAUSE), "error", True),
        ((replace(INFO, symptoms=(DEAD,)),), "warning", True),
    ],
    ids=["nothing", "info", "warning", "error", "symptom"],
)
def test_it_is_true_when_something_is_wrong(findings, worst, wrong):
    found = Diagnosis(findings)
    assert found.worst == worst
    assert bool(found) is wrong


def test_places_are_added_to_bare_numbers_and_tensors():
    curves = {"a": [1, 2], "b": torch.tensor([1.5]), "c": [(np.int64(7), np.float32(0.5))]}
    assert Diagnosis(curves=curves).curves == {
        "a": ((0, 1.0), (1, 2.0)),
        "b": ((0, 1.5),),
        "c": ((7, 0.5),),
    }


def test_the_estimator_is_neither_compared_nor_written():
    own = replace(SICK, estimator=object())
    assert own == SICK
    assert hash(own) == hash(SICK)
    assert "object" not in own.to_json()


def test_diagnoses_that_say_something_else_differ():
    assert replace(SICK, notes=()) != SICK
    assert SICK.mute("CST111") != SICK
    assert SICK != "train.py"


def test_a_diagnosis_can_be_pickled():
    assert pickle.loads(pickle.dumps(SICK)) == SICK


# ---- muting ----


def test_a_muted_finding_is_gone():
    assert SICK.mute("CST111").codes == ("CST101", "CST106")
    assert SICK.mute("CST106").codes == ("CST101", "CST111")


def test_the_symptoms_of_a_muted_cause_take_its_place():
    deep = replace(CAUSE, symptoms=(replace(DEAD, symptoms=(INFO,)),))
    assert [found.code for found in SICK.mute("CST101")] == ["CST106", "CST111"]
    assert Diagnosis((deep,)).mute("CST101", "CST106").codes == ("CST111",)


def test_a_name_mutes_as_well_as_a_code():
    assert SICK.mute("learning-rate-too-high") == SICK.mute("CST101")


def test_muting_keeps_all_else():
    left = replace(SICK, estimator="mine").mute("CST111")
    assert (left.notes, left.subject, left.estimator) == (SICK.notes, SICK.subject, "mine")
    assert left.curves == SICK.curves


def test_an_unknown_name_is_told_with_its_nearest():
    with pytest.raises(InvalidParameter, match=r"got 'leak-age'\. Did you mean `leakage`\?"):
        SICK.mute("leak-age")
    with pytest.raises(InvalidParameter, match=r"got 'CST999'\.$"):
        SICK.mute("CST999")


# ---- text ----


def test_a_cause_is_told_with_evidence_remedy_page_and_symptoms():
    assert str(SICK.mute("CST111")).splitlines() == [
        "Diagnosis of train.py: 1 error.",
        "",
        "CST101 learning-rate-too-high  error  0.95",
        "  The loss grows.",
        "  · update-to-weight ratio of `fc1.weight` 0.31 (above 0.1)",
        "  · loss nan",
        "  → lr=3.0 → 0.05",
        "  castalia explain CST101",
        "  It explains:",
        "    CST106 dead-units in `fc1`  warning  0.80",
        "      Units are dead.",
        "      → Leaky units.",
        "      castalia explain CST106",
        "",
        "Could not be checked:",
        "  · Overfitting: no validation data.",
    ]


def test_a_healthy_training_takes_one_line():
    assert str(Diagnosis()) == "Diagnosis: nothing wrong was found."


def test_what_is_only_worth_knowing_is_not_counted_as_wrong():
    first = str(Diagnosis((INFO, INFO), subject="a.py")).splitlines()[0]
    assert first == "Diagnosis of a.py: nothing wrong was found, 2 things worth knowing."


def test_long_words_wrap_under_their_mark_and_stay_in_the_page():
    said = finding("CST101", "error", 0.9, "so " * 80, "do " * 80, Evidence("of " * 80, 1.0))
    lines = str(Diagnosis((said,))).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("    do") for line in lines) == 2


def test_a_remedy_of_several_lines_keeps_them():
    said = finding("CST112", "error", 0.9, "", "Write\noptimizer.zero_grad()")
    assert "  → Write\n    optimizer.zero_grad()\n" in str(Diagnosis((said,)))


def test_the_repr_is_one_line():
    assert repr(SICK) == "<Diagnosis of train.py: CST101, CST106, CST111>"
    assert repr(Diagnosis()) == "<Diagnosis: no findings>"


def test_rich_prints_the_same_words_in_colour():
    coloured = rendered(SICK, width=96)
    bare = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert coloured != bare
    assert "\x1b" not in str(SICK)
    assert [line.rstrip() for line in bare.splitlines()] == str(SICK).splitlines()


def test_rich_wraps_at_the_terminal_and_reads_no_markup():
    note = Diagnosis(notes=("[bold]column[/] " * 10,))
    bare = re.sub(r"\x1b\[[\d;]*m", "", rendered(note, width=60))
    assert max(len(line.rstrip()) for line in bare.splitlines()) <= 60
    assert bare.count("[bold]column[/]") == 10


# ---- JSON ----


def test_a_diagnosis_comes_back_from_json_whole():
    back = Diagnosis.from_json(SICK.to_json())
    assert back == SICK
    assert back.findings[0].remedy.changes == {"lr": 0.05, "hidden": (64, 64)}
    assert back.findings[0].symptoms == (DEAD,)
    assert back.curves["loss"][1] == (1, math.inf)
    assert math.isnan(back.findings[0].evidence[1].value)


def test_json_is_strict_and_names_the_pages():
    def refuse(word):
        raise AssertionError(word)

    content = json.loads(SICK.to_json(), parse_constant=refuse)
    assert content["worst"] == "error"
    assert content["findings"][0]["page"] == "docs/findings/CST101.md"


def test_values_of_numpy_and_torch_and_strange_ones_can_be_written():
    changes = {"lr": np.float32(0.5), "n": torch.tensor(3), "what": torch.float32, "s": {1}}
    said = finding("CST101", "error", 0.9, "", Remedy("", changes))
    back = Diagnosis.from_json(Diagnosis((said,)).to_json()).findings[0].remedy.changes
    assert back == {"lr": 0.5, "n": 3, "what": "torch.float32", "s": (1,)}


@pytest.mark.parametrize(
    "text, error",
    [
        ("{", DamagedFile),
        ("[1]", DamagedFile),
        ('{"a": 1}', DamagedFile),
        ('{"format": 1}', DamagedFile),
        ('{"format": 1, "findings": [{}], "notes": [], "subject": "", "curves": {}}', DamagedFile),
        ('{"format": 99}', CheckpointMismatch),
    ],
)
def test_a_text_that_is_no_diagnosis_is_refused(text, error):
    with pytest.raises(error, match=r"Diagnosis\.from_json"):
        Diagnosis.from_json(text)


# ---- HTML ----


class Tags(HTMLParser):
    """Checks that every tag is closed, and keeps the text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.seen = [], "", []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("shown", [SICK, Diagnosis(), Diagnosis((INFO,))], ids=repr)
def test_html_is_well_formed_and_needs_nothing_from_outside(shown, tmp_path):
    page = shown.report(tmp_path / "diagnosis.html").read_text(encoding="utf-8")
    for text in (page, shown._repr_html_()):
        tags = Tags(text)
        assert tags.open == []
        assert not re.search(r"https?://|<script|<link|@import|\bsrc=", text)
        assert "prefers-color-scheme: dark" in text
    assert page.startswith("<!doctype html>")


def test_html_says_all_that_the_text_says():
    text = Tags(SICK._repr_html_()).text
    for said in ("1 error, 1 thing worth knowing", "learning-rate-too-high", "The loss grows."):
        assert said in text
    for said in ("0.31", "above 0.1", "lr=3.0 → 0.05", "CST106", "Overfitting: no validation"):
        assert said in text


def test_names_of_the_user_cannot_smuggle_in_markup():
    bad = "<script>x</script>`<b>`"
    said = finding("CST106", "error", 0.9, bad, bad, Evidence(bad, 1.0), where=bad)
    shown = Diagnosis((said,), (bad,), bad, {bad: [(bad, 1.0)]})._repr_html_()
    assert "<script" not in shown
    assert "<b>`" not in shown
    assert "<code>&lt;b&gt;</code>" in shown


def test_a_report_that_cannot_be_written_is_told_in_one_sentence(tmp_path):
    with pytest.raises(WriteFailed, match="could not be written"):
        SICK.report(tmp_path / "nowhere" / "diagnosis.html")


# ---- plots ----


def test_steps_make_a_line_and_layers_make_bars():
    assert "<path" in plot("loss", [(0, 2.0), (5, 1.0)]).svg
    bars = plot("gradient_norm", [("fc1", 2.0), ("fc2", 1.0)], {"fc2"})
    assert bars.svg.count('class="bar"') == 1
    assert bars.svg.count('class="bar marked"') == 1


def test_the_words_of_a_plot_give_its_range_and_its_ends():
    drawn = plot("loss", [(0, 2.0), (500, 1.0)])
    assert (drawn.span, drawn.ends, drawn.note) == ("2 → 1", ("step 0", "step 500"), "")


def test_a_loss_that_stops_being_finite_is_marked_where_it_does():
    drawn = plot("loss", [(0, 2.0), (5, math.nan), (10, math.nan)])
    assert drawn.note == "not finite from step 5"
    assert drawn.svg.count('class="lost"') == 1


def test_numbers_over_many_powers_of_ten_are_drawn_on_a_log_scale():
    drawn = plot("gradient_norm", [("a", 1e-6), ("b", 1e-3), ("c", 1.0), ("d", 0.0)])
    tops = [float(y) for y in re.findall(r' y="([\d.]+)"', drawn.svg)]
    assert drawn.note == "log scale"
    assert tops[0] - tops[1] == pytest.approx(tops[1] - tops[2], abs=0.2)
    assert tops[3] == tops[0]


def test_a_fraction_is_drawn_against_one():
    (top,) = re.findall(r' y="([\d.]+)"', plot("dead fraction", [("a", 0.5)]).svg)
    assert float(top) == pytest.approx(28.0)


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [0.0, 0.0], [-2.0, 3.0], [1e300, -1e300]])
def test_every_series_can_be_drawn(values):
    for series in (list(enumerate(values)), [(f"l{i}", v) for i, v in enumerate(values)]):
        assert "nan" not in plot("x", series).svg


def test_nothing_finite_is_not_drawn():
    assert plot("loss", [(0, math.nan)]) is None
    assert plot("loss", []) is None
    assert "<figure" not in Diagnosis(curves={"loss": [math.nan]})._repr_html_()


def test_a_long_series_is_thinned_and_keeps_its_spike():
    series = [(i, 1.0) for i in range(20_000)]
    series[12_345] = (12_345, 2.0)
    drawn = plot("loss", series)
    points = re.findall(r"([\d.]+) ([\d.]+)", drawn.svg.split('d="M')[1].split('"')[0])
    assert len(points) <= 1.5 * MOST
    assert min(float(y) for _, y in points) == pytest.approx(3.0)
