"""What one wants fitted, and how: the settings of a whole fit as one value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from castalia.data.url_files import without_password
from castalia.errors import InvalidParameter
from castalia.evaluate import metric as known_metric
from castalia.utils.text import did_you_mean, listing

__all__ = ["METRICS", "NO_TIME", "TASKS", "FitPlan"]

TASKS = ("classification", "regression")
NO_TIME = "none"  # what one says to split a table with dates at random
METRICS = {
    "classification": ("accuracy", "balanced_accuracy"),
    "regression": ("r2", "rmse", "mae"),
    "forecasting": ("mase", "mae", "rmse"),
    "language modelling": ("bits_per_character", "perplexity"),
    "translation": ("bleu",),
}  # the first one decides
_LEAST = {"seeds": 1, "cv": 2, "seed": 0, "boosting_rounds": 1, "horizon": 1}
# Settings that leave the result as it is.
_NOT_FINGERPRINTED = ("data", "run", "verbose")


@dataclass(frozen=True, kw_only=True)
class FitPlan:
    """Settings of a fit: what the command line takes, by the same names.

    Parameters
    ----------
    data
        A table: a path, a frame, an array or a ``Dataset``. Or images: the path of a folder of
        class folders, of a zip or NPZ file, of a table of paths, or ``Images``. Or text: the path
        of a text file, or those of two files whose lines are translations of each other.
    target
        The column to predict; None for images whose folders say what they are, and for text.
    generate
        Whether to learn to draw rows or images like those of ``data`` instead of predicting.
    nodes
        The table of nodes, where ``data`` is a list of edges and ``target`` a column of the nodes.
    links
        Whether the edges themselves are to be predicted, where ``data`` is a list of them.
    text
        The column of a table to learn from as text; ``"none"`` leaves texts aside; None takes one
        that holds sentences.
    model
        A system of the catalogue for this kind of data, by its name or a short form: ``"ridge"``,
        ``"mlp"``, ``"resnet"``, ``"gpt"``; None takes the one that suits the data.
    settings
        Settings of the model or of its training, such as ``{"hidden": (64, 64), "patience": 5}``.
    task
        ``"classification"``, ``"regression"`` or None to tell by the target.
    metric
        The measure that decides; None takes accuracy, R², bits per character or BLEU.
    goal
        Value of that measure which is good enough.
    run
        Folder of the run; None takes ``castalia-runs/<data>-<target>``.
    seeds
        Trainings, each with its own seed and its own split; None: 3, or 1 for many images and for
        text.
    cv
        Number of folds: every row is tested once. None: one test part.
    test
        Share of the rows in the test part.
    group
        Column whose values stay together on one side of a split.
    time
        Column to split by: later rows are tested than those trained on. None takes a column of
        dates where there is one, ``"none"`` splits at random. With ``group`` or ``horizon``, rows
        are steps of sequences in that order.
    horizon
        Steps to forecast of the series that the target is; None: the target is predicted row by
        row, or sequence by sequence where ``group`` and ``time`` are named.
    drop
        Columns of a table that are not learnt from.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
    time_limit
        Seconds for all trainings together.
    seed
        Seed of the split and the first training.
    header
        Whether a text file starts with column names.
    encoding
        Encoding of a text file, such as ``"cp1252"``; None: found out.
    drop_missing
        Whether rows without a target are left out, with their number in the notes, instead of
        refused.
    skip_broken
        Whether files, of several, and shards that are damaged or cut off are left out, with their
        number in the notes, instead of refused.
    boosting_rounds
        Trees of the boosting baseline.
    preflight_seconds
        Time for the checks before training; 0 leaves them out.
    doctor
        Whether to try the doctor's remedies first, one at a time, and train with those that help on
        validation rows.
    verbose
        Progress of the trainings: True, False or ``"auto"``.

    Examples
    --------
    >>> FitPlan(data="penguins.csv", target="species", seeds=1).command()
    'castalia fit penguins.csv --target species --seeds 1'
    """

    data: Any
    target: str | None = None
    generate: bool = False
    nodes: Any = None
    links: bool = False
    text: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    task: str | None = None
    metric: str | None = None
    goal: float | None = None
    run: Any = None
    seeds: int | None = None
    cv: int | None = None
    test: float = 0.2
    group: str | None = None
    time: str | None = None
    horizon: int | None = None
    drop: tuple[str, ...] = ()
    device: str = "auto"
    time_limit: float | None = None
    seed: int = 0
    header: bool = True
    encoding: str | None = None
    drop_missing: bool = False
    skip_broken: bool = False
    boosting_rounds: int = 100
    preflight_seconds: float = 10.0
    doctor: bool = False
    verbose: Any = False

    def __post_init__(self) -> None:
        _choice("task", self.task, TASKS)
        if self.metric is not None:
            known_metric(self.metric)
        for name, least in _LEAST.items():
            _at_least(name, getattr(self, name), least)
        if not 0 < self.test < 1:
            raise InvalidParameter(
                f"fit: `test` must be a share between 0 and 1; got {self.test!r}."
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InvalidParameter(
                f"fit: `time_limit` must be above 0 seconds; got {self.time_limit!r}."
            )

    @property
    def name(self) -> str:
        """What the data is called: the file's name without its endings."""
        if isinstance(self.data, str | Path):
            return _stem(self.data)
        if _is_pair(self.data):
            return _pair_name(*map(Path, self.data))
        source = str(getattr(self.data, "source", "table"))
        return "table" if " " in source else Path(source).name.split(".")[0]

    @property
    def folder(self) -> Path:
        """Folder of the run as asked for."""
        if self.run is not None:
            return Path(self.run)
        if self.target is None:
            what = "-samples" if self.generate else "-links" if self.links else ""
            return Path("castalia-runs") / f"{self.name}{what}"
        plain = "".join(c if c.isalnum() or c in "-_." else "-" for c in self.target)
        return Path("castalia-runs") / f"{self.name}-{plain.strip('.-') or 'target'}"

    @property
    def of_files(self) -> bool:
        """Whether the data can be read again by its name."""
        return isinstance(self.data, str | Path) or _is_pair(self.data)

    def deciding(self) -> dict[str, Any]:
        """Return the settings that decide the result, as plain values."""
        kept = [f.name for f in fields(self) if f.name not in _NOT_FINGERPRINTED]
        return {name: getattr(self, name) for name in kept}

    def command(self) -> str:
        """Return the command line that asks for this."""
        words = ["castalia", "fit", *self._said()]
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name in _UNSPOKEN or value == option.default:
                continue
            words += [f"--{option.name.replace('_', '-')}", str(value)]
        if not self.header:
            words.append("--no-header")
        words += ["--drop-missing"] if self.drop_missing else []
        words += ["--skip-broken"] if self.skip_broken else []
        words += [f"--{name}" for name in ("doctor", "generate", "links") if getattr(self, name)]
        for name in self.drop:
            words += ["--drop", name]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={_written(value)}"]
        return shlex.join(words)

    def _said(self) -> list[str]:
        """Return the data as words of a command line."""
        if _is_pair(self.data):
            return [str(without_password(path)) for path in self.data]
        named = isinstance(self.data, str | Path)
        return [str(without_password(self.data)) if named else self.name]


_UNSPOKEN = (
    "data",
    "generate",
    "links",
    "drop",
    "settings",
    "header",
    "drop_missing",
    "skip_broken",
    "doctor",
    "verbose",
)


def _stem(path: str | Path) -> str:
    path = Path(path)
    while set(path.name) & set("*?["):  # of a pattern, what it begins with
        path = path.parent
    return (path.name or path.resolve().name).split(".")[0] or "table"


def _is_pair(data: Any) -> bool:
    """Whether data names several files."""
    several = isinstance(data, list | tuple) and bool(data)
    return several and all(isinstance(path, str | Path) for path in data)


def _pair_name(*paths: Path) -> str:
    """Name parallel files: by their common stem and their endings, or by all stems.

    >>> _pair_name(Path("data/train.en"), Path("data/train.de.gz"))
    'train-en-de'
    """
    stems = list(dict.fromkeys(_stem(path) for path in paths))
    if len(stems) > 2:
        return f"{stems[0]}-{stems[-1]}"
    if len(stems) > 1:
        return "-".join(stems)
    endings = [Path(path.name.removesuffix(".gz")).suffix.lstrip(".") for path in paths]
    return "-".join([*stems, *filter(None, endings)])


def _written(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value is not None and value not in allowed:
        raise InvalidParameter(
            f"fit: `{name}` must be {listing(allowed)}; got "
            f"{value!r}.{did_you_mean(str(value), allowed)}"
        )


def _at_least(name: str, value: Any, least: int) -> None:
    if value is not None and (not isinstance(value, int) or value < least):
        raise InvalidParameter(
            f"fit: `{name}` must be a whole number of at least {least}; got {value!r}."
        )
