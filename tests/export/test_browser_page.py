"""A page that predicts in a browser; `python -m evidence.browser_page` opens it in Chromium."""

import base64
import hashlib
import json
import re
from importlib.resources import files
from types import SimpleNamespace

import pytest

from castalia.errors import InvalidData
from castalia.export import browser_page


def element(page, name):
    return re.search(f'id="{name}">(.*?)</script>', page, re.S)[1]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write a page whose model says what is given, without packing the runtime, which takes 2 s."""
    monkeypatch.setattr(browser_page, "_wasm", lambda: b"wasm")

    def written(kind, **facts):
        port = SimpleNamespace(shape=["rows", 3])
        model = SimpleNamespace(facts={"system": "M", **facts}, kind=kind)
        model.session = SimpleNamespace(get_inputs=lambda: [port])
        monkeypatch.setattr(browser_page, "OnnxModel", lambda content: model)
        (tmp_path / "a&b.onnx").write_bytes(b"model")
        return browser_page.write_page(tmp_path / "a&b.onnx", tmp_path / "m.html").read_text()

    return written


def test_a_page_holds_the_model_and_may_not_use_the_network(page):
    text = page("table", columns={"</script>": "categorical"})
    assert base64.b64decode(element(text, "model")) == b"model"
    assert json.loads(element(text, "facts"))["columns"] == {"</script>": "categorical"}
    script = re.search(r'<script type="module">(.*?)</script>', text, re.S)[1]
    mark = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert f"'sha256-{mark}'" in policy
    assert "connect-src" not in policy
    assert text.count("</script") == 5
    assert "<title>a&amp;b</title>" in text


def test_columns_of_an_array_have_places_and_tokenized_texts_are_refused(page):
    assert json.loads(element(page("array"), "facts"))["names"] == ["x0", "x1", "x2"]
    with pytest.raises(InvalidData, match="split by a tokenizer that a page does not have"):
        page("text", tokenizer={})


def test_the_runtime_has_its_licence():
    vendor = files("castalia.export") / "static" / "vendor" / "onnxruntime-web"
    assert "MIT License" in (vendor / "LICENSE").read_text()
    assert (vendor / "ort-wasm-simd-threaded.wasm.xz").read_bytes()[:6] == b"\xfd7zXZ\0"
