"""Asking every rule."""
from castalia.diagnose.rules import judge
from tests.diagnose.rules.records import classification, regression


def test_a_healthy_classification_is_left_in_peace():
    assert judge(classification()).codes == ()


def test_a_healthy_regression_is_left_in_peace():
    assert judge(regression()).codes == ()
