"""Pages of ``castalia export --page`` in Chromium: they must answer as the models do.

``python -m evidence.browser_page OUT [--axe axe.min.js] [--chromium /usr/bin/chromium]``. Small
models of tables, arrays, images and texts are fitted and exported; each page is opened from disk
(``file://``) with the network cut off, asked for rows through its own form or a file, and
compared with the model. Pictures of the pages go to OUT, at 1280 and 400 pixels.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

import castalia
from castalia.data import datasets
from castalia.export import export_model, write_page

WIDTHS = {"desktop": 1280, "phone": 400}


def table():
    found = datasets.load("penguins")
    frame = pd.DataFrame({name: found.column(name) for name in found.columns})
    kinds = frame.pop("species")
    model = castalia.MLPClassifier(epochs=15, random_state=0).fit(frame, kinds)
    return model, frame, frame


def array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    model = castalia.MLPRegressor(epochs=5, random_state=0).fit(X, X[:, 0] + X[:, 1] ** 2)
    return model, X, X


def image(folder):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(40, 16, 16, 3), dtype=np.uint8)
    X[::2, :, :8] //= 4
    model = castalia.LeNetClassifier(image_size=16, epochs=3, random_state=0)
    model.fit(X, np.arange(40) % 2)
    big = Image.fromarray(X[0]).resize((90, 61), Image.Resampling.BICUBIC)
    big.save(folder / "asked.png")
    return model, X, np.asarray(big)[None]


def text():
    good, bad = (
        ["so good, a fine day", "very fine indeed"],
        ["so bad, an awful day", "not fine: awful"],
    )
    texts = (good + bad) * 10
    model = castalia.FastTextClassifier(epochs=5, random_state=0)
    return (
        model.fit(texts, ["up", "up", "down", "down"] * 10),
        texts,
        ["An awful – but “fine” – ÉTÉ day_1!"],
    )


def asked(page, kind, rows, folder):
    """Ask one page for rows as a person would; return probabilities or predictions."""
    if kind == "image":
        page.set_input_files("input[name=file]", folder / "asked.png")
    elif kind == "text":
        page.fill("textarea", rows[0])
    else:
        frame = pd.DataFrame(rows)
        frame.to_csv(folder / "asked.csv", index=False)
        page.set_input_files("#file", folder / "asked.csv")
        page.wait_for_selector("#many:not([hidden])")
        with page.expect_download() as found:
            page.click("#many a")
        return pd.read_csv(found.value.path())
    page.click("#predict")
    page.wait_for_selector("#answer:not([hidden])")
    return None


def far(model, page, kind, rows, found):
    """Return the largest difference from the model's own answers."""
    if kind == "table":
        names = [f"probability_{label}" for label in model.classes_]
        return np.abs(found[names].to_numpy() - model.predict_proba(rows)).max()
    if kind == "array":
        return np.abs(found["prediction"].to_numpy() - model.predict(rows)).max()
    wanted = model.predict_proba(rows)[0]
    meters = page.eval_on_selector_all(
        "meter", "all => all.map(m => [m.getAttribute('aria-label'), m.value])"
    )
    said = {label.removeprefix("probability of "): value for label, value in meters}
    return max(abs(said[str(c)] - w) for c, w in zip(model.classes_, wanted, strict=True))


def faults(page, axe):
    page.evaluate(Path(axe).read_text())
    return [each["id"] for each in page.evaluate("axe.run()")["violations"]]


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m evidence.browser_page", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--axe")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    asks = parser.parse_args(words)
    asks.out.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    made = {"table": table, "array": array, "image": lambda: image(asks.out), "text": text}
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=asks.chromium)
        for kind, maker in made.items():
            model, data, rows = maker()
            export_model(model, asks.out / f"{kind}.onnx", rows=data)
            file = write_page(asks.out / f"{kind}.onnx", asks.out / f"{kind}.html")
            context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
            page, said = context.new_page(), []
            page.on("console", lambda m, said=said: said.append(m.text))
            page.on("pageerror", lambda e, said=said: said.append(str(e)))
            start = time.perf_counter()
            page.goto(file.resolve().as_uri(), timeout=90_000)
            page.wait_for_selector("#predict:enabled, #status.bad", timeout=60_000)
            ready = time.perf_counter() - start
            found = asked(page, kind, rows, asks.out)
            line = {
                "kind": kind,
                "MB": round(file.stat().st_size / 1e6, 1),
                "ready, s": round(ready, 2),
            }
            line["difference"] = float(far(model, page, kind, rows, found))
            for name, width in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": 900})
                page.screenshot(path=asks.out / f"{kind}-{name}.png", full_page=True)
            if asks.axe:
                line["axe"] = faults(page, asks.axe)
            print(json.dumps({**line, "console": said}), flush=True)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()
