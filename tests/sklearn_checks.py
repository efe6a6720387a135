"""scikit-learn's own checks of an estimator: all, or those that see what a setting changes."""

import re
import warnings
from unittest import SkipTest

from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

# What it learns and answers. The others look at the constructor and at what X may be (sparse,
# empty, complex, NaN …): code that all settings of a class share, and that its default is held to.
LEARNS = re.compile(
    "train|regressor|classifier|cluster|transformer|supervised|equivalence|pickle|dtypes|idempotent"
    "|invariance|fit2d_1|dict_unchanged|pipeline|n_iter|overwrite"
)


def conform(model, excused=None):
    """Pass all checks but those that are excused, with a reason each; these must fail."""
    excused = excused or {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(model, on_fail="raise", expected_failed_checks=excused)
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(excused)
    unfit = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped", "xfail")]
    assert not unfit
    assert sum(r["status"] == "passed" for r in results) > 40


def learns_alike(model, excused=()):
    """Pass the checks of what another setting of a class may change, but those excused."""
    passed = 0
    for fresh, check in estimator_checks_generator(model):
        name = check.func.__name__
        if LEARNS.search(name) and name not in excused:
            try:
                check(fresh)
                passed += 1
            except SkipTest:
                pass
    assert passed > 9
