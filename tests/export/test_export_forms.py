"""Other forms: programs of torch.export, folders of Hugging Face, 8-bit weights, one command."""

import json

import numpy as np
import pytest
import torch
from tests.export.test_model_graph import golden
from typer.testing import CliRunner

import castalia
from castalia.cli.app import app
from castalia.errors import InvalidData, InvalidParameter
from castalia.export import OnnxModel, browser_page, export_model


def test_a_program_of_torch_answers_any_number_of_rows(tmp_path):
    model, X = golden("BasisRegression")
    made = export_model(model, tmp_path / "m.pt2", to="torch", rows=X)
    program = torch.export.load(made.path).module()
    for rows in (1, 5):
        (found,) = program(torch.from_numpy(X[:rows]))
        np.testing.assert_allclose(found.numpy(), model.predict(X[:rows]), rtol=1e-5)


def test_a_language_model_becomes_a_folder_of_hugging_face(tmp_path):
    model, texts = golden("GPTLanguageModel")
    made = export_model(model, tmp_path / "gpt", to="hf")
    again = castalia.GPTLanguageModel.from_pretrained(made.path)
    np.testing.assert_allclose(again.score_samples(texts), model.score_samples(texts), rtol=1e-4)
    with pytest.raises(InvalidData, match="a Ridge has no layout of Hugging Face"):
        export_model(castalia.Ridge(), tmp_path / "ridge", to="hf")


def test_a_wrong_form_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="`to` must be .onnx., .torch. or .hf."):
        export_model(None, tmp_path / "x", to="onx")
    with pytest.raises(InvalidParameter, match="`int8` must be False for 'torch'"):
        export_model(None, tmp_path / "x", to="torch", int8=True)


def test_one_command_exports_a_model_its_8_bit_variant_and_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(browser_page, "_wasm", lambda: b"")  # packing it takes 2 s
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 64))
    y = X @ rng.normal(size=64)
    model = castalia.MLPRegressor(hidden=(128, 128), epochs=3, random_state=0).fit(X, y)
    castalia.save(model, tmp_path / "model")
    np.save(tmp_path / "rows.npy", X[:20])
    file = tmp_path / "m.onnx"
    words = ["export", str(tmp_path / "model"), "--out", str(file), "--int8", "--json", "--page"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    whole = json.loads(done.stdout)
    small = whole["int8"]
    assert small["size"] < 0.45 * whole["size"]
    found = OnnxModel(tmp_path / "m.int8.onnx").answers(X)["prediction"]
    assert np.corrcoef(found, model.predict(X))[0, 1] > 0.999
    assert "not checked" in done.stderr
    assert (tmp_path / "m.html").stat().st_size > file.stat().st_size
    done = CliRunner().invoke(app, [*words, "--to", "torch"])
    assert "--page must go with --to onnx" in done.output
