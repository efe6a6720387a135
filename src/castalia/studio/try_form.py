"""A form made from the columns of a saved model, and what the model answers to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from castalia.errors import InvalidData
from castalia.serve.language_routes import Completion
from castalia.serve.served_model import LoadedModel, version_of
from castalia.studio.run_files import result_of
from castalia.studio.run_index import RunRow

__all__ = ["TryForm"]

KEPT = 2  # models in memory
MOST_CHOICES = 200
MOST_CLASSES = 20
MOST_TOKENS = 200
_NUMBERS = ("numeric", "boolean")


class TryForm:
    """Loads the models of runs when they are tried; one answers at a time."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, LoadedModel] = OrderedDict()
        self._lock = threading.Lock()

    def _loaded(self, row: RunRow) -> LoadedModel:
        name, found = str(row.folder), self._models.get(str(row.folder))
        if found is None or found.version != version_of(row.folder):
            found = self._models[name] = LoadedModel(row.folder)
        self._models.move_to_end(name)
        while len(self._models) > KEPT:
            self._models.popitem(last=False)
        return found

    def schema(self, row: RunRow) -> dict[str, Any]:
        """Return the fields of a form: name, kind, choices or range, and a row to begin with."""
        with self._lock:
            loaded = self._loaded(row)
        found = {"model": loaded.system, "writes": loaded.writes, "fields": []}
        return found if loaded.predictor is None else found | {"fields": _fields(row, loaded)}

    def answer(self, row: RunRow, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the model says of one row, or the text it goes on with."""
        with self._lock:
            loaded = self._loaded(row)
            if "prompt" in body:
                asked: dict[str, Any] = {"max_tokens": MOST_TOKENS, "temperature": 0.8}
                asked["prompt"] = str(body["prompt"])
                return {"text": Completion(asked, loaded.model).whole()["choices"][0]["text"]}
            if loaded.predictor is None or not isinstance(body.get("row"), dict):
                raise InvalidData("studio: a row must be an object of columns.")
            parts = loaded.predictor.parse([_typed(body["row"], _fields(row, loaded))])
            answer = {key: each.tolist()[0] for key, each in loaded.predictor.answer(parts).items()}
        return _shown(answer, loaded.predictor.classes)


def _fields(row: RunRow, loaded: LoadedModel) -> list[dict[str, Any]]:
    """Return the columns that the model reads, as the run's data had them."""
    report = result_of(row.folder).get("report", {})
    known = {each["name"]: each for each in (report.get("data") or {}).get("columns") or []}
    mistakes = [each["row"] for each in report.get("mistakes") or [] if "row" in each]
    first: dict[str, Any] = mistakes[0] if mistakes else {}
    words = getattr(getattr(loaded.predictor, "entry", None), "words", {})
    found = []
    for name, kind in loaded.predictor.columns.items():
        if kind not in (*_NUMBERS, "categorical", "date", "any", "text"):
            raise InvalidData(
                f"studio: the form takes rows of tables and texts; this model takes {kind}. "
                "`castalia predict` answers for files."
            )
        seen = known.get(name, {})
        own = seen.get("kind", "categorical") if kind == "any" else kind
        choices = [str(word) for word in words.get(name, ())][:MOST_CHOICES]
        if own == "categorical" and not choices and "…" not in str(seen.get("detail", "…")):
            choices = [word.strip() for word in str(seen["detail"]).split(",")]
        facts = {"detail": seen.get("detail", ""), "example": first.get(name)}
        found.append({"name": name, "kind": own, "choices": choices, **facts})
    return found


def _typed(row: Mapping[str, Any], fields: list[dict[str, Any]]) -> Any:
    """Return what was typed as values: numbers where the column has numbers, None for nothing."""
    if [each["kind"] for each in fields] == ["text"]:
        return str(row.get(fields[0]["name"], ""))
    found: dict[str, Any] = {}
    for each in fields:
        text = str(row.get(each["name"]) or "").strip()
        found[each["name"]] = text or None
        if text and each["kind"] in _NUMBERS and text.lower() not in ("true", "false", "yes", "no"):
            try:
                found[each["name"]] = float(text)
            except ValueError:
                raise InvalidData(
                    f"studio: `{each['name']}` must be a number; got {text!r}."
                ) from None
    return found


def _shown(answer: dict[str, Any], classes: list[Any] | None) -> dict[str, Any]:
    """Return the prediction, and the likeliest classes with their probabilities."""
    found: dict[str, Any] = {"prediction": answer.pop("prediction", None)}
    probability = answer.pop("probability", None)
    if isinstance(probability, list) and classes is not None:
        pairs = sorted(zip(map(str, classes), probability, strict=True), key=lambda pair: -pair[1])
        found["classes"] = pairs[:MOST_CLASSES]
    return found | {"more": answer}
