"""scikit-learn's own checks of an estimator: all, or those that see what a setting changes."""

import re
from functools import partial
from unittest import SkipTest

from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

# What it learns and answers. The others look at the constructor and at what X may be (sparse,
# empty, complex, NaN …): code that all settings of a class share, and that its default is held to.
LEARNS = re.compile(
    "train|regressor|classifier|cluster|transformer|supervised|equivalence|pickle|dtypes|idempotent"
    "|invariance|fit2d_1|dict_unchanged|pipeline|n_iter|overwrite"
)


# Checks that ask for right answers; the others ask the same of a model that hardly learnt.
RIGHT = re.compile("train|classifiers_classes|one_label|class_weight|clustering|n_iter")


def conform(model, hardly_trained, excused=None):
    """Pass all checks but those that are excused, with a reason each; these must fail."""
    excused, passed, failed = excused or {}, 0, set()
    checks = [*_checks(model, right=True), *_checks(hardly_trained, right=False)]
    for name, check in checks:
        try:
            check()
            passed += 1
        except SkipTest:
            pass
        except Exception:
            if name not in excused:
                raise
            failed.add(name)
    assert failed == set(excused)
    assert passed > 30


def _checks(model, right):
    """Yield the checks that ask for right answers, or the others, by name."""
    for fresh, check in estimator_checks_generator(model):
        name = check.func.__name__
        if bool(RIGHT.search(name)) == right:
            yield name, partial(check, fresh)


def learns_alike(model, excused=()):
    """Pass the checks of what another setting of a class may change, but those excused."""
    passed = 0
    names = [name for name in model.get_params() if name.split("__")[-1] == "epochs"]
    hardly_trained = clone(model).set_params(**dict.fromkeys(names, 2))
    for name, check in [*_checks(model, right=True), *_checks(hardly_trained, right=False)]:
        if LEARNS.search(name) and name not in excused:
            try:
                check()
                passed += 1
            except SkipTest:
                pass
    assert passed > 9
