"""What a search is about, beside its trials: the metric and the domains, for who looks on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from castalia.tune.proposals import Proposals
from castalia.tune.space import Choice, Domain, Uniform, Whole
from castalia.tune.trial_record import Trial
from castalia.utils.atomic_files import atomic_write
from castalia.utils.regular_files import parse_json, read_regular

__all__ = ["RECORD", "SearchRecord"]

RECORD = "search.json"


class SearchRecord:
    """Metric and domains of a search, in a file of the run's folder.

    Parameters
    ----------
    metric
        What is measured.
    higher
        Whether more of it is better; trials keep minus the metric where it is not.
    space
        Domains by setting.
    """

    def __init__(self, metric: str, higher: bool, space: Mapping[str, Domain]) -> None:
        self.metric, self.higher, self.space = metric, higher, dict(space)

    def write(self, folder: str | os.PathLike[str]) -> None:
        """Write the file; values of a choice become words."""
        axes = {name: _facts(domain) for name, domain in self.space.items()}
        content = {"metric": self.metric, "higher": self.higher, "space": axes}
        atomic_write(Path(folder) / RECORD, json.dumps(content))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> SearchRecord:
        """Read the file."""
        found = parse_json(read_regular(Path(folder) / RECORD))
        space = {str(name): _domain(facts) for name, facts in found["space"].items()}
        return cls(str(found["metric"]), bool(found["higher"]), space)

    def score(self, trial: Trial) -> float | None:
        """Return the metric of a trial over its finished folds; None before the first."""
        if not trial.folds:
            return None
        found = trial.mean("score")
        return found if self.higher else -found

    def importances(self, trials: list[Trial]) -> dict[str, float]:
        """Return the share of each setting in how much scores differ, the largest first."""
        judge = Proposals(self.space, sampler="random", seed=0, metric="score", owner="studio")
        return judge.importances(trials)


def _facts(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Choice):
        return {"values": [str(value) for value in domain.values]}
    return {**asdict(domain), "whole": isinstance(domain, Whole)}


def _domain(facts: Mapping[str, Any]) -> Domain:
    if "values" in facts:
        return Choice(*facts["values"])
    kind = Whole if facts["whole"] else Uniform
    return kind(facts["low"], facts["high"], bool(facts["log"]))
