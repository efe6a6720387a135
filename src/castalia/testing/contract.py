"""What every estimator owes: one function a promise; ``ContractBroken`` says what was found.

A check takes a catalogue record: ``name``, ``path``, ``small``, ``toy`` and ``pass_mark`` are read.

>>> from castalia.catalog import SYSTEMS
>>> run_contract(SYSTEMS["MLPClassifier"], only=["check_parameters"])
['check_parameters']
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numpy as np
import torch
from sklearn.base import clone, is_classifier
from sklearn.metrics import adjusted_rand_score

from castalia.base import Constraint, Estimator, load, save
from castalia.base.parameter_docs import parameter_entries
from castalia.data import Graph, Graphs
from castalia.data.table_adapter import TableAdapter
from castalia.errors import CastaliaError, CastaliaWarning, InvalidData, InvalidParameter
from castalia.models.ensemble.ensemble import Ensemble
from castalia.models.vision.detector_task import Detector
from castalia.testing.toys import toy

__all__ = ["CHECKS", "ContractBroken", "make", "run_contract"]

SECTIONS = ("Attributes", "Shapes", "Notes", "References", "See Also", "Examples")
ROWS = 40  # of images and texts, where quality does not matter
ASKED = 10  # rows that a fitted model answers, where one would do
HARDLY = {"epochs": 2, "pretrain_epochs": 1, "members": 2, "rounds": 1, "local_epochs": 1}


class ContractBroken(CastaliaError, AssertionError):
    """An estimator does not keep a promise."""


def _demand(holds: bool, record: Any, promise: str) -> None:
    if not holds:
        raise ContractBroken(f"{record.name}: {promise}")


def load_class(record: Any) -> type:
    """Import the class of a record."""
    package, attribute = record.path.split(":")
    return getattr(importlib.import_module(package), attribute)


def make(record: Any, **settings: Any) -> Any:
    """Make the small configuration of a record, seeded."""
    return load_class(record)(**{"random_state": 0, **record.small, **settings})


def _quick(record: Any, **settings: Any) -> Any:
    """Make a configuration that fits at once; its quality does not matter."""
    return shortened(make(record), **{**HARDLY, **settings})


def shortened(model: Any, **settings: Any) -> Any:
    """Set what a model has of some settings, and those of the network an ensemble is made of."""
    own = model.get_params(deep=False)
    model.set_params(**{name: value for name, value in settings.items() if name in own})
    member = model._default() if isinstance(model, Ensemble) else None
    if not hasattr(member, "epochs"):
        return model
    return model.set_params(estimator=shortened(member, **settings))


def _some(record: Any) -> tuple[Any, Any]:
    """Return the toy problem; of images and texts the first rows, enough to see how it is fitted.

    Only the pass mark needs all of them. Nobody may write into what it is given to fit.
    """
    X, y = toy(record.toy)
    if record.data not in ("table", "world"):
        X, y = X[:ROWS], None if y is None else y[:ROWS]
    return _locked(X), _locked(y)


class _Fit(NamedTuple):
    model: Any
    touched: list[str]  # the global random states that the fit changed


_LAST: dict[tuple[type, str], _Fit] = {}


def _fit(record: Any) -> _Fit:
    """Fit the quick configuration, once for all checks that follow each other."""
    key = load_class(record), repr(record)
    if key not in _LAST:
        _LAST.clear()
        before = _random_states()
        model = _quick(record).fit(*_some(record))
        _LAST[key] = _Fit(model, _changed(before))
    return _LAST[key]


def _fitted(record: Any) -> Any:
    """Return the quick configuration, fitted; who is given it may ask it, but not fit it again."""
    return _fit(record).model


def _random_states() -> dict[str, bytes]:
    numpys = pickle.dumps(np.random.get_state())
    return {"torch": torch.get_rng_state().numpy().tobytes(), "numpy": numpys}


def _changed(before: dict[str, bytes]) -> list[str]:
    return [name for name, state in _random_states().items() if state != before[name]]


def _locked(data: Any) -> Any:
    """Return an array that cannot be written to; other data as they are."""
    if not isinstance(data, np.ndarray):
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def _weights(model: Any) -> dict[str, torch.Tensor]:
    """Return what was learnt: the network's weights, or the fitted arrays of a direct estimator.

    Of an ensemble also what its members learnt.
    """
    if isinstance(model, Estimator):
        return {name: value.cpu() for name, value in model.module_.state_dict().items()}
    found = {
        name: torch.as_tensor(value)
        for name, value in vars(model).items()
        if name.endswith("_") and isinstance(value, float | np.ndarray) and _numbers(value)
    }
    for name, value in vars(model).items():
        if name.endswith("_") and is_dataclass(value):  # a record of arrays
            parts = [part for part in vars(value).values() if isinstance(part, list)]
            arrays = [a for part in parts for a in part if isinstance(a, np.ndarray)]
            found |= {f"{name}.{i}": torch.as_tensor(array) for i, array in enumerate(arrays)}
    module = vars(model).get("module_")
    if module is not None:
        found |= {f"module_.{name}": value.cpu() for name, value in module.state_dict().items()}
    inner = [getattr(model, "estimator_", None), *getattr(model, "estimators_", ())]
    for i, member in enumerate(inner):
        if hasattr(member, "fit"):
            found |= {f"{i}.{name}": value for name, value in _weights(member).items()}
    return found


def _numbers(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fiub"


def _same(first: Any, second: Any) -> bool:
    one, other = _weights(first), _weights(second)
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def _states(X: Any) -> Any:
    """Return what a model is asked about: rows, or the states of a world."""
    return np.arange(X.observation_space.n) if hasattr(X, "observation_space") else X


def _asked(record: Any) -> Any:
    """Return the rows, or the states, that a fitted model is asked about."""
    return _states(_some(record)[0])[:ASKED]


def _answers(model: Any, X: Any) -> np.ndarray:
    if isinstance(model, Detector) and isinstance(model, Estimator):
        return model._outputs(X).numpy()  # hardly trained, it may be sure of no box at all
    for method in ("predict_proba", "predict", "transform", "score_samples"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    if hasattr(model, "sample"):  # it has nothing to say of a row
        model.score(X)  # which refuses what is none
        return model.sample(len(X))
    raise ContractBroken(f"{type(model).__name__}: must predict or transform")


def _supervised(record: Any) -> bool:
    return bool(make(record).__sklearn_tags__().target_tags.required)


def check_parameters(record: Any) -> None:
    """The constructor only stores; get, set, clone and repr agree with it."""
    cls = load_class(record)
    model = make(record)
    for name, value in record.small.items():
        _demand(getattr(model, name) is value, record, f"the constructor must store `{name}` as is")
    _demand(
        set(model.get_params(deep=False)) == {f.name for f in fields(cls) if f.init},
        record,
        "get_params must name every constructor parameter",
    )
    copy = clone(model)
    _demand(copy is not model and repr(copy) == repr(model), record, "a clone must read the same")
    _demand(cls.__name__ in repr(model), record, "repr must name the class")
    first = next(iter(record.small))
    _demand(
        model.set_params(**{first: record.small[first]}) is model,
        record,
        "set_params returns itself",
    )


def check_determinism(record: Any) -> None:
    """The same seed gives the same weights; another seed others, where chance plays a part."""
    data = _some(record)
    first, model = _fitted(record), _quick(record, random_state=1).fit(*data)
    _demand(
        _same(first, model) != record.seeded,
        record,
        "another seed must give other weights, unless the record says that chance plays no part",
    )
    torch.rand(3), np.random.random(3)  # which no fit may read
    again = model.set_params(random_state=0).fit(*data)
    _demand(
        _same(first, again),
        record,
        "the same seed must give the same weights, bit for bit, whatever the global random states;"
        " a second fit must start afresh",
    )


def check_random_state_is_local(record: Any) -> None:
    """Fitting and predicting do not change the global random states."""
    model, touched = _fit(record)
    before = _random_states()
    _answers(model, _asked(record))
    for name in (*touched, *_changed(before)):
        _demand(False, record, f"{name}'s random state must stay untouched")


def check_saving(record: Any) -> None:
    """What is saved and loaded, or pickled, answers the same."""
    X, model = _asked(record), _fitted(record)
    expected = _answers(model, X)
    with tempfile.TemporaryDirectory() as folder:
        save(model, Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    _demand(
        np.array_equal(_answers(loaded, X), expected), record, "a loaded model must answer alike"
    )
    _demand(repr(loaded) == repr(model), record, "a loaded model must keep its parameters")
    copy = pickle.loads(pickle.dumps(model))
    _demand(np.array_equal(_answers(copy, X), expected), record, "a pickle must answer alike")


def check_gradients(record: Any) -> None:
    """Every parameter of a network gets a gradient, and training moves it."""
    if not issubclass(load_class(record), Estimator):
        return  # nothing there is trained by gradients
    X, y = _some(record)
    start = _quick(record, epochs=1, lr=1e-30).fit(X, y)
    end = _fitted(record)
    first, last = _weights(start), _weights(end)
    trained = [name for name, _ in end.module_.named_parameters()]  # buffers may stand still
    still = [name for name in trained if torch.equal(first[name], last[name])]
    _demand(not still, record, f"every parameter must be trained; these stood still: {still}")


def check_batches(record: Any) -> None:
    """A row's answer does not depend on the rows beside it, and answering changes no weight."""
    X, model = _asked(record), _fitted(record)
    before = {name: value.clone() for name, value in _weights(model).items()}
    whole, one = _answers(model, X), _answers(model, X[:1])
    _demand(_alike(whole[:1], one), record, "a row alone must get the same answer")
    kept = all(torch.equal(value, before[name]) for name, value in _weights(model).items())
    _demand(kept, record, "predicting must leave the weights as they are")
    _demand(np.array_equal(_answers(model, X), whole), record, "predict must repeat")


def _alike(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether answers are equal, texts to the letter and numbers nearly."""
    if one.dtype.kind in "OU":
        return np.array_equal(one, other)
    return np.allclose(one, other, atol=1e-6)


def check_bad_input(record: Any) -> None:
    """Data that cannot be used is refused in a sentence that names it."""
    X, y = _some(record)
    name = load_class(record).__name__
    if record.data == "world":
        _refused(record, lambda: _quick(record).fit(object()), f"{name}: the world must have")
        return
    if _supervised(record):
        if y.dtype != object and not _partial(record):  # boxes refuse NaN themselves
            holed = y.astype(float)
            holed[3] = np.nan  # a row, be it a number or a mask
            first = 3 * X.shape[1] if record.data == "tasks" else 3
            said = f"{name}: .*NaN.*first in row {first}"
            _refused(record, lambda: _quick(record).fit(X, holed), said)
        _refused(record, lambda: _quick(record).fit(X, y[:-1]), "same number of rows")
    if is_classifier(make(record)):
        _refused(record, lambda: _quick(record).fit(X, np.zeros(len(X))), "got one class")
    model = _fitted(record)
    if record.data in ("text", "tree"):
        said = f"{name}: a {record.data} must be .*got nan"
        _refused(record, lambda: _answers(model, [np.nan]), said)
        return
    if record.data == "graph":
        said = rf"{name}: nodes must have .* features, as in fit; got"
        _refused(record, lambda: _answers(model, _widened(X)), said)
        return
    if record.data == "sequence" and (isinstance(X, list) or y is None or X.ndim == 3):
        said = rf"{name}: (sequences|series) must have"
        _refused(record, lambda: _answers(model, _doubled(X)), said)
        return
    other, said = np.concatenate([X, X], axis=-1), f"X has {2 * X.shape[-1]} features"
    rows = isinstance(getattr(model, "adapter_", None), TableAdapter | None)
    if record.data == "image" or not rows:
        said = rf"{name}: \w+ must have"
    if record.data == "image":  # another size may be welcome; another number of channels is not
        other = np.zeros((2, *X.shape[1:3], 2), dtype=X.dtype)
    _refused(record, lambda: _answers(model, other), said)


def _partial(record: Any) -> bool:
    """Whether some rows may lack a target."""
    return bool(getattr(getattr(load_class(record), "codec", None), "partial", False))


def _widened(X: Any) -> Any:
    """Return the same graphs, or rows of one, whose nodes have further features."""
    if isinstance(X, Graphs):
        return Graphs([_wider(graph) for graph in X])
    return replace(X, graph=_wider(X.graph))


def _wider(graph: Graph) -> Graph:
    return Graph(graph.edges, np.ones((len(graph), 9)), nodes=np.arange(len(graph)))


def _doubled(X: Any) -> list[np.ndarray]:
    """Return sequences with every channel twice."""
    return [np.concatenate([steps, steps], axis=1) for steps in X]


def _refused(record: Any, act: Callable[[], Any], pattern: str) -> None:
    try:
        act()
    except (InvalidData, ValueError) as error:
        if not re.search(pattern, str(error)):
            raise ContractBroken(f"{record.name}: expected /{pattern}/, got: {error}") from error
    else:
        raise ContractBroken(f"{record.name}: bad data was accepted where /{pattern}/ was due")


def check_constraints(record: Any) -> None:
    """A value outside a declared constraint is named together with the rule."""
    cls = load_class(record)
    X, y = _some(record)
    for name, rule in constraints(cls).items():
        bad = "no such value"
        pattern = rf"{cls.__name__}: `{name}` must be {re.escape(rule.rule())}; got 'no such value'"
        try:
            make(record, **{name: bad}).fit(X, y)
        except InvalidParameter as error:
            _demand(bool(re.search(pattern, str(error))), record, f"`{name}`: {error}")
        else:
            raise ContractBroken(f"{record.name}: `{name}={bad!r}` was accepted")


def constraints(cls: type) -> dict[str, Constraint]:
    """Return the declared constraints of a class, by parameter."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        name: rule
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
        for rule in get_args(hint)[1:]
        if isinstance(rule, Constraint)
    }


def check_toy(record: Any) -> None:
    """The small configuration reaches its pass mark on its toy problem, on rows it has not seen."""
    X, y = toy(record.toy)
    if record.data == "world":
        score = float(make(record).fit(X).score(X))
    else:
        half = len(X) // 2
        seen, unseen = (None, None) if y is None else (y[:half], y[half:])
        score = _score(make(record).fit(X[:half], seen), X[half:], unseen)
    _demand(score >= record.pass_mark, record, f"scores {score:.3f}, below {record.pass_mark}")


def _score(model: Any, X: Any, y: Any) -> float:
    """Return the score; of clusters, found without y, how well they agree with it (1: wholly).

    Of a language model the inverse of its perplexity, which lies between 0 and 1.
    """
    if hasattr(model, "perplexity"):
        return 1 / float(model.perplexity(X))
    if hasattr(model, "fit_predict"):
        return float(adjusted_rand_score(y, model.predict(X)))
    return float(model.score(X, y))


def check_docstring(record: Any) -> None:
    """The docstring has its sections and an entry for each parameter, shared ones too."""
    cls = load_class(record)
    text = inspect.getdoc(cls) or ""
    missing = [s for s in SECTIONS if not re.search(rf"^{s}\n-+$", text, re.MULTILINE)]
    _demand(not missing, record, f"the docstring lacks {missing}")
    lacking = {f.name for f in fields(cls) if f.init} - set(parameter_entries(text))
    _demand(not lacking, record, f"undocumented parameters {sorted(lacking)}")
    shown = str(inspect.signature(cls))
    _demand("Annotated" not in shown, record, f"the signature must show plain types; got {shown}")


def check_doctest(record: Any) -> None:
    """The example of the docstring runs."""
    cls = load_class(record)
    names = dict(vars(importlib.import_module(cls.__module__)))
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    for test in doctest.DocTestFinder(recurse=False).find(cls, cls.__name__, globs=names):
        runner.run(test, out=said.append)
    _demand(runner.tries > 0, record, "the docstring has no example")
    _demand(runner.failures == 0, record, f"the example fails:\n{''.join(said)}")


CHECKS: dict[str, Callable[[Any], None]] = {
    check.__name__: check
    for check in (
        check_parameters,
        check_determinism,
        check_random_state_is_local,
        check_saving,
        check_gradients,
        check_batches,
        check_bad_input,
        check_constraints,
        check_toy,
        check_docstring,
        check_doctest,
    )
}


def run_contract(record: Any, only: Sequence[str] | None = None) -> list[str]:
    """Run the checks on a record and return their names.

    Parameters
    ----------
    record
        A catalogue record.
    only
        Names of the checks to run; all by default.
    """
    chosen = [CHECKS[name] for name in only] if only is not None else list(CHECKS.values())
    with warnings.catch_warnings():
        warnings.simplefilter("error", CastaliaWarning)
        for check in chosen:
            check(record)
    return [check.__name__ for check in chosen]
