"""What a report is made of: plain data that survives JSON unchanged."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from castalia.errors import CheckpointMismatch, DamagedFile, InvalidParameter
from castalia.method.report.plain_values import from_text, plain, to_text
from castalia.utils.text import shorten

__all__ = ["Contender", "RunReport"]

_FORMAT = 1


@dataclass
class Contender:
    """A baseline or the model, with what it scored on the test rows.

    Parameters
    ----------
    name
        Name shown to people.
    role
        ``"baseline"``, ``"model"`` or ``"blend"``.
    scores
        Value by metric name.
    interval
        ``[low, high]`` of the report's main metric, or None when unknown.
    seconds
        Time to fit, or None.
    note
        A few words, such as the number of seeds.

    Examples
    --------
    >>> Contender("Guessing", "baseline", {"accuracy": 0.44}).interval is None
    True
    """

    name: str
    role: str
    scores: dict[str, float]
    interval: list[float] | None = None
    seconds: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        if self.role not in ("baseline", "model", "blend"):
            raise InvalidParameter(
                f"Contender: `role` must be 'baseline', 'model' or 'blend'; got {self.role!r}."
            )
        for each in fields(self):
            setattr(self, each.name, plain(getattr(self, each.name)))


@dataclass
class RunReport:
    """Everything a report shows. All but the first three fields may be left out.

    Arrays and other rich values are turned into plain Python on construction, so a report equals
    what comes back from its JSON.

    Parameters
    ----------
    title, task, target
        Heading, ``"classification"`` or ``"regression"``, and the name of the target.
    created
        Date and time, as text.
    data
        ``rows``, ``columns`` (mappings of name, kind, missing, unique, detail, note), ``balance``
        (rows by class), ``split`` (rows by part), ``notes``.
    contenders
        Baselines and model.
    metric
        Name of the metric that decides.
    interval_note
        What the intervals are, such as "95% over 5 seeds".
    verdict
        Whether the network is worth using here, in words.
    outcome
        The same in a word: better, worse, equal or none; empty when unknown.
    advice
        What to do next, one sentence each.
    preflight
        Checks before training: name, passed, measured, expected, message.
    history
        One mapping per epoch: epoch, loss, val_loss, lr, seconds.
    recommended
        Name of the contender to use; empty when unknown.
    y_true, y_pred, probability, classes
        Its answers on the test rows; probabilities are (n, K) in the order of classes.
    mistakes
        The worst ones, as ``castalia.evaluate.Mistake`` gives them; of images, ``image`` too.
    settings, environment, reproduce
        How the run was made, where, and the command that repeats it.
    findings
        Diagnosis: code, name, severity, message, remedy.
    unit
        What one example is called.
    examples
        Of images, some of each class: name, count, and images as data URIs.
    feature_maps
        What layers make of one image, as ``castalia.evaluate.FeatureMaps`` shows it: name, maps,
        image, hidden.
    panels
        What there is to read about texts: title, words, and either heads and rows of a table, or
        samples, each with ``prompt`` and ``text``.
    forecasts
        Of series, the last forecast and where forecasts err: series, target, past, truth, forecast,
        low, high, coverage, by_step, over_time, when.
    importance
        Of tables, what ``column_importance`` gives: columns, values, intervals, metric, score,
        rows, effects.
    explained
        Name of the model that it is about.
    graph
        Of a Bayesian network, the parents of every column; empty otherwise.
    network
        Of nodes and links, what is drawn of their graph: part, classes, between, by_share, reasons.
    samples
        Of a model that draws: ``columns`` with the shares of real and drawn rows, or ``drawn``
        images and the ``nearest`` training images, as data URIs.

    Examples
    --------
    >>> report = RunReport("Penguins", "classification", "species", metric="accuracy")
    >>> RunReport.from_json(report.to_json()) == report
    True
    """

    title: str
    task: str
    target: str
    created: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    contenders: list[Contender] = field(default_factory=list)
    metric: str = ""
    interval_note: str = "95% intervals"
    verdict: str = ""
    outcome: str = ""
    advice: list[str] = field(default_factory=list)
    preflight: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    recommended: str = ""
    y_true: list[Any] | None = None
    y_pred: list[Any] | None = None
    probability: list[list[float]] | None = None
    classes: list[Any] | None = None
    mistakes: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    reproduce: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)
    unit: str = "row"
    examples: list[dict[str, Any]] = field(default_factory=list)
    feature_maps: list[dict[str, Any]] = field(default_factory=list)
    panels: list[dict[str, Any]] = field(default_factory=list)
    forecasts: dict[str, Any] = field(default_factory=dict)
    importance: dict[str, Any] = field(default_factory=dict)
    explained: str = ""
    graph: dict[str, list[str]] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)
    samples: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name != "contenders":
                setattr(self, each.name, plain(getattr(self, each.name)))
        self.contenders = [
            c if isinstance(c, Contender) else Contender(**c) for c in self.contenders
        ]

    @property
    def model(self) -> Contender | None:
        """The first contender that is a model."""
        return next((c for c in self.contenders if c.role == "model"), None)

    def to_json(self, indent: int | None = None) -> str:
        """Write the report as strict JSON; numbers that are not finite are tagged."""
        return to_text({"format": _FORMAT, **asdict(self)}, indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> RunReport:
        """Read what `to_json` wrote."""
        try:
            found = from_text(text)
        except ValueError as error:
            raise DamagedFile(f"RunReport: the text must be JSON; {error}.") from error
        if not isinstance(found, dict) or "format" not in found:
            raise DamagedFile(
                f"RunReport: the text must be a report written by `to_json`; got "
                f"{shorten(text[:200], 40)!r}."
            )
        version = found.pop("format")
        if version != _FORMAT:
            raise CheckpointMismatch(
                f"RunReport: the format must be {_FORMAT}; got {version!r}. Read it with the "
                f"release that wrote it."
            )
        return cls(**{f.name: found[f.name] for f in fields(cls) if f.name in found})
