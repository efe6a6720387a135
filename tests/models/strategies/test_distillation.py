"""A student agrees with its teacher: the limit of high temperatures, and what it gains."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.svm import LinearSVC
from torch import nn
from torch.testing import assert_close

from castalia import ConvNetClassifier, Distill, MLPClassifier, MLPRegressor, Training
from castalia.data.augment import Flip
from castalia.errors import InvalidParameter
from castalia.models.strategies.distillation import Distillation
from castalia.objectives import CrossEntropy
from castalia.protocols import Batch
from castalia.testing.toys import moons, sine, stripes

NET = MLPClassifier(hidden=(16,), epochs=60, lr=0.03, training=Training(validation=0))


def gradient(z, v, temperature):
    z = z.clone().requires_grad_()
    batch = Batch(z, (torch.zeros(len(z), dtype=torch.long), v))
    Distillation(CrossEntropy(), temperature, 1.0).terms(nn.Identity(), batch, "")[
        "loss"
    ].backward()
    return z.grad


def test_at_high_temperature_the_gradient_is_that_of_matching_logits():
    z, v = torch.randn(2, 4, 5, dtype=torch.float64)
    z, v = z - z.mean(dim=1, keepdim=True), v - v.mean(dim=1, keepdim=True)
    assert_close(gradient(z, v, 1e5), (z - v) / 5 / len(z), rtol=1e-3, atol=1e-6)


def test_the_loss_is_the_mixture_of_cross_entropy_and_the_softened_divergence():
    z, v, y = torch.randn(3, 4), torch.randn(3, 4), torch.tensor([0, 3, 1])
    terms = Distillation(CrossEntropy(), 2.0, 0.3).terms(nn.Identity(), Batch(z, (y, v)), "train")
    p, log_q = torch.softmax(v / 2, dim=1), torch.log_softmax(z / 2, dim=1)
    soft = 4 * nn.functional.kl_div(log_q, p, reduction="batchmean")
    assert_close(terms["loss"], 0.7 * nn.functional.cross_entropy(z, y) + 0.3 * soft)


def test_a_student_of_a_good_teacher_beats_the_same_network_on_labels_alone():
    teacher = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    teacher.fit(*moons(600, 0.2, 1))
    unseen, gains = moons(1000, 0.2, 2), []
    for seed in range(100, 103):  # the settings were chosen on others
        X, y = moons(80, 0.2, 10 + seed)
        y = np.where(np.random.default_rng(seed).random(80) < 0.25, 1 - y, y)  # careless labels
        alone = clone(NET).set_params(random_state=seed).fit(X, y).score(*unseen)
        student = Distill(NET, teacher=teacher, share=0.9, random_state=seed).fit(X, y)
        gains.append(student.score(*unseen) - alone)
    assert np.mean(gains) > 0.04  # not with every draw of the labels


def test_numbers_are_taught_in_the_units_of_the_target():
    X, y = sine(150)
    teacher = RandomForestRegressor(30, random_state=0).fit(X, 100 + 50 * y)
    net = MLPRegressor(hidden=(16,), epochs=80, lr=0.02, training=Training(validation=0))
    model = Distill(net, teacher=teacher, share=1.0, random_state=0).fit(X, np.zeros(150) + y)
    spread = np.abs(model.predict(X) - teacher.predict(X))
    assert np.median(spread) < 20  # though the labels lie 100 below


@pytest.mark.parametrize("teacher", [LinearSVC(), MLPClassifier(hidden=(4,), epochs=1)])
def test_a_teacher_of_other_classes_or_without_probabilities_is_refused(teacher):
    X, y = moons(60)
    with pytest.raises(
        InvalidParameter, match=r"`teacher` must have `predict_proba` and the class"
    ):
        Distill(NET, teacher=teacher.fit(X, y + 1)).fit(X, y)


def test_a_student_of_changed_images_is_held_against_its_teacher_too():
    X, y = stripes(60)
    plain = ConvNetClassifier(widths=(8,), epochs=12, lr=0.01, training=Training(validation=0))
    teacher = clone(plain).set_params(random_state=1).fit(X, y)
    student = plain.set_params(augment=Flip())
    model = Distill(student, teacher=teacher, share=1.0, random_state=0).fit(X, y[::-1])
    assert "teacher" in model.history_[-1]
    assert model.score(X, y) > 0.9  # what it is told, not the labels it was given


class Turned(Flip):
    """Every image is transposed: standing stripes lie."""

    def __call__(self, x, y=None, *, generator=None):
        return x.transpose(2, 3), y


def test_a_teacher_of_views_answers_for_what_the_student_is_shown():
    X, y = stripes(60)
    plain = ConvNetClassifier(widths=(8,), epochs=12, lr=0.01, training=Training(validation=0))
    teacher = clone(plain).set_params(random_state=1).fit(X, y)
    student = plain.set_params(augment=Turned())
    rows = teacher.adapter_.blocks(teacher._checked(X), np.float32)
    shown = [x.transpose(2, 3) for x in rows]
    with torch.no_grad():
        answers = teacher.module_.eval()(torch.cat(shown)).argmax(dim=1).numpy()
    model = Distill(student, teacher=teacher, share=1.0, answers="views", random_state=0)
    with torch.no_grad():
        found = model.fit(X, y).estimator_.module_.eval()(torch.cat(shown)).argmax(dim=1).numpy()
    assert np.mean(found == answers) > 0.9
    assert np.mean(y == answers) < 0.9  # by the labels it would have learnt something else
    assert next(teacher.module_.parameters()).requires_grad  # a copy of it answered


@pytest.mark.parametrize("other", ["forest", "rows"])
def test_views_want_a_network_that_takes_the_same_numbers(other):
    X, y = moons(60)
    teacher = RandomForestClassifier(5) if other == "forest" else clone(NET).set_params(epochs=1)
    model = Distill(NET, teacher=teacher.fit(X * 2, y), answers="views")
    with pytest.raises(InvalidParameter, match="scaled as the student's where `answers` is"):
        model.fit(X, y)
