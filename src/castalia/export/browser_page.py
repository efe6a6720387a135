"""An exported model as one HTML file that predicts in a browser, without a server or a network.

The page holds the ONNX file, a form made from its facts, and ONNX Runtime Web (vendored, MIT): it
is one file without addresses, so that a double click opens it; parts would need a server.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import lzma
import os
from importlib.resources import files
from pathlib import Path

from castalia import __version__
from castalia.errors import InvalidData
from castalia.export.onnx_runner import OnnxModel
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import read_regular

__all__ = ["write_page"]


def write_page(
    model: str | os.PathLike[str], path: str | os.PathLike[str], *, title: str | None = None
) -> Path:
    """Write a page that predicts with an ONNX file.

    Parameters
    ----------
    model
        A file that ``export_model`` wrote.
    path
        HTML file to write.
    title
        Heading; None: the name of the file.

    Raises
    ------
    InvalidData
        If the rows of the model cannot be made in a browser: texts that need a tokenizer.
    """
    content = read_regular(Path(model))
    facts = _facts(OnnxModel(content))
    path = Path(path)
    with writing("export", path):
        text = _page(title or Path(model).stem, facts, content)
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, text.encode())
    return path


def _facts(model: OnnxModel) -> dict[str, object]:
    """Return what the page has to know of the rows."""
    facts = dict(model.facts)
    if "tokenizer" in facts:
        raise InvalidData(
            f"export: the texts of a {facts['system']} are split by a tokenizer that a page does "
            "not have; FastTextClassifier has none, and `castalia run` has it."
        )
    if model.kind == "array":
        (port,) = model.session.get_inputs()
        facts["names"] = [f"x{place}" for place in range(port.shape[1])]
    return facts


def _page(title: str, facts: dict[str, object], content: bytes) -> str:
    static = files("castalia.export") / "static"
    vendor = static / "vendor" / "onnxruntime-web"
    style, script = ((static / f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    parts = {
        "POLICY": _policy(style, script),
        "TITLE": html.escape(title),
        "VERSION": __version__,
        "STYLE": style,
        "SCRIPT": script,
        "FACTS": json.dumps(facts).replace("<", "\\u003c"),
        "MODEL": base64.b64encode(content).decode(),
        "RUNTIME": (vendor / "ort.wasm.bundle.min.mjs").read_text("utf-8"),
        "WASM": base64.b64encode(_wasm()).decode(),
    }
    first, *rest = (static / "page.html").read_text("utf-8").split("{{")
    return first + "".join(
        parts[name] + after for name, _, after in (r.partition("}}") for r in rest)
    )


def _wasm() -> bytes:
    """Return the runtime's program as browsers unpack it; it is kept by xz, which is smaller."""
    packed = (
        files("castalia.export") / "static/vendor/onnxruntime-web/ort-wasm-simd-threaded.wasm.xz"
    )
    return gzip.compress(lzma.decompress(packed.read_bytes()), 6, mtime=0)


def _policy(style: str, script: str) -> str:
    """Return the content security policy: this style and script, the runtime, and no network."""
    marks = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{marks[0]}'; img-src blob:; "
        f"script-src 'sha256-{marks[1]}' blob: 'wasm-unsafe-eval'"
    )
