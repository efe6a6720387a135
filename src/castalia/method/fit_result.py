"""What a fit leaves: a folder with the model, the report and one file of results."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from castalia.errors import DamagedFile, InvalidData
from castalia.method.report import RunReport, write
from castalia.method.report.plain_values import from_text, to_text
from castalia.utils.atomic_files import atomic_write, writing
from castalia.utils.regular_files import read_regular
from castalia.utils.text import did_you_mean

__all__ = ["CONTENDERS", "MODEL", "PAGE", "RESULT", "FitResult"]

RESULT, PAGE, MODEL = "result.json", "report.html", "model"
CONTENDERS = "contenders"  # folder of the other saved models
_FORMAT = 1


@dataclass
class FitResult:
    """A finished fit.

    Attributes
    ----------
    folder
        The run's folder: ``model/`` with the network, ``contenders/`` with the other models,
        ``report.html``, ``result.json``.
    report
        Everything the page shows.
    summary
        The outcome in plain values: scores, intervals, verdict.
    """

    folder: Path
    report: RunReport
    summary: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether the network is worth using here, in words."""
        return self.report.verdict

    @property
    def model(self) -> Path:
        """Folder of the saved model."""
        return self.folder / MODEL

    @property
    def recommended(self) -> Path:
        """Folder of the recommended model."""
        found = self.summary.get("recommended", MODEL)
        return self.model if found == MODEL else self.folder / CONTENDERS / found

    @property
    def page(self) -> Path:
        """The report as a page."""
        return self.folder / PAGE

    def save(self) -> None:
        """Write the page and then the file of results, whose presence says that all is done."""
        content = {"format": _FORMAT, "summary": self.summary, "report": asdict(self.report)}
        with writing("fit", self.folder):
            write(self.report, self.page)
            atomic_write(self.folder / RESULT, to_text(content, indent=1))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> FitResult:
        """Read the results of a run's folder."""
        folder = Path(folder)
        path = folder / RESULT
        if not folder.is_dir():
            near = [p.name for p in folder.parent.iterdir()] if folder.parent.is_dir() else []
            raise InvalidData(
                f"report: `{folder}` must be the folder of a run; there is "
                f"none.{did_you_mean(folder.name, near)}"
            )
        if not path.is_file():
            raise InvalidData(
                f"report: `{folder}` must be the folder of a finished run; it has no `{RESULT}`. "
                "Run the same `castalia fit` again to finish it."
            )
        try:
            found = from_text(read_regular(path))
            report = RunReport(**found["report"])
            return cls(folder, report, found["summary"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DamagedFile(
                f"report: `{path}` is truncated or was altered. Run `castalia fit` again to "
                "write a new one."
            ) from error
