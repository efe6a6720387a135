"""The script beside an exported file prepares rows as the model does, with Python alone."""

import json
import random
import subprocess
import sys
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest

from castalia.data.tables.calendar_columns import calendar_columns
from castalia.data.text import NGramAdapter, TextAdapter
from castalia.data.tokenizers import WordPunctTokenizer
from castalia.errors import InvalidData
from castalia.export import sidecar
from castalia.export.row_inputs import input_of

SCRIPT = (files("castalia.export") / "static" / "runner.py.txt").read_text("utf-8")
ODD = "aZ é ß ΑΣ İ ñ ı ﬁ ２ _ - ' \" . , ! ¿ 。 $ + < > = | ~ ^ ` # % "
ODD += "\t \n \x0b \x1c \x85 \xa0 \u2003 \u200b 🙂 中 文"


def texts(count, seed):
    rng = random.Random(seed)
    letters = [*ODD, *"abcdeab  ", "<pad>", "</s>", "ab", "abc "]
    made = ["".join(rng.choices(letters, k=rng.randint(1, 30))) for _ in range(count)]
    return [text if text.strip() else "ab" for text in made]


def model_of(adapter, X):
    """Return what stands for an exported file: its facts, the types of its inputs, its feeds."""
    entry = input_of(adapter.fit(adapter.check(X, "fit")), np.float32)
    kinds = {"int64": "int64", "float32": "float"}
    ports = [SimpleNamespace(name=p.name, type=f"tensor({kinds[p.dtype]})") for p in entry.ports]
    session = SimpleNamespace(get_inputs=lambda: ports)
    facts = json.loads(json.dumps({"kind": "text", **entry.facts()}))
    return SimpleNamespace(facts=facts, kind="text", session=session, feeds=entry.feeds)


def test_the_script_has_60_lines_and_imports_python_s_own_library():
    assert sum(bool(line.strip()) for line in SCRIPT.splitlines()) <= 60
    code = "import sys; exec(sys.stdin.read(), {'__name__': 'runner', '__file__': ''});"
    code += "assert not {'numpy', 'torch', 'onnxruntime'} & set(sys.modules)"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], input=SCRIPT, text=True, check=True)


@pytest.mark.parametrize(
    "adapter",
    [
        *(TextAdapter(name, context=20) for name in ("words", "whitespace", "characters")),
        NGramAdapter(),
        NGramAdapter(words=1, characters=None, buckets=64),
    ],
    ids=["words", "whitespace", "characters", "n-grams", "one word"],
)
def test_texts_become_the_inputs_that_the_model_makes(adapter, tmp_path):
    model = model_of(adapter, texts(60, seed=0))
    beside = sidecar.write_sidecar(tmp_path / "m.onnx", model, texts(200, seed=1))
    assert [file.name for file in beside] == ["m.json", "m_run.py"]
    assert beside[1].read_text(encoding="utf-8") == SCRIPT


def test_small_letters_are_made_as_the_tokenizer_makes_them(tmp_path):
    model = model_of(TextAdapter(WordPunctTokenizer(normalise=("lowercase",))), texts(60, seed=2))
    assert sidecar.write_sidecar(tmp_path / "m.onnx", model, texts(100, seed=3))


def test_a_script_that_prepares_otherwise_is_refused(tmp_path):
    model = model_of(TextAdapter("words"), ["so good", "so bad"])
    model.facts["padding"] = 1
    with pytest.raises(InvalidData, match="input `ids` differs"):
        sidecar.write_sidecar(tmp_path / "m.onnx", model, ["so", "so good so bad"])
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_is_more_than_a_table_has_no_script(tmp_path):
    model = model_of(TextAdapter("bpe"), texts(20, seed=4))
    assert sidecar.write_sidecar(tmp_path / "m.onnx", model, ["ab"]) == ()


def test_months_weekdays_and_hours_are_made_of_dates_as_a_fit_makes_them():
    dates = np.array(["2024-02-29T23:30", "1969-12-31T00:00", "NaT"], dtype="datetime64[us]")
    made = calendar_columns("sold", dates, every=True)
    kinds = {"sold": "date", **dict.fromkeys(made, "categorical")}
    rows = [{"sold": sidecar._cell(date)} for date in dates]
    names = {"__name__": "runner", "__file__": ""}
    exec(SCRIPT, names)
    found = names["inputs"](rows, {"kind": "table", "columns": kinds})
    for name, column in made.items():
        assert [row[0] or None for row in found[name]] == column.to_pylist()
    days = (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    np.testing.assert_allclose(np.array(found["sold"])[:, 0], days)
