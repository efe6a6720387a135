"""The list of systems. Adding a system adds one record here."""

from castalia.catalog.boltzmann_systems import BOLTZMANN
from castalia.catalog.control_systems import CONTROL
from castalia.catalog.dense_systems import DENSE
from castalia.catalog.ensemble_systems import ENSEMBLE
from castalia.catalog.generative_systems import GENERATIVE
from castalia.catalog.graph_systems import GRAPHS
from castalia.catalog.kernel_systems import KERNEL
from castalia.catalog.language_systems import LANGUAGE
from castalia.catalog.linear_classifier_systems import LINEAR_CLASSIFIERS
from castalia.catalog.linear_systems import LINEAR
from castalia.catalog.meta_systems import META
from castalia.catalog.pretrained_language_systems import LANGUAGE_PRETRAINED
from castalia.catalog.probabilistic_systems import PROBABILISTIC
from castalia.catalog.records import System
from castalia.catalog.sequence_systems import SEQUENCE
from castalia.catalog.state_systems import HIDDEN_STATE
from castalia.catalog.strategy_systems import STRATEGIES
from castalia.catalog.vision_detector_systems import VISION_DETECTORS
from castalia.catalog.vision_segmenter_systems import VISION_SEGMENTERS
from castalia.catalog.vision_systems import VISION
from castalia.catalog.vision_tool_systems import VISION_TOOLS
from castalia.errors import InvalidParameter
from castalia.utils.text import did_you_mean, listing

__all__ = ["SYSTEMS", "find", "matches", "models_table", "system", "system_for"]

FAMILIES = (
    LINEAR,
    LINEAR_CLASSIFIERS,
    DENSE,
    KERNEL,
    GENERATIVE,
    ENSEMBLE,
    VISION_SEGMENTERS,
    VISION,
    SEQUENCE,
    HIDDEN_STATE,
    VISION_DETECTORS,
    LANGUAGE,
    VISION_TOOLS,
    LANGUAGE_PRETRAINED,
    BOLTZMANN,
    PROBABILISTIC,
    GRAPHS,
    STRATEGIES,
    META,
    CONTROL,
)
SYSTEMS: dict[str, System] = {record.name: record for family in FAMILIES for record in family}


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


# What people call systems whose names begin otherwise.
ALIASES = {
    "ols": "LinearRegression",
    "logreg": "LogisticRegression",
    "svm": "LinearSVM",
    "svc": "LinearSVM",
    "gmm": "GaussianMixture",
    "hmm": "HiddenMarkovModel",
    "esn": "EchoStateNetwork",
    "gp": "GaussianProcessRegressor",
    "svgp": "SparseGaussianProcess",
    "rbm": "RestrictedBoltzmannMachine",
    "dbn": "DeepBeliefNetwork",
    "vae": "VariationalAutoencoder",
    "gan": "GenerativeAdversarialNetwork",
    "ddpm": "DiffusionModel",
    "flow": "NormalizingFlow",
    "gpt2": "GPTLanguageModel",
    "boosting": "GradientBoost",
    "xgboost": "GradientBoost",
    "swa": "WeightAverage",
    "mcdropout": "DropoutEnsemble",
}


def matches(name: str) -> list[System]:
    """Return the systems that a person may mean by a name.

    Case and dashes do not matter: a whole name, one without the word for its task, what people call
    it otherwise, or the beginning of names.

    >>> [record.name for record in matches("mlp")]
    ['MLPClassifier', 'MLPRegressor']
    >>> [record.name for record in matches("logreg")], [record.name for record in matches("unet")]
    (['LogisticRegression'], ['UNetSegmenter'])
    """
    plain = _plain(name)
    if not plain:
        return []
    found = [record for record in SYSTEMS.values() if record.name.lower() == plain]
    found = found or [record for record in SYSTEMS.values() if plain in _forms(record.name)]
    if not found and plain in ALIASES:
        return [SYSTEMS[ALIASES[plain]]]
    return found or [r for r in SYSTEMS.values() if r.name.lower().startswith(plain)]


def system(name: str) -> System:
    """Return the record of a name, or say which names are near it."""
    if name not in SYSTEMS:
        short = [known for known in SYSTEMS if _plain(name) in _forms(known)]
        forms = [*(form for known in SYSTEMS for form in _forms(known)), *ALIASES]
        near = did_you_mean(name, SYSTEMS) or did_you_mean(_plain(name), forms)
        near = f" Did you mean {listing(short)}?" if short else near
        raise InvalidParameter(
            f"castalia: `{name}` is not in the catalogue; `castalia models` lists it.{near}"
        )
    return SYSTEMS[name]


def system_for(task: str, name: str, data: str = "table") -> System:
    """Return the system that a person means by a name, for a task on a kind of data.

    Case and dashes do not matter, and the last word may be left out: ``mlp`` is MLPClassifier for a
    classification and MLPRegressor for a regression.

    Parameters
    ----------
    task
        Such as ``"regression"``.
    name
        Name in the catalogue, or a short form of it.
    data
        Kind of input.

    Examples
    --------
    >>> system_for("regression", "mlp").name, system_for("regression", "ridge").name
    ('MLPRegressor', 'Ridge')
    """
    meant = [record for record in SYSTEMS.values() if _plain(name) in _forms(record.name)]
    able = [record for record in meant if task in record.tasks and record.data == data]
    if able:
        return able[0]
    suited = [r.name for r in SYSTEMS.values() if task in r.tasks and r.data == data]
    if meant:
        does = f"{listing(meant[0].tasks, 'and')} on {meant[0].data} data"
        raise InvalidParameter(
            f"fit: `model` must do {task} on {data}s; {meant[0].name} does {does}. "
            f"{listing(suited, 'and', 20)} do."
        )
    near = did_you_mean(_plain(name), [form for known in suited for form in _forms(known)])
    raise InvalidParameter(
        f"fit: `model` must be a system for {task} on {data}s, {listing(suited, 'or', 20)}; got "
        f"{name!r}.{near}"
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _forms(name: str) -> list[str]:
    """Return a name in small letters, whole and without the word for its task."""
    whole = name.lower()
    endings = ("classifier", "regressor", "regression", "languagemodel")
    return [whole, *(whole.removesuffix(e) for e in endings if whole.endswith(e) and whole != e)]


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
