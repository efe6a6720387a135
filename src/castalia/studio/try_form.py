"""Trying a saved model in the page: a form for what it takes, and what it answers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from castalia.errors import InvalidData
from castalia.method.kinds import (
    LabelledImages,
    LabelledTexts,
    ParallelTexts,
    SeriesForecast,
    kind_of,
)
from castalia.method.saved_model import load_model
from castalia.serve.served_model import system_name, version_of, writes_texts
from castalia.studio.image_form import ImageForm
from castalia.studio.row_form import RowForm
from castalia.studio.run_index import RunRow
from castalia.studio.series_form import SeriesForm
from castalia.studio.text_form import PromptForm, TextForm

__all__ = ["TryForm"]

KEPT = 2  # models in memory
_FORMS: dict[Any, Any] = {
    LabelledImages: ImageForm,
    LabelledTexts: TextForm,
    ParallelTexts: TextForm,
    SeriesForecast: SeriesForm,
}


class TryForm:
    """Loads the models of runs when they are tried; one answers at a time."""

    def __init__(self) -> None:
        self._forms: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def _form(self, row: RunRow) -> Any:
        name, version = str(row.folder), version_of(row.folder)
        if self._forms.get(name, ("",))[0] != version:
            self._forms[name] = version, form_of(row, load_model(row.folder))
        self._forms.move_to_end(name)
        while len(self._forms) > KEPT:
            self._forms.popitem(last=False)
        return self._forms[name][1]

    def schema(self, row: RunRow) -> dict[str, Any]:
        """Return what the form asks for: rows of fields, a text, an image, steps or a prompt."""
        with self._lock:
            form = self._form(row)
            return {"model": system_name(form.model), "takes": form.takes, **form.schema()}

    def answer(self, row: RunRow, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the model says."""
        with self._lock:
            found: dict[str, Any] = self._form(row).answer(body)
            return found

    def why(self, row: RunRow, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the columns of a row did to the answer, and training rows like it."""
        with self._lock:
            form = self._form(row)
            if not isinstance(form, RowForm):
                raise InvalidData("studio: reasons are given for rows of tables.")
            return form.why(body)


def form_of(row: RunRow, model: Any) -> Any:
    """Return the form for what a model takes."""
    if writes_texts(model):
        return PromptForm(row, model)
    return _FORMS.get(kind_of(model), RowForm)(row, model)
