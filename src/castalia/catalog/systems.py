"""The list of systems. Adding a system adds one record here."""

from castalia.catalog.dense import DENSE
from castalia.catalog.kernel import KERNEL
from castalia.catalog.linear import LINEAR
from castalia.catalog.linear_classifiers import LINEAR_CLASSIFIERS
from castalia.catalog.records import System
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean

__all__ = ["SYSTEMS", "find", "models_table", "system"]

SYSTEMS: dict[str, System] = {
    record.name: record for record in (*LINEAR, *LINEAR_CLASSIFIERS, *DENSE, *KERNEL)
}


def find(words: str) -> list[System]:
    """Return the systems whose name, summary, family or tasks contain every word.

    >>> [record.name for record in find("mlp regress")]
    ['MLPRegressor']
    """
    wanted = words.lower().split()

    def text(record: System) -> str:
        words = (record.name, record.summary, record.family, *record.tasks, record.data)
        return " ".join(words).lower()

    return [record for record in SYSTEMS.values() if all(word in text(record) for word in wanted)]


def system(name: str) -> System:
    """Return the record of a name, or say which names are near it."""
    if name not in SYSTEMS:
        raise InvalidParameter(
            f"castalia: `{name}` is not in the catalogue; `castalia models` lists "
            f"it.{did_you_mean(name, SYSTEMS)}"
        )
    return SYSTEMS[name]


def models_table() -> list[dict[str, str]]:
    """Return the catalogue as rows of plain text, one dict a system."""
    return [
        {
            "name": record.name,
            "family": record.family,
            "tasks": ", ".join(record.tasks),
            "data": record.data,
            "tier": record.tier,
            "summary": record.summary,
        }
        for record in SYSTEMS.values()
    ]
