"""Help shows every parameter."""

import inspect
import pydoc

import pytest
from sklearn.base import clone

from castalia import MLPClassifier, Perceptron
from castalia.base.parameter_docs import parameter_entries

SHARED = ["epochs", "batch_size", "lr", "training", "random_state", "warm_start"]


def test_the_signature_names_every_parameter_with_its_plain_type_and_default():
    found = inspect.signature(MLPClassifier)
    assert set(found.parameters) == set(MLPClassifier().get_params(deep=False))
    assert list(found.parameters)[-6:] == SHARED
    assert found.parameters["hidden"].annotation == tuple[int, ...]
    assert found.parameters["lr"].annotation is float
    assert found.parameters["hidden"].default == (64, 64)


@pytest.mark.parametrize("cls", [MLPClassifier, Perceptron])
def test_help_describes_every_parameter(cls):
    text = pydoc.render_doc(cls, renderer=pydoc.plaintext)
    for name in cls().get_params(deep=False):
        assert f" |  {name}\n |      " in text or f"{name}, " in text or f", {name}\n" in text
    assert "Annotated" not in text.split("Parameters")[0]


def test_an_entry_of_its_own_hides_an_inherited_one():
    entries = parameter_entries(Perceptron.__doc__)
    assert "weights it finds" in entries["warm_start"]
    assert Perceptron.__doc__.count("\nwarm_start\n") == 1


def test_a_class_without_a_section_gets_one():
    class Bare(MLPClassifier):
        """Nothing said.

        Notes
        -----
        None.
        """

    assert list(parameter_entries(Bare.__doc__))[-6:] == SHARED
    assert Bare.__doc__.index("Parameters") < Bare.__doc__.index("Notes")


@pytest.mark.parametrize("model", [MLPClassifier(epochs=1), Perceptron()])
def test_a_notebook_shows_a_fitted_model_without_a_warning(model):
    model = clone(model).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert type(model).__name__ in model._repr_html_()  # a warning is an error in tests
