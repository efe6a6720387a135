"""The studio in a real browser: a user's way through it, accessibility, and times at full size.

Not part of the tests, as it needs Chromium, the package `playwright` and the file `axe.min.js` of
the npm package `axe-core`:

    python -m evidence.studio_journey OUT --axe axe.min.js [--chromium /usr/bin/chromium] [--small]

Screenshots and `studio.md`, a table of what was measured, go to OUT. `--small` makes 200 runs and
100,000 points instead of 10,000 and 10 million.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.studio import long_curve, many_runs, questions
from PIL import Image

import castalia
import castalia.testing.toys
from castalia.diagnose import Diagnosis, Evidence, finding
from castalia.diagnose.finding_record import Remedy
from castalia.train.runs import RunStore

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWS = {
    "desktop": {"viewport": {"width": 1280, "height": 860}},
    "phone": {"viewport": {"width": 390, "height": 800}, "device_scale_factor": 2},
    "dark": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "dark"},
}
EVIL = "<img src=x onerror=document.title='broken'>"


# ---- what is shown ----


def trained(store, name, lr):
    rng = np.random.default_rng(int(1000 * lr))
    settings = {"parameters": {"lr": lr, "hidden": [64, 64]}, "training": {"optimizer": "adam"}}
    run = store.open_run(name, name, {"estimator": "MLPClassifier", **settings})
    run.resume()
    for e in range(60):
        fall = 2.3 * np.exp(-0.8 * e * lr) if lr < 1 else 2.3 * 1.06**e if e < 31 else np.nan
        loss = abs(fall + 0.05 + 0.02 * rng.standard_normal())
        line = {"loss": loss, "val_loss": loss + 0.1 + 0.002 * e, "lr": lr * (1 - e / 70)}
        run.log(40 * e, e, {**line, "seconds": 0.5})
    return run


def sick(run):
    remedy = Remedy("lr=3.0 → 0.05", {"lr": 0.05})
    numbers = (
        Evidence("update-to-weight ratio of `layers.0.weight`", 0.31, 0.1),
        Evidence("loss at the end over the loss at the start", 6.1, 2.0),
        Evidence("step of the first loss that is no number", 1_240),
    )
    words = "The loss grows: the learning rate is too large for this network."
    found = finding("CST101", "error", 0.93, words, remedy, *numbers)
    layers = [("layers.0.weight", 3.1), ("layers.2.weight", 12.5), ("layers.4.weight", 40.2)]
    diagnosis = Diagnosis((found,), subject="MLPClassifier", curves={"gradient_norm": layers})
    (run.folder / "diagnosis.json").write_text(diagnosis.to_json())
    run.finish("failed")


def furnish(root, runs, points):
    """Make runs of all kinds, a model to try, a table to fit, and one very long curve."""
    root.mkdir(parents=True)
    X = pd.DataFrame({"age": np.linspace(20, 60, 40), "city": ["Pisa", "Lucca"] * 20})
    y = np.where(X["age"] > 40, "old", "young")
    X.assign(group=y).to_csv(root.parent / "people.csv", index=False)
    with RunStore(root) as store:
        many_runs(store, runs)
        sick(trained(store, "mlp-lr-3", 3.0))
        for name, lr in (("mlp-lr-0.1", 0.1), ("mlp-lr-0.01", 0.01), (EVIL, 0.05)):
            trained(store, name, lr).finish()
        model = castalia.MLPClassifier(hidden=(8,), epochs=30, random_state=0).fit(X, y)
        castalia.save(model, root / "mlp-lr-0.1" / "model")
        long_curve(store, points)
        tried(store, root.parent)


def tried(store, home):
    """Make a run for each kind of thing that a model takes, and files to give them."""
    X, y = castalia.testing.toys.toy("shapes")
    small = {"epochs": 40, "batch_size": 8, "lr": 0.02, "random_state": 0, "image_size": 24}
    wave = np.sin(np.arange(400) / 4)[:, None] + 0.1 * np.random.default_rng(0).normal(
        size=(400, 1)
    )
    scenes, boxes = castalia.testing.toys.toy("scenes")
    texts = ["the spring of castalia is near delphi. "] * 60
    models = {
        "try-masks": castalia.UNetSegmenter(widths=(8, 16), **small).fit(X, y),
        "try-classes": castalia.ConvNetClassifier(widths=(8, 16), **small).fit(
            X, np.where(y.mean(axis=(1, 2)) > np.median(y.mean(axis=(1, 2))), "full", "empty")
        ),
        "try-boxes": castalia.YOLODetector(
            strides=(8,), width=8, lr=0.01, epochs=60, random_state=0, image_size=32
        ).fit(scenes, boxes),
        "try-steps": castalia.WindowRegressor(
            context=32, horizon=16, epochs=30, random_state=0, output="quantile"
        ).fit(wave),
        "try-tokens": castalia.RNNLanguageModel(
            hidden=32, context=32, tokenizer="characters", epochs=30, random_state=0
        ).fit(texts),
    }
    for name, model in models.items():
        run = store.open_run(name, name, {"estimator": type(model).__name__})
        castalia.save(model, run.folder / "model")
        run.finish()
    for name, picture in (("shape", X[0]), ("scene", scenes[1])):
        large = Image.fromarray(picture).resize((480, 480), Image.Resampling.NEAREST)
        large.save(home / f"{name}.png")
    (home / "wave.txt").write_text("\n".join(f"{step:.3f}" for step in wave[:120, 0]))


# ---- the way through ----


@contextmanager
def studio(home, root):
    """Run `castalia studio`; yield its address."""
    command = [sys.executable, "-u", "-m", "castalia", "studio", str(root), "--port", "0"]
    process = subprocess.Popen(
        [*command, "--no-browser"], cwd=home, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)


def timed(page, path):
    """Return the median milliseconds of an answer, and of the first one."""
    script = """async (path) => {
        const all = [];
        for (let i = 0; i < 5; i++) {
            const begin = performance.now();
            await (await fetch(path)).text();
            all.push(performance.now() - begin);
        }
        return all;
    }"""
    found = page.evaluate(script, path)
    return found[0], float(np.median(found[1:]))


def paint(page, address):
    page.goto(address)
    page.wait_for_selector("table.runs tbody tr[data-run]")
    script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
    return page.evaluate(script), page.evaluate("performance.now()")


def accessible(page, axe, where):
    """Return the faults that axe-core finds."""
    found = page.evaluate(
        f"{axe}; axe.run().then(r => r.violations.map(v => [v.id, v.nodes[0].html]))"
    )
    for fault in found:
        print("axe", where, fault, flush=True)
    return len(found)


def shown(page, count):
    """Wait until the table has so many rows."""
    while page.locator("tr[data-run]").count() != count:
        page.wait_for_timeout(50)


def journey(page, base, shots):
    """Search, compare, read a finding, zoom, tag, try a model, start a fit."""
    page.goto(f"{base}/")
    page.keyboard.press("/")
    page.keyboard.type("mlp-lr")
    shown(page, 3)
    for name in ("mlp-lr-0.1", "mlp-lr-0.01", "mlp-lr-3"):
        page.get_by_label(f"Choose {name}", exact=True).check()
    shots("runs")
    page.get_by_role("link", name="Compare").click()
    page.wait_for_selector(".chart.main canvas")
    page.get_by_label("Smoothing").fill("0.6")
    page.get_by_label("Log y").check()
    shots("compare")
    page.get_by_role("link", name="mlp-lr-3", exact=True).click()
    page.get_by_text("learning rate too high").wait_for()
    assert page.locator(".copyable code").first.inner_text().endswith("set_params(lr=0.05)")
    page.wait_for_selector(".chart.main canvas")
    shots("finding")
    page.goto(f"{base}/run?run=mlp-lr-0.1")
    page.wait_for_selector(".chart.main canvas")
    page.get_by_label("Tags").fill("good, small")
    page.get_by_text("Kept").wait_for()
    page.get_by_role("button", name="Load the model").click()
    page.locator("[name=age]").fill("55")
    page.get_by_role("button", name="Predict").click()
    page.locator(".prediction").wait_for()
    assert page.locator(".prediction").inner_text() == "old"
    shots("try")
    page.goto(f"{base}/?search=%23good")
    shown(page, 1)
    page.goto(f"{base}/start")
    page.get_by_role("button", name="people.csv").click()
    page.get_by_label("Column to predict").select_option("group")
    page.get_by_label("Trainings").fill("1")
    shots("start")


def answers(page, base, home, shots):
    """Try a picture, a series and a prompt."""
    files = {"try-classes": "shape", "try-masks": "shape", "try-boxes": "scene"}
    for name in (*files, "try-steps", "try-tokens"):
        page.goto(f"{base}/run?run={name}")
        page.get_by_role("button", name="Load the model").click()
        if name in files:
            page.locator("input[type=file]").set_input_files(home / f"{files[name]}.png")
            page.locator(".view img").first.wait_for()
        elif name == "try-steps":
            page.locator("[name=steps]").fill((home / "wave.txt").read_text())
            page.get_by_role("button", name="Forecast").click()
            page.wait_for_selector(".result .chart canvas")
        else:
            page.locator("[name=prompt]").fill("the spring")
            page.get_by_role("button", name="Go on").click()
            page.locator(".token").first.wait_for()
        shots(name)


def started(page):
    """Start a real fit from the form that the journey ends in, and follow it to its run."""
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_text("Finished.").wait_for(timeout=300_000)


def reasons(page, base, shots):
    """Ask why the model of the fit answers as it does."""
    page.goto(f"{base}/run?run=people-group")
    page.get_by_text("Verdict").wait_for()
    page.get_by_role("button", name="Load the model").click()
    page.get_by_role("button", name="Predict").click()
    page.get_by_role("button", name="Why?").click()
    page.get_by_text("Training rows like it").wait_for()
    shots("why")


def zoomed(page, base, shots):
    """Zoom the long curve by the mouse, and wait for its own points."""
    page.goto(f"{base}/run?run=long")
    page.wait_for_selector(".chart.main canvas")
    box = page.locator(".chart.main .u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.42, box["y"] + 50, steps=4)
    with page.expect_response(lambda r: "first=" in r.url):
        page.mouse.up()
    page.get_by_role("button", name="Reset zoom").wait_for()
    shots("long")


def hostile(page, base):
    page.goto(f"{base}/run?" + "run=" + re.sub(r"[^A-Za-z]", lambda m: f"%{ord(m[0]):02x}", EVIL))
    page.get_by_role("heading", name=EVIL).wait_for()
    assert page.locator("img").count() == 0
    assert "broken" not in page.title()[:6]


def times(page, base, runs, points):
    """Measure what a page asks for, in the browser."""
    page.goto(f"{base}/start")
    asked = questions(runs, points)
    return {name: timed(page, path) for name, path in asked.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--axe", type=Path, required=True)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--small", action="store_true")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    runs, points = (200, 100_000) if asked.small else (10_000, 10_000_000)
    home = asked.out.resolve() / f"home-{os.getpid()}"
    root = home / "castalia-runs"
    furnish(root, runs, points)
    print("furnished", flush=True)
    axe, faults, rows = asked.axe.read_text(), 0, []
    with studio(home, root) as address, sync_playwright() as driver:
        base = address.partition("/?")[0]
        browser = driver.chromium.launch(executable_path=asked.chromium, args=FLAGS)
        for view, settings in VIEWS.items():
            page = browser.new_context(**settings).new_page()
            page.set_default_timeout(120_000)
            page.on("pageerror", lambda error: print("error", error, flush=True))
            first, table = paint(page, address)
            rows += [f"| first paint, {view} | {first:.0f} ms, table after {table:.0f} ms |"]

            def shots(name, page=page, view=view):
                nonlocal faults
                page.wait_for_timeout(700)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
                page.screenshot(path=asked.out / f"{name}-{view}.png", full_page=True)
                faults += accessible(page, axe, f"{name}-{view}")

            begin = time.perf_counter()
            journey(page, base, shots)
            if view == "desktop":
                started(page)
            answers(page, base, home, shots)
            if view == "desktop":
                measured = times(page, base, runs, points)
                zoomed(page, base, shots)
                hostile(page, base)
                rows += [f"| {n} | {a:.0f} ms, then {b:.0f} ms |" for n, (a, b) in measured.items()]
            reasons(page, base, shots)  # of the fit that the first view started
            print(view, f"{time.perf_counter() - begin:.0f} s", flush=True)
        browser.close()
    rows += [f"| faults by axe-core | {faults} |"]
    table = "\n".join(["| what | measured |", "|---|---|", *rows]) + "\n"
    (asked.out / "studio.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
