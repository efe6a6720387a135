"""The parameters that one class declares."""

from castalia import ResNetClassifier, WindowLanguageModel
from castalia.base.own_parameters import own_parameters


def test_they_are_the_class_s_own_and_no_class_variables():
    model = WindowLanguageModel(window=3, epochs=7, context=9)
    assert own_parameters(model, WindowLanguageModel) == {
        "window": 3, "dim": 64, "hidden": 128, "depth": 1, "dropout": 0.0
    }  # fmt: skip


def test_a_subclass_of_yours_keeps_those_of_its_base():
    class Mine(ResNetClassifier):
        extra: int = 1

    assert own_parameters(Mine(depth=20), ResNetClassifier)["depth"] == 20
    assert "extra" not in own_parameters(Mine(), ResNetClassifier)
