"""Names of columns, classes, files and layers that are markup: pages show them and do nothing."""

from html.parser import HTMLParser

import numpy as np
import pytest

from castalia.diagnose import Diagnosis, Evidence, finding
from castalia.method.report import Contender, RunReport
from castalia.method.report.report_page import render

NAMES = [
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</title></style></svg><iframe src=javascript:alert(1)>",
    "--><svg onload=alert(1)><!--",
    "]]><script>alert(1)</script><![CDATA[",
    ' id="a" xlink:href="#a" style="x:url(#a)"',
    "{{ 7*7 }}{% raw %}`<blink>`",
    "\u2028\u202e\x00<\x01blink>",
]
PIXEL = "data:image/png;base64,iVBORw0KGgo="
BAD_IMAGES = ["javascript:alert(1)", 'data:image/svg+xml,<svg onload="x">', f'{PIXEL}" onerror="x']


class Seen(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words = set(), [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words += data


def check(page, images=False):
    seen = Seen(page)
    assert not seen.tags & {"script", "iframe", "object", "embed", "link", "blink", "base", "form"}
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    fetched = [value for name, value in seen.attributes if name in ("src", "href", "xlink:href")]
    assert all(value.startswith(("#", PIXEL, "data:image/png;base64,")) for value in fetched)
    assert (PIXEL in fetched) == images
    assert "49" not in seen.words
    return seen


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_pages_of_images_texts_and_columns_show_names_as_they_are(name):
    other = f"{name} again"
    report = RunReport(
        name,
        "classification",
        name,
        metric="accuracy",
        contenders=[
            Contender(name, "model", {"accuracy": 0.5}),
            Contender(other, "baseline", {"accuracy": 0.2}),
        ],
        unit=name,
        examples=[{"name": name, "count": name, "images": [PIXEL, *BAD_IMAGES]}],
        mistakes=[
            {"index": name, "truth": name, "prediction": other, "row": {"path": name},
             "image": PIXEL},
            {"index": 2, "truth": name, "prediction": other, "row": {}, "image": BAD_IMAGES[1]},
        ],
        feature_maps=[{"name": name, "maps": np.ones((2, 3, 3)), "image": None, "hidden": 0}],
        panels=[
            {"title": name, "words": name, "heads": [name, "n"], "rows": [[name, 1], [other, 2]]},
            {"title": "t", "samples": [{"prompt": name, "text": name}]},
        ],
        importance={
            "columns": [name, other], "values": [0.2, 0.1], "intervals": [[0.1, 0.3], [0.0, 0.2]],
            "metric": "accuracy", "score": 0.5, "rows": 10, "effects": [],
        },
    )  # fmt: skip
    seen = check(render(report), images=True)
    assert "could not be drawn" not in seen.words


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_pages_of_the_doctor_show_names_as_they_are(name, tmp_path):
    found = finding("CST106", "error", 0.9, name, name, Evidence(name, 1.0, 0.5), where=name)
    curves = {name: [(name, 1.0), ("b", 2.0)], "loss": [1.0, 0.5]}
    diagnosis = Diagnosis((found,), (name,), name, curves)
    check(diagnosis._repr_html_())
    check(diagnosis.report(tmp_path / "page.html").read_text(encoding="utf-8"))
    check(Diagnosis.from_json(diagnosis.to_json())._repr_html_())
