"""Estimators have two hooks and no deep family tree: counted over the whole catalogue."""

import ast
import inspect
import statistics
from importlib import import_module
from textwrap import dedent

import pytest

from castalia.base import Classifier, DirectEstimator, Estimator, Regressor
from castalia.catalog import SYSTEMS

HOOKS = {"_network", "_objective", "_solve"}
# What else may be overridden, and why.
JUSTIFIED = {
    "fit": {
        "AdaptiveFilter": "X is one signal, whose rows are windows over it",
        "BayesianNetwork": "X is a table with words and gaps, and y may be absent",
        "Adaline": "fit and partial_fit take their rows in turn, and warm starts read the classes",
        "Perceptron": "as Adaline",
        "EchoStateClassifier": "as HiddenMarkovModel",
        "EchoStateNetwork": "as LinearDynamicalSystem",
        "DeepBeliefNetwork": "as RestrictedBoltzmannMachine, and labels may be absent",
        "FullyConvolutional": "wraps a fitted classifier; there may be no data",
        "HiddenMarkovModel": "sequences come joined with their lengths, and as lists",
        "KalmanFilter": "as HiddenMarkovModel, and with inputs beside them",
        "LiquidStateMachine": "as HiddenMarkovModel",
        "LinearDynamicalSystem": "as HiddenMarkovModel, with targets for every step",
        "RestrictedBoltzmannMachine": "rows have no weights, and the old partition function goes",
        "StyleTransfer": "X is one image whose style is learnt, and there is no y",
        "SelfTraining": "further rows have no target",
        "SemiSupervised": "as SelfTraining",
        "ContinualLearning": "rows come in groups: clients, tasks, queries, difficulties",
        "Curriculum": "as ContinualLearning",
        "FederatedAveraging": "as ContinualLearning",
        "Ranking": "as ContinualLearning",
        "Pretrain": "as SelfTraining",
        "DriftDetector": "rows have no weights",
        "MAML": "rows are those of many tasks, one after the other or side by side",
        "Reptile": "as MAML",
        "ConditionalNeuralProcess": "as MAML",
        "AttentiveNeuralProcess": "as MAML",
        "NeuralProcess": "as MAML",
        "QLearning": "X is a world to act in",
        "TDLearning": "as QLearning",
        "DQN": "as QLearning",
        "PolicyGradient": "as QLearning",
    },
    "_matrix": {
        "AdaBoost": "rows go to the members as they are",
        "Bagging": "as AdaBoost",
        "DeepEnsemble": "as AdaBoost",
        "DropoutEnsemble": "as AdaBoost",
        "GradientBoost": "as AdaBoost",
        "SnapshotEnsemble": "as AdaBoost",
        "WeightAverage": "as AdaBoost",
        "ActiveLearning": "as AdaBoost",
        "AdversarialTraining": "as AdaBoost",
        "Compress": "as AdaBoost",
        "ContinualLearning": "as AdaBoost",
        "Curriculum": "as AdaBoost",
        "Distill": "as AdaBoost",
        "FederatedAveraging": "as AdaBoost",
        "MultiTask": "as AdaBoost",
        "Ranking": "as AdaBoost",
        "SelfSupervised": "as AdaBoost",
        "SelfTraining": "as AdaBoost",
        "SemiSupervised": "as AdaBoost",
        **dict.fromkeys(("WeakSupervision", "OnlineLearning", "FineTune"), "as AdaBoost"),
        **dict.fromkeys(("FeatureExtract", "Pretrain", "ProtoNet"), "as AdaBoost"),
        **dict.fromkeys(("MAML", "Reptile"), "as AdaBoost"),
        "FastText": "texts are no matrix",
        "GloVe": "as FastText",
        "Word2Vec": "as FastText",
        "NGramLanguageModel": "as FastText",
        "NaiveForecaster": "series are no matrix",
    },
}
DEEPEST = 4
TRAINED, DIRECT = 16, 65  # median lines: of networks with a recipe, and of methods of their own


def classes():
    found = {}
    for name, system in SYSTEMS.items():
        package, _, attribute = system.path.partition(":")
        found[name] = getattr(import_module(package), attribute)
    return found


def own(cls):
    return [base for base in cls.__bases__ if base.__module__.startswith("castalia.")]


def depth(cls):
    return 1 + max(map(depth, own(cls)), default=0)


def code_lines(cls):
    """Lines of a class without docstrings, comments and blank lines."""
    source = dedent(inspect.getsource(cls))
    left_out = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            left_out |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in left_out
        for number, line in lines
    )


def overridden(cls):
    """Methods of the base classes that a catalogue class or its family replaces."""
    declared = {
        name
        for base in (Estimator, DirectEstimator, Classifier, Regressor)
        if issubclass(cls, base)
        for name, value in vars(base).items()
        if callable(value) and (name == "fit" or name.startswith("_") and not name.endswith("__"))
    }
    family = [base for base in cls.__mro__ if base.__module__.startswith("castalia.models.")]
    return {name for base in family for name in vars(base) if name in declared} - HOOKS


def test_no_estimator_overrides_more_than_its_two_hooks():
    found = {name: overridden(cls) for name, cls in classes().items()}
    allowed = {(hook, name) for hook, names in JUSTIFIED.items() for name in names}
    assert {(hook, name) for name, hooks in found.items() for hook in hooks} == allowed


def test_nobody_that_is_trained_by_gradients_needs_an_excuse():
    excused = {name for names in JUSTIFIED.values() for name in names}
    assert not [name for name in excused if issubclass(classes()[name], Estimator)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_family_tree_is_shallow(name):
    assert depth(classes()[name]) <= DEEPEST


def test_half_of_what_is_trained_is_written_in_sixteen_lines():
    trained = [cls for cls in classes().values() if issubclass(cls, Estimator)]
    direct = [cls for cls in classes().values() if not issubclass(cls, Estimator)]
    assert statistics.median(map(code_lines, trained)) <= TRAINED
    assert statistics.median(map(code_lines, direct)) <= DIRECT


def test_the_count_sees_a_third_hook():
    class Third(Estimator):
        def _samples(self, X, target, dtype):
            return None

    Third.__module__ = "castalia.models.third"
    assert overridden(Third) == {"_samples"}
    assert code_lines(Classifier) > 10
